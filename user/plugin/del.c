/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* del.c - DEL: removes what the attachment owns, whatever else is left of it. */
#include "datapath/records/attachment_name.h"
#include "datapath/records/attachment_remove.h"
#include "plugin/commands.h"
#include "host/container.h"
#include "host/host.h"
#include "host/own_netns.h"

static int remove_attachment(const struct cni_environment *environment,
			     const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_container struct container container = {.netns = -1};
	cleanup_host struct host host = {0};
	struct cni_error too_long = {0};
	struct attachment_key key;
	bool usable;

	/* ADD would have refused it, so there is nothing. */
	if (attachment_key_make(&key, config->name, environment->container_id, environment->ifname,
				&too_long)) {
		cni_error_release(&too_long);
		return 0;
	}
	if (host_open_to_clean(&host, &usable, err))
		return -1;
	if (!usable)
		return 0;
	return attachment_remove(&host.datapath, &key,
				 container_guess(&container, environment, config), err);
}

/* Neither prevResult nor our own options are looked at: what ADD refused must not keep
 * DEL from succeeding, or the plugins before us never give back the address. */
int command_del(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err)
{
	if (remove_attachment(environment, config, err))
		return -1;
	return own_netns_refuse(environment, err);
}

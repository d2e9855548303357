/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* del.c - DEL: removes what the attachment owns. */
#include <errno.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "datapath/records/attachment.h"
#include "plugin/commands.h"
#include "host/container.h"
#include "host/host.h"
#include "net/link.h"

/* prevResult and our own options are a hint at most. An error in them, for which ADD failed, must
 * not make DEL fail: the plugins before us would never release the address. */
int command_del(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err)
{
	cleanup_container struct container container = {0};
	cleanup_host_at_end struct host host = {0};
	cleanup_error struct cni_error too_long = {0};
	struct attachment_key key;
	struct attachment record = {0};
	bool usable;

	/* With names that are too long ADD failed, so there is nothing. */
	if (!attachment_key_make(&key, config->name, environment->container_id, environment->ifname,
				 &too_long) &&
	    host_open_to_clean(&host, err))
		return -1;
	usable = datapath_is_usable(&host.datapath);
	if (usable && attachment_read(&host.datapath.objects, &key, &record)) {
		if (attachment_remove(&host.datapath.objects, &key,
				      container_guess(&container, environment, config), err))
			return -1;
	} else if (usable && errno != ENOENT) {
		return map_refuse_read(MAP_ATTACHMENTS, err);
	}
	/* Mostly the veth goes next, and the entry with it. */
	bridge_entry_delete(record.ifindex, record.container_mac);
	return container_refuse_own_netns(environment, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status.c - STATUS: whether an ADD would work; loads and mounts nothing. */

#include "lib/cleanup.h"
#include "lib/error.h"
#include "datapath/records/attachments.h"
#include "plugin/commands.h"
#include "host/host.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"

/* The next ADD repairs it; until then containers that are there suffer. */
static int check_running(struct host *host, const struct plan *plan, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error missing = {0};
	size_t count;

	if (!plan_refuse_damage(plan, &missing) && !prerequisites_verify_host(host, &missing))
		return 0;
	if (attachment_list(&host->datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (attachment_has_veth(&host->datapath.objects, &entries[i].attachment))
			return cni_error_set(err, CNI_ERROR_LIMITED, "%s",
					     cni_error_message(&missing));
	return 0;
}

static int check_host(const struct conf *conf, struct cni_error *err)
{
	const struct look_at at = {.entries = true, .veths = true, .veth_hooks = true};
	cleanup_look struct host_look look = {0};
	cleanup_plan struct plan plan = {0};
	cleanup_host struct host host = {0};
	const char *gap;

	if (host_open(&host, DATAPATH_READ, err))
		return -1;
	if (host.datapath.state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(&host.datapath, err);
	if (host_sockets_probe(&host, conf, err))
		return -1;
	/* The next ADD loads or repairs what is absent or damaged. */
	if (!datapath_is_usable(&host.datapath))
		return 0;
	gap = datapath_conntrack_gap(&host.datapath);
	if (gap)
		warning("%s", gap);
	gap = datapath_realtime_gap();
	if (gap)
		warning("%s", gap);
	if (host_plan(&look, &plan, &host, &at, err))
		return -1;
	plan_warn(&plan);
	return check_running(&host, &plan, err);
}

int command_status(const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err)
{
	struct conf conf = {0};
	int result = conf_parse_options(&conf, config->root, err) || probe_kernel(err) ? -1 : 0;

	if (!result && check_host(&conf, err)) {
		/* The checks set the codes of ADD. */
		if (err->code != CNI_ERROR_LIMITED)
			err->code = CNI_ERROR_NOT_AVAILABLE;
		result = -1;
	}
	conf_release(&conf);
	return result;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - setup and teardown, under the attachment's lock. */
#include "netavark/attach.h"

#include "lib/cleanup.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"
#include "netavark/detach.h"
#include "netavark/leave.h"
#include "netavark/names.h"
#include "netavark/plugin_list.h"
#include "netavark/request.h"
#include "netavark/status.h"

static int add(const struct request *request, json_t **result, struct cni_error *err)
{
	const struct operation operation = {
		.command = "ADD", .list = &request->list, .conf = &request->conf};
	cleanup_json json_t *foreseen = plugin_list_foresee(&request->list);

	/* First as an intent. */
	if (cache_write(&request->list, &request->conf, foreseen, err) ||
	    plugin_run_all(&operation, NULL, result, err))
		return -1;
	return cache_write(&request->list, &request->conf, *result, err);
}

/* Without names a container works in all else, so that a missing server stops none. */
static bool is_named(const struct request *request)
{
	cleanup_error struct cni_error problem = {0};

	if (!request->network.dns_enabled)
		return false;
	if (!names_add(request, &problem))
		return true;
	output_warn("containers of network \"%s\" do not find this one by name, nor it them: %s",
		    request->network_name, cni_error_message(&problem));
	return false;
}

static int attach(const struct request *request, attach_reply *reply, struct cni_error *err)
{
	cleanup_json json_t *result = NULL, *status = NULL;

	if (add(request, &result, err))
		return -1;
	status = status_make(result, request, is_named(request), err);
	return status ? reply(status, err) : -1;
}

int attach_setup(const json_t *root, const char *netns, attach_reply *reply, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;
	cleanup_cache_entry struct cache_entry earlier = {0};
	cleanup_conflist struct conflist list = {0};
	struct cni_error problem = {0};

	if (request_read(&request, root, netns, err))
		return -1;
	if (netns_is_gone(netns))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS, "%s is no network namespace",
				     netns);
	if (cache_lock_attachment(&lock, request.network_name, &request.conf, err) ||
	    detach_read_written(&earlier, &request, err))
		return -1;
	if (earlier.root)
		detach_forgotten(&list, request, "an earlier setup of the container");
	conflist_release(&list);
	if (!attach(&request, reply, err))
		return 0;
	names_remove(&request);
	if (detach(&list, &request, &problem)) {
		cni_error_wrap(&problem, "when cleaning up");
		cni_error_join(err, &problem);
	}
	leave(lock, &request, &request.list);
	return -1;
}

int attach_teardown(const json_t *root, const char *netns, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;
	cleanup_conflist struct conflist list = {0};

	if (request_read_names(&request, root, netns, err) ||
	    cache_lock_attachment(&lock, request.network_name, &request.conf, err))
		return -1;
	names_remove(&request);
	if (detach(&list, &request, err))
		return -1;
	leave(lock, &request, &list);
	return 0;
}

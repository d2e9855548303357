/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - setup and teardown, under the network's lock. */
#include "netavark/attach.h"

#include <linux/magic.h>
#include <sys/vfs.h>

#include "lib/cleanup.h"
#include "cnirun/attachment.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"
#include "netavark/bridge.h"
#include "netavark/request.h"
#include "netavark/status.h"

/* Plugins know what to do where there is no file, but not with one that is no namespace any more,
 * as after `umount`. */
#define NO_NAMESPACE REQUEST_STATE_DIRECTORY "/no-namespace"

static bool is_namespace(const char *path)
{
	struct statfs status;

	return !statfs(path, &status) && status.f_type == NSFS_MAGIC;
}

/* Undoes what an earlier setup of this container has done, or may have. */
static void undo_earlier(const struct request *request)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	cleanup_error struct cni_error problem = {0}, ignored = {0};
	struct runtime_conf conf = request->conf;

	if (!cache_read(&entry, request->network.name, &conf, &ignored) && !entry.root)
		return;
	conf.netns = entry.netns && is_namespace(entry.netns) ? entry.netns : NO_NAMESPACE;
	if (attachment_del(&request->list, &conf, &problem))
		output_warn("going on after an earlier setup that could not be undone: %s",
			    cni_error_message(&problem));
}

/* The state's file stays where that fails, for the next call. */
static void undo(const struct request *request, json_t *result, struct cni_error *err)
{
	const struct operation operation = {"DEL", &request->list, &request->conf,
					    NULL,  true,           "when cleaning up"};
	struct cni_error problem = {0};

	if (plugin_run_all(&operation, result, NULL, &problem) ||
	    cache_remove(request->network.name, &request->conf, &problem))
		cni_error_join(err, &problem);
	bridge_remove_unused(request->network.bridge);
}

static int add(const struct request *request, json_t **result, struct cni_error *err)
{
	const struct operation operation = {
		.command = "ADD", .list = &request->list, .conf = &request->conf};

	/* First as an intent. */
	if (cache_write(&request->list, &request->conf, NULL, err) ||
	    plugin_run_all(&operation, NULL, result, err))
		return -1;
	return cache_write(&request->list, &request->conf, *result, err);
}

int attach_setup(const json_t *root, const char *netns,
		 int (*reply)(const json_t *status, struct cni_error *err), struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock struct cache_lock lock = CACHE_LOCK_NONE;
	cleanup_json json_t *result = NULL, *status = NULL;

	if (request_read(&request, root, netns, err))
		return -1;
	if (!is_namespace(netns))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS, "%s is no network namespace",
				     netns);
	if (cache_lock_network(&lock, request.network.name, &request.conf, err))
		return -1;
	undo_earlier(&request);
	if (!add(&request, &result, err)) {
		status = status_make(result, &request, err);
		if (status && !reply(status, err))
			return 0;
	}
	undo(&request, result, err);
	return -1;
}

int attach_teardown(const json_t *root, const char *netns, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock struct cache_lock lock = CACHE_LOCK_NONE;
	bool gone = !is_namespace(netns);
	int failed;

	if (request_read_for_teardown(&request, root, gone ? NO_NAMESPACE : netns, err) ||
	    cache_lock_network(&lock, request.network.name, &request.conf, err))
		return -1;
	failed = attachment_del(&request.list, &request.conf, err);
	if (gone)
		bridge_wait_unused(request.network.bridge);
	bridge_remove_unused(request.network.bridge);
	return failed;
}

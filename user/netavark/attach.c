/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - setup and teardown, under the attachment's lock. */
#include "netavark/attach.h"

#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>

#include "lib/cleanup.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"
#include "netavark/bridge.h"
#include "netavark/isolation.h"
#include "netavark/plugin_list.h"
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

/* What setup has written down: none is no error, and something that is broken is as good as none.
 */
static int read_written(struct cache_entry *entry, const struct request *request,
			struct cni_error *err)
{
	struct cni_error problem = {0};

	if (!cache_read(entry, request->network_name, &request->conf, &problem))
		return 0;
	if (entry->is_of_another) {
		*err = problem;
		return -1;
	}
	output_warn("going on without it: %s", cni_error_message(&problem));
	cni_error_release(&problem);
	cache_release(entry);
	return 0;
}

/* The list that setup has written down, since the network may have changed; without it, that of the
 * network as it is now. */
static int find_list(struct conflist *list, const struct cache_entry *entry, const json_t *root,
		     struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};

	if (!entry->root)
		return request_make_list_for_del(list, root, err);
	if (!cache_read_conflist(entry, list, &problem))
		return 0;
	output_warn("going by the network as it is now: %s", cni_error_message(&problem));
	conflist_release(list);
	return request_make_list_for_del(list, root, err);
}

/* Undoes what a setup has done, or may have, in the namespace that it wrote down unless the request
 * has one. Goes on after errors; what is written down stays then, for the next call. *list: the
 * list that it goes by. */
static int detach(struct conflist *list, const struct request *request, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct runtime_conf conf = request->conf;
	const struct operation operation = {"DEL", list, &conf, NULL, true, NULL};

	if (read_written(&entry, request, err) || find_list(list, &entry, request->root, err))
		return -1;
	if (!conf.netns)
		conf.netns = entry.netns;
	if (!conf.netns || !is_namespace(conf.netns))
		conf.netns = NO_NAMESPACE;
	if (entry.root) {
		conf.args = entry.args;
		conf.capability_args = entry.capability_args;
	}
	if (plugin_run_all(&operation, entry.result, NULL, err))
		return -1;
	return cache_remove(request->network_name, &conf, err);
}

/* Detaches what no teardown came for. *list: as above, empty where that fails. */
static void detach_forgotten(struct conflist *list, struct request request, const char *what)
{
	cleanup_error struct cni_error problem = {0};

	request.conf.netns = NULL;
	if (runtime_conf_validate(&request.conf, &problem) || detach(list, &request, &problem))
		output_warn("%s cannot be undone: %s", what, cni_error_message(&problem));
}

static bool is_isolated(const struct cache_entry *entry)
{
	cleanup_conflist struct conflist list = {0};
	cleanup_error struct cni_error ignored = {0};

	return !cache_read_conflist(entry, &list, &ignored) && plugin_list_is_isolated(&list);
}

/* What has been detached. */
struct left {
	const char *bridge;
	bool isolated; /* a container that was */
	bool gone;     /* one whose namespace is, so that its interface may go only now */
	size_t others; /* that are still attached */
};

static void remove_unused_bridge(const struct left *left)
{
	if (left->gone)
		bridge_wait_for_ports(left->bridge, left->others);
	if (!bridge_exists(left->bridge) || bridge_count_ports(left->bridge))
		return;
	if (left->isolated)
		isolation_remove(left->bridge);
	bridge_remove(left->bridge);
}

/* The container's namespace has gone without a teardown, and its bridge may be that of a network
 * which had the name before. */
static void sweep_one(struct left *left, struct request request, const struct cache_entry *entry)
{
	cleanup_conflist struct conflist list = {0};
	struct left former = {.gone = true};

	request.conf.container_id = entry->container_id;
	request.conf.ifname = entry->ifname;
	detach_forgotten(&list, request, "the setup of a container that is gone");
	former.bridge = plugin_list_bridge(&list);
	former.isolated = plugin_list_is_isolated(&list);
	if (strcmp(former.bridge, left->bridge)) {
		remove_unused_bridge(&former);
	} else {
		left->gone = true;
		left->isolated |= former.isolated;
	}
}

/* Detaches containers whose namespace has gone. The rules for the bridge go with the last container
 * that is isolated, since the network may not be so any more. */
static void sweep(struct left *left, const struct request *request)
{
	const char *directory = request->conf.cache_directory;
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_error struct cni_error problem = {0};
	bool needed = false;

	if (cache_read_all(&entries, request->network_name, directory, &problem))
		output_warn("%s", cni_error_message(&problem));
	for (size_t i = 0; i < entries.count; i++) {
		const struct cache_entry *entry = &entries.entries[i];

		if (entry->netns && netns_is_gone(entry->netns)) {
			sweep_one(left, *request, entry);
		} else {
			needed |= is_isolated(entry);
			left->others++;
		}
	}
	cache_sweep(request->network_name, directory);
	if (left->isolated && !needed) {
		isolation_remove(left->bridge);
		left->isolated = false;
	}
}

/* Removes what is forgotten and, with the last container, what the network itself has; unless
 * another call is at work in the network, which may need it. */
static void leave(struct cache_lock *lock, const struct request *request,
		  const struct conflist *list)
{
	struct left left = {
		.bridge = plugin_list_bridge(list),
		.isolated = plugin_list_is_isolated(list),
		.gone = !is_namespace(request->conf.netns),
	};

	if (!cache_lock_widen(lock))
		return;
	sweep(&left, request);
	remove_unused_bridge(&left);
}

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

static int attach(const struct request *request, attach_reply *reply, struct cni_error *err)
{
	cleanup_json json_t *result = NULL, *status = NULL;

	if (add(request, &result, err))
		return -1;
	status = status_make(result, request, err);
	return status ? reply(status, err) : -1;
}

int attach_setup(const json_t *root, const char *netns, attach_reply *reply, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock struct cache_lock lock = CACHE_LOCK_NONE;
	cleanup_cache_entry struct cache_entry earlier = {0};
	cleanup_conflist struct conflist list = {0};
	struct cni_error problem = {0};

	if (request_read(&request, root, netns, err))
		return -1;
	if (!is_namespace(netns))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS, "%s is no network namespace",
				     netns);
	if (cache_lock_attachment(&lock, request.network_name, &request.conf, err) ||
	    read_written(&earlier, &request, err))
		return -1;
	if (earlier.root)
		detach_forgotten(&list, request, "an earlier setup of the container");
	conflist_release(&list);
	if (!attach(&request, reply, err))
		return 0;
	if (detach(&list, &request, &problem)) {
		cni_error_wrap(&problem, "when cleaning up");
		cni_error_join(err, &problem);
	}
	leave(&lock, &request, &request.list);
	return -1;
}

int attach_teardown(const json_t *root, const char *netns, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock struct cache_lock lock = CACHE_LOCK_NONE;
	cleanup_conflist struct conflist list = {0};

	if (request_read_names(&request, root, netns, err) ||
	    cache_lock_attachment(&lock, request.network_name, &request.conf, err) ||
	    detach(&list, &request, err))
		return -1;
	leave(&lock, &request, &list);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* detach.c - DEL, by what setup has written down. */
#include "netavark/detach.h"

#include <string.h>

#include "lib/cleanup.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"
#include "netavark/bridge.h"
#include "netavark/plugin_list.h"

int detach_read_written(struct cache_entry *entry, const struct request *request,
			struct cni_error *err)
{
	struct cni_error problem = {0};

	if (!cache_read(entry, request->network_name, &request->conf, &problem))
		return 0;
	if (entry->is_of_another || problem.code == CNI_ERROR_IO) {
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

int detach(struct conflist *list, const struct request *request, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct runtime_conf conf = request->conf;
	const struct operation operation = {"DEL", list, &conf, NULL, true, NULL};

	if (detach_read_written(&entry, request, err) ||
	    find_list(list, &entry, request->root, err))
		return -1;
	if (!conf.netns)
		conf.netns = entry.netns;
	/* Plugins know what to do without one, but not with a file that is no namespace any more,
	 * as after `umount`. */
	if (!conf.netns || netns_is_gone(conf.netns))
		conf.netns = "";
	if (entry.root) {
		conf.args = entry.args;
		conf.capability_args = entry.capability_args;
	}
	if (plugin_run_all(&operation, entry.result, NULL, err))
		return -1;
	return cache_remove(request->network_name, &conf, err);
}

void detach_forgotten(struct conflist *list, struct request request, const char *what)
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
	bool needed;   /* the rules, by one of these */
};

/* The rules for the bridge go with the last container that is isolated, since the network may not
 * be so any more. */
static void remove_unused_bridge(const struct left *left)
{
	size_t ports;

	if (left->gone)
		bridge_wait_for_ports(left->bridge, left->others);
	ports = bridge_exists(left->bridge) ? bridge_count_ports(left->bridge) : 0;
	/* With more ports than known containers, the setup of some is lost, which may be isolated.
	 */
	if (left->isolated && (!ports || (!left->needed && ports <= left->others)))
		bridge_remove_rules(left->bridge);
	if (!ports)
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

/* Detaches containers whose namespace has gone. */
static void sweep(struct left *left, const struct request *request)
{
	const char *directory = request->conf.cache_directory;
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_error struct cni_error problem = {0};

	if (cache_read_all(&entries, request->network_name, directory, &problem))
		output_warn("%s", cni_error_message(&problem));
	for (size_t i = 0; i < entries.count; i++) {
		const struct cache_entry *entry = &entries.entries[i];

		if (entry->netns && netns_is_gone(entry->netns)) {
			sweep_one(left, *request, entry);
		} else {
			left->needed |= is_isolated(entry);
			left->others++;
		}
	}
	cache_sweep(request->network_name, directory);
}

void leave_network(int lock, const struct request *request, const struct conflist *list)
{
	struct left left = {
		.bridge = plugin_list_bridge(list),
		.isolated = plugin_list_is_isolated(list),
		.gone = netns_is_gone(request->conf.netns),
	};

	if (!cache_lock_widen(lock))
		return;
	sweep(&left, request);
	remove_unused_bridge(&left);
}

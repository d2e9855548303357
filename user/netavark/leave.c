/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* leave.c - what a network has of its own goes with the last container. */
#include "netavark/leave.h"

#include <string.h>

#include "lib/cleanup.h"
#include "cnirun/output.h"
#include "netavark/bridge.h"
#include "netavark/detach.h"
#include "netavark/isolation.h"
#include "netavark/plugin_list.h"

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
		isolation_remove(left->bridge);
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

void leave(int lock, const struct request *request, const struct conflist *list)
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_hooks.c - the hooks of interfaces, brought to what the interfaces' entries say. */
#include "host/own_hooks.h"

#include <string.h>

#include "datapath/load/maps.h"
#include "plan/hooks.h"

int hooks_settle(const struct datapath *datapath, const struct link_name *at,
		 const struct interface *entry, struct cni_error *err)
{
	struct hooks_look hooks;
	const struct hooks_wanted wanted = {&hooks, datapath->objects.program_ids, entry, at->name};
	struct attach_undo ignored = {0};
	struct hook_changes changes;
	char missing[MISSING_SIZE];
	int result;

	hooks_look(&hooks, at->ifindex, qdisc_at_ingress(at->ifindex), &datapath->objects);
	result = plan_hooks(&changes, &wanted, missing, err) ||
		 attach_apply(datapath, at, &changes, &ignored, err);
	hooks_look_release(&hooks);
	return result ? -1 : 0;
}

int hooks_settle_all(const struct datapath *datapath, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &datapath->objects, .map = MAP_INTERFACES};
	struct link_name at;
	int result = 0;

	while (map_next(&walk, err)) {
		struct cni_error failure = {0};

		memcpy(&at.ifindex, walk.key, sizeof(at.ifindex));
		if (link_name(at.ifindex, at.name) &&
		    hooks_settle(datapath, &at, walk.value, &failure))
			result = cni_error_chain(err, &failure);
	}
	return walk.failed ? -1 : result;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - what ADD and CHECK do for the host, without a container. */
#include <stdio.h>
#include <stdlib.h>

#include "datapath/attach/socket_hooks.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "host/interfaces.h"
#include "lib/cleanup.h"
#include "net/bridge_entry.h"
#include "net/link.h"
#include "net/port_ranges.h"
#include "operator/repair/repair.h"

void repair_say_interface(const char *interface, const char *what, void *context)
{
	cleanup_error struct cni_error ignored = {0};
	struct repair *repair = context;

	repair->interfaces++;
	if (repair->options->json)
		items_add(&repair->items,
			  json_pack("{s:s, s:s, s:s, s:b}", "kind", "interface", "interface",
				    interface, "what", what, "done", !repair->options->dry_run),
			  &ignored);
	else
		printf("%-15s %s%s\n", interface, repair->options->dry_run ? "would be: " : "",
		       what);
}

/* Of containers that live: the others' are gone by now. */
static void repair_macs(struct repair *repair)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error ignored = {0};
	struct netlink *socket = repair->host.socket;
	char name[IF_NAMESIZE];
	size_t count;

	if (attachment_list(&repair->host.datapath, &entries, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++) {
		const struct attachment *record = &entries[i].attachment;

		if (link_name(socket, record->ifindex, name) &&
		    bridge_entry_is_missing(socket, record->ifindex, record->container_mac) &&
		    (repair->options->dry_run ||
		     !bridge_entry_add(socket, record->ifindex, record->container_mac)))
			repair_say_interface(name, "its MAC address put into the bridge's table",
					     repair);
	}
}

static int repair_port_ranges(struct repair *repair, struct cni_error *err)
{
	const struct objects *objects = &repair->host.datapath.objects;
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0)
		return -1;
	if (!meta_read(objects, &meta) || !port_ranges_follow(&meta))
		return 0;
	if (!repair->options->dry_run && meta_write(objects, &meta, err))
		return -1;
	repair_say_interface("masquerade", "ports taken from net.ipv4.ip_local_port_range", repair);
	return 0;
}

static int repair_sockets(struct repair *repair, struct cni_error *err)
{
	bool repaired[SOCKET_PURPOSES];

	if (socket_hooks_repair(&repair->host.datapath, repair->options->dry_run, repaired, err))
		return -1;
	for (int i = 0; i < SOCKET_PURPOSES; i++)
		if (repaired[i])
			repair_say_interface("sockets",
					     i == SOCKETS_REACH_PORTS
						     ? "programs of \"localhost\" attached"
						     : "programs of \"reserveHostPorts\" attached",
					     repair);
	return 0;
}

/* Every interface, containers' veths too, and uplinks of those that an administrator names. */
static int settle_all(struct repair *repair, char *const *names, struct cni_error *err)
{
	const struct look_at all = {
		.named = names, .entries = true, .veths = true, .veth_hooks = true};
	cleanup_look struct host_look look = {0};
	cleanup_plan struct plan plan = {0};
	int result;

	if (!repair->options->dry_run) {
		result = host_settle(&repair->host, &all, &plan, err);
		plan_warn(&plan);
		return result;
	}
	if (host_plan(&look, &plan, &repair->host, &all, err))
		return -1;
	for (size_t i = 0; i < plan.count; i++) {
		const struct change *change = &plan.changes[i];

		repair_say_interface(change->at.name, *change->what ? change->what : "noted anew",
				     repair);
	}
	plan_warn(&plan);
	return 0;
}

int repair_interfaces(struct repair *repair, char *const *names, struct cni_error *err)
{
	struct cni_error failure = {0};
	int result;

	repair_macs(repair);
	result = settle_all(repair, names, err);
	if (repair_port_ranges(repair, &failure))
		result = cni_error_chain(err, &failure);
	if (repair_sockets(repair, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

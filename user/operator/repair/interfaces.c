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
#include "net/port_ranges.h"
#include "operator/repair/repair.h"

/* Of containers that live: the others' are gone by now. */
static void restore_macs(const struct host *host)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error ignored = {0};
	size_t count;

	if (attachment_list(&host->datapath, &entries, &count, &ignored))
		return;
	for (size_t i = 0; i < count; i++)
		bridge_entry_add(host->socket, entries[i].attachment.ifindex,
				 entries[i].attachment.container_mac);
}

static int refresh_port_ranges(const struct objects *objects, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0 || (meta_read(objects, &meta) && port_ranges_follow(&meta) &&
			 meta_write(objects, &meta, err)))
		return -1;
	return 0;
}

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

static int plan_interfaces(struct repair *repair, char *const *names, struct cni_error *err)
{
	const struct look_at all = {
		.named = names, .entries = true, .veths = true, .veth_hooks = true};
	cleanup_look struct host_look look = {0};
	cleanup_plan struct plan plan = {0};

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
	struct host *host = &repair->host;
	struct cni_error failure = {0};
	int result = 0;

	if (repair->options->dry_run)
		return plan_interfaces(repair, names, err);
	restore_macs(host);
	if (host_settle_all(host, names, err))
		result = -1;
	if (refresh_port_ranges(&host->datapath.objects, &failure) ||
	    socket_hooks_repair(&host->datapath, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

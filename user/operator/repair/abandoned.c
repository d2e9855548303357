/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abandoned.c - removes what containers without a veth have left, for runtimes that never call
 * CNI's GC. What belongs to a container that lives is not touched.
 */

#include "datapath/records/attachment_remove.h"
#include "datapath/records/describe.h"
#include "datapath/records/owners.h"
#include "lib/cleanup.h"
#include "operator/print/describe_json.h"
#include "operator/print/format.h"
#include "operator/print/items.h"
#include "operator/view/mappings.h"
#include "operator/portmap_gone.h"
#include "operator/repair/repair.h"

/* Before it is removed: its record names it. */
static json_t *make_item(struct repair *repair, const struct attachment_entry *entry,
			 const char *who, const char *ports)
{
	return json_pack("{s:s, s:s, s:o, s:s, s:b}", "kind", "container", "what", who, "container",
			 json_container(&repair->view,
					view_container(&repair->view, entry->attachment.owner)),
			 "ports", ports, "done", !repair->options->dry_run);
}

static int collect_one(struct repair *repair, const struct mappings *mappings,
		       const struct attachment_entry *entry, struct cni_error *err)
{
	const struct objects *objects = &repair->host.datapath.objects;
	bool dry_run = repair->options->dry_run, was_there = true;
	char who[DESCRIBED_ATTACHMENT_SIZE], ports[PORTS_TEXT_SIZE];
	cleanup_json json_t *item = NULL;

	if (!attachment_is_abandoned(objects, repair->host.socket, entry))
		return 0;
	view_describe(&repair->view, entry, who);
	mappings_write_ports(mappings, entry->attachment.owner, ports);
	item = make_item(repair, entry, who, ports);
	if (!dry_run && attachment_remove_stale(objects, entry, &was_there, err))
		return cni_error_wrap(err, "%s", who);
	if (!was_there)
		return 0;
	repair->attachments++;
	if (repair->options->json)
		return items_add(&repair->items, TAKE(item), err);
	printf("%s %s: %s\n", dry_run ? "would remove" : "removed", who, ports);
	return 0;
}

int repair_abandoned(struct repair *repair, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_mappings struct mappings mappings = {0};
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	view_of_host(&repair->view, &repair->host);
	if (mappings_read(&mappings, &repair->view, err) ||
	    attachment_list(&repair->host.datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (collect_one(repair, &mappings, &entries[i], &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

static int say_of_portmap(const char *network, const char *id, void *context, struct cni_error *err)
{
	char what[PORTMAP_GONE_SIZE];
	struct repair *repair = context;

	repair->of_portmap++;
	portmap_gone_describe(network, id, what);
	if (repair->options->json)
		return items_add(&repair->items,
				 json_pack("{s:s, s:s, s:b}", "kind", "portmap", "what", what,
					   "done", !repair->options->dry_run),
				 err);
	printf("%s %s\n", repair->options->dry_run ? "would remove" : "removed", what);
	return 0;
}

int repair_rules_of_portmap(struct repair *repair, struct cni_error *err)
{
	return portmap_gone_remove(&repair->host, repair->options->dry_run, say_of_portmap, repair,
				   err);
}

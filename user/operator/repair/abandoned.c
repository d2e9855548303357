/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abandoned.c - removes what containers without a veth have left, for runtimes that never call
 * CNI's GC. What belongs to a container that lives is not touched.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datapath/load/maps.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/describe.h"
#include "datapath/records/owners.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "operator/print/describe_json.h"
#include "operator/print/format.h"
#include "operator/print/items.h"
#include "operator/view/mappings.h"
#include "operator/portmap_gone.h"
#include "operator/repair/repair.h"

struct collection {
	struct repair *repair;
	struct view view; /* of the host's datapath */
	struct mappings mappings;
	uint32_t *connections; /* by slot, of its owner; NULL: nothing to remove was found yet */
};

static enum walk count_connection(const void *key, const void *value, void *context,
				  struct cni_error *err)
{
	const struct connection *connection = value;
	struct collection *collection = context;

	if (connection->owner.slot && connection->owner.slot < MAX_SLOTS &&
	    view_is_alive(&collection->view, key, connection))
		collection->connections[connection->owner.slot]++;
	return WALK_ON;
}

/* Reads the whole table, and so only where the numbers are wanted. */
static int count_connections(struct collection *collection, struct cni_error *err)
{
	collection->connections = need(calloc(MAX_SLOTS, sizeof(*collection->connections)));
	return map_walk(&collection->repair->host.datapath.objects, MAP_CONNECTIONS,
			count_connection, collection, err);
}

static bool is_of(const struct mapping *mapping, const struct attachment_entry *entry)
{
	return owner_is(mapping->portmap.owner, entry->attachment.owner);
}

static uint32_t connections_of(const struct collection *collection,
			       const struct attachment_entry *entry)
{
	uint32_t slot = entry->attachment.owner.slot;

	return slot < MAX_SLOTS ? collection->connections[slot] : 0;
}

static json_t *json_ports(const struct collection *collection, const struct attachment_entry *entry)
{
	char word[PROTOCOL_WORD_SIZE];
	json_t *ports = json_array();

	for (size_t i = 0; i < collection->mappings.count; i++) {
		const struct portmap_key *key = &collection->mappings.list[i].key;

		if (is_of(&collection->mappings.list[i], entry))
			json_array_append_new(
				ports, json_pack("{s:o, s:s}", "host",
						 json_endpoint(key->host_address, key->host_port),
						 "protocol", protocol_word(key->protocol, word)));
	}
	return ports;
}

/* Before it is removed: its record names it. */
static json_t *make_item(struct collection *collection, const struct attachment_entry *entry,
			 const char *who)
{
	const struct container_info *container =
		view_container(&collection->view, entry->attachment.owner);

	return json_pack("{s:s, s:s, s:o, s:o, s:I, s:I, s:b}", "kind", "container", "what", who,
			 "container", json_container(&collection->view, container), "ports",
			 json_ports(collection, entry), "addresses",
			 (json_int_t)entry->attachment.endpoints, "connections",
			 (json_int_t)connections_of(collection, entry), "done",
			 !collection->repair->options->dry_run);
}

static int say(struct collection *collection, const struct attachment_entry *entry, const char *who,
	       json_t *item, struct cni_error *err)
{
	char ports[PORTS_TEXT_SIZE];
	uint32_t connections = connections_of(collection, entry);

	collection->repair->attachments++;
	if (collection->repair->options->json)
		return items_add(&collection->repair->items, item, err);
	json_decref(item);
	mappings_write_ports(&collection->mappings, entry->attachment.owner, ports);
	printf("%s %s: %s, %u connection%s\n",
	       collection->repair->options->dry_run ? "would remove" : "removed", who, ports,
	       connections, connections == 1 ? "" : "s");
	return 0;
}

static int collect_one(struct collection *collection, const struct attachment_entry *entry,
		       struct cni_error *err)
{
	const struct objects *objects = &collection->repair->host.datapath.objects;
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool was_there = true;
	json_t *item;

	if (!attachment_is_abandoned(objects, collection->repair->host.socket, entry))
		return 0;
	if (!collection->connections && count_connections(collection, err))
		return -1;
	view_describe(&collection->view, entry, who);
	item = make_item(collection, entry, who);
	if (!collection->repair->options->dry_run &&
	    attachment_remove_stale(objects, entry, &was_there, err)) {
		json_decref(item);
		return cni_error_wrap(err, "%s", who);
	}
	if (was_there)
		return say(collection, entry, who, item, err);
	json_decref(item);
	return 0;
}

/* A failure does not end it. */
static int collect_attachments(struct collection *collection, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	if (attachment_list(&collection->repair->host.datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (collect_one(collection, &entries[i], &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

int repair_abandoned(struct repair *repair, struct cni_error *err)
{
	struct collection collection = {.repair = repair};
	int result;

	view_of_host(&collection.view, &repair->host);
	result = mappings_read(&collection.mappings, &collection.view, err);
	if (!result)
		result = collect_attachments(&collection, err);
	mappings_release(&collection.mappings);
	view_close(&collection.view);
	free(collection.connections);
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

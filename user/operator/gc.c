/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * gc.c - `bpf-portmap gc`: removes what containers without a veth have left, for runtimes that
 * never call CNI's GC. What belongs to a container that lives is not touched.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/describe.h"
#include "datapath/records/networks.h"
#include "datapath/records/owners.h"
#include "datapath/records/warnings.h"
#include "host/host.h"
#include "host/interfaces.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/print/describe_json.h"
#include "operator/print/format.h"
#include "operator/print/items.h"
#include "operator/view/mappings.h"
#include "operator/portmap_gone.h"
#include "operator/verbs.h"

#define SHOWN_PORTS 4
#define PORTS_TEXT_SIZE (SHOWN_PORTS * (ENDPOINT_TEXT_SIZE + 16) + 32)

/* One run. */
struct gc {
	const struct options *options;
	struct host host;
	struct view view; /* of the host's datapath */
	struct mappings mappings;
	uint32_t *connections; /* by slot, of its owner; NULL: nothing to remove was found yet */
	struct items items;
	size_t removed;
	size_t forgotten;  /* attachments whose warnings were */
	size_t of_portmap; /* containers whose rules of portmap were removed */
};

static enum walk count_connection(const void *key, const void *value, void *context,
				  struct cni_error *err)
{
	const struct connection *connection = value;
	struct gc *gc = context;

	if (connection->owner.slot && connection->owner.slot < MAX_SLOTS &&
	    view_is_alive(&gc->view, key, connection))
		gc->connections[connection->owner.slot]++;
	return WALK_ON;
}

/* Reads the whole table, and so only where the numbers are wanted. */
static int count_connections(struct gc *gc, struct cni_error *err)
{
	gc->connections = need(calloc(MAX_SLOTS, sizeof(*gc->connections)));
	return map_walk(&gc->host.datapath.objects, MAP_CONNECTIONS, count_connection, gc, err);
}

static bool is_of(const struct mapping *mapping, const struct attachment_entry *entry)
{
	return owner_is(mapping->portmap.owner, entry->attachment.owner);
}

static void write_ports(const struct gc *gc, const struct attachment_entry *entry,
			char text[PORTS_TEXT_SIZE])
{
	char endpoint[ENDPOINT_TEXT_SIZE], word[PROTOCOL_WORD_SIZE];
	size_t length = 0, count = 0;

	*text = '\0';
	for (size_t i = 0; i < gc->mappings.count; i++) {
		const struct portmap_key *key = &gc->mappings.list[i].key;

		if (!is_of(&gc->mappings.list[i], entry) || count++ >= SHOWN_PORTS)
			continue;
		length += (size_t)snprintf(
			text + length, PORTS_TEXT_SIZE - length, "%s%s/%s", length ? ", " : "",
			format_host_port(key->host_address, key->host_port, endpoint),
			protocol_word(key->protocol, word));
	}
	if (count > SHOWN_PORTS)
		snprintf(text + length, PORTS_TEXT_SIZE - length, " and %zu more",
			 count - SHOWN_PORTS);
	if (!count)
		snprintf(text, PORTS_TEXT_SIZE, "no port");
}

static uint32_t connections_of(const struct gc *gc, const struct attachment_entry *entry)
{
	uint32_t slot = entry->attachment.owner.slot;

	return slot < MAX_SLOTS ? gc->connections[slot] : 0;
}

static json_t *json_ports(const struct gc *gc, const struct attachment_entry *entry)
{
	char word[PROTOCOL_WORD_SIZE];
	json_t *ports = json_array();

	for (size_t i = 0; i < gc->mappings.count; i++) {
		const struct portmap_key *key = &gc->mappings.list[i].key;

		if (is_of(&gc->mappings.list[i], entry))
			json_array_append_new(
				ports, json_pack("{s:o, s:s}", "host",
						 json_endpoint(key->host_address, key->host_port),
						 "protocol", protocol_word(key->protocol, word)));
	}
	return ports;
}

/* Before it is removed: its record names it. */
static json_t *make_item(struct gc *gc, const struct attachment_entry *entry, const char *who)
{
	const struct container_info *container = view_container(&gc->view, entry->attachment.owner);

	return json_pack("{s:s, s:o, s:o, s:I, s:I, s:b}", "what", who, "container",
			 json_container(&gc->view, container), "ports", json_ports(gc, entry),
			 "addresses", (json_int_t)entry->attachment.endpoints, "connections",
			 (json_int_t)connections_of(gc, entry), "removed", !gc->options->dry_run);
}

static int say(struct gc *gc, const struct attachment_entry *entry, const char *who, json_t *item,
	       struct cni_error *err)
{
	char ports[PORTS_TEXT_SIZE];
	uint32_t connections = connections_of(gc, entry);

	gc->removed++;
	if (gc->options->json)
		return items_add(&gc->items, item, err);
	json_decref(item);
	write_ports(gc, entry, ports);
	printf("%s %s: %s, %u connection%s\n", gc->options->dry_run ? "would remove" : "removed",
	       who, ports, connections, connections == 1 ? "" : "s");
	return 0;
}

/* Of a container that lives. */
static int forget_warnings(struct gc *gc, const struct attachment_entry *entry,
			   struct cni_error *err)
{
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool had_some = true;

	if (!gc->options->forget_warnings || !entry->attachment.has_warnings)
		return 0;
	if (!gc->options->dry_run &&
	    warnings_forget_living(&gc->host.datapath.objects, &entry->key, &had_some, err))
		return -1;
	if (!had_some)
		return 0;
	gc->forgotten++;
	if (gc->options->json)
		return 0;
	describe_attachment(&gc->host.datapath.objects, entry->key.name, who);
	cni_printable(who, "");
	printf("%s the warnings of %s\n", gc->options->dry_run ? "would forget" : "forgot", who);
	return 0;
}

static int collect_one(struct gc *gc, const struct attachment_entry *entry, struct cni_error *err)
{
	const struct objects *objects = &gc->host.datapath.objects;
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool was_there = true;
	json_t *item;

	if (!attachment_is_abandoned(objects, gc->host.socket, entry))
		return forget_warnings(gc, entry, err);
	if (!gc->connections && count_connections(gc, err))
		return -1;
	describe_attachment(objects, entry->key.name, who);
	cni_printable(who, "");
	item = make_item(gc, entry, who);
	if (!gc->options->dry_run && attachment_remove_stale(objects, entry, &was_there, err)) {
		json_decref(item);
		return cni_error_wrap(err, "%s", who);
	}
	if (was_there)
		return say(gc, entry, who, item, err);
	json_decref(item);
	return 0;
}

/* A failure does not end it. */
static int collect_attachments(struct gc *gc, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	struct cni_error failure = {0};
	int result = 0;
	size_t count;

	if (attachment_list(&gc->host.datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (collect_one(gc, &entries[i], &failure))
			result = cni_error_chain(err, &failure);
	return result;
}

/* What damaged records, interfaces that went and networks without containers have left. */
static int collect_rest(struct gc *gc, size_t *stale, struct cni_error *err)
{
	const struct objects *objects = &gc->host.datapath.objects;
	const struct look_at at = {.entries = true};
	cleanup_plan struct plan plan = {0};
	cleanup_lock int lock = lock_take(err);

	if (lock < 0 || stale_slots_count(objects, stale, err))
		return -1;
	if (gc->options->dry_run)
		return 0;
	if (*stale && stale_slots_sweep(objects, err))
		return -1;
	lock_release(&lock);
	return host_settle(&gc->host, &at, &plan, err);
}

static int say_of_portmap(const char *network, const char *id, void *context, struct cni_error *err)
{
	char what[PORTMAP_GONE_SIZE];
	struct gc *gc = context;

	gc->of_portmap++;
	portmap_gone_describe(network, id, what);
	if (gc->options->json)
		return items_add(&gc->items,
				 json_pack("{s:s, s:n, s:[], s:i, s:i, s:b}", "what", what,
					   "container", "ports", "addresses", 0, "connections", 0,
					   "removed", !gc->options->dry_run),
				 err);
	printf("%s %s\n", gc->options->dry_run ? "would remove" : "removed", what);
	return 0;
}

static int prepare(struct gc *gc, struct cni_error *err)
{
	struct timespec now;

	if (host_open(&gc->host, PINS_ALL, err) ||
	    (!gc->options->dry_run && host_recover(&gc->host, err)))
		return -1;
	if (gc->host.datapath.state == DATAPATH_DAMAGED)
		return view_refuse_damaged(&gc->host.datapath, err);
	if (gc->host.datapath.state == DATAPATH_FOREIGN)
		return datapath_refuse_foreign(&gc->host.datapath, err);
	if (!datapath_is_usable(&gc->host.datapath))
		return 0;
	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	gc->view.now = (uint32_t)now.tv_sec;
	gc->view.datapath = gc->host.datapath;
	gc->view.socket = gc->host.socket;
	gc->view.containers = need(calloc(MAX_SLOTS, sizeof(*gc->view.containers)));
	return mappings_read(&gc->mappings, &gc->view, err);
}

static int finish(struct gc *gc, size_t stale, struct cni_error *err)
{
	const char *verb = gc->options->dry_run ? "would remove" : "removed";

	if (gc->options->json)
		return items_end(&gc->items,
				 json_pack("{s:I, s:I, s:I, s:I, s:b}", "attachments",
					   (json_int_t)gc->removed, "entries_of_nobody",
					   (json_int_t)stale, "warnings_forgotten",
					   (json_int_t)gc->forgotten, "containers_of_portmap",
					   (json_int_t)gc->of_portmap, "removed",
					   !gc->options->dry_run),
				 err);
	if (stale)
		printf("%s %zu entr%s that belonged to nobody\n", verb, stale,
		       stale == 1 ? "y" : "ies");
	/* For a person: a timer's journal would be full of it. */
	if (!gc->removed && !stale && !gc->forgotten && !gc->of_portmap && isatty(STDOUT_FILENO))
		puts("nothing to remove");
	return 0;
}

static int run(struct gc *gc, struct cni_error *err)
{
	struct cni_error failure = {0};
	size_t stale = 0;
	int result = 0;

	if (prepare(gc, err))
		return -1;
	if (datapath_is_usable(&gc->host.datapath)) {
		result = collect_attachments(gc, err);
		if (collect_rest(gc, &stale, &failure))
			result = cni_error_chain(err, &failure);
	}
	if (portmap_gone_remove(&gc->host, gc->options->dry_run, say_of_portmap, gc, &failure))
		result = cni_error_chain(err, &failure);
	if (finish(gc, stale, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

int verb_gc(const struct options *options, char *const *operands, struct cni_error *err)
{
	struct gc gc = {.options = options, .items.file = stdout};
	int result = run(&gc, err);

	mappings_release(&gc.mappings);
	/* The host has the socket and the datapath. */
	gc.view.socket = NULL;
	view_close(&gc.view);
	host_close(&gc.host);
	free(gc.connections);
	return result;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* statistics.c - everything that `bpf-portmap stats` shows, read once. */
#include "operator/view/statistics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "lib/ports.h"
#include "lib/text.h"

const struct counter_word counter_words[] = {
#define X(name, meaning) {#name, meaning, offsetof(struct counters, name)},
	COUNTERS(X)
#undef X
};

const size_t counter_word_count = sizeof(counter_words) / sizeof(counter_words[0]);

uint64_t counter_of(const struct counters *counters, const struct counter_word *word)
{
	return *(const __u64 *)((const char *)counters + word->offset);
}

void flow_counts_add(struct flow_counts *counts, const struct connection *connection)
{
	if (connection->state & STATE_ASSURED)
		counts->established++;
	else
		counts->half_open++;
}

/* Both maps are used from 1. */
static uint64_t places(const struct view *view, enum map_number map)
{
	uint32_t capacity = map_capacity(&view->datapath.objects, map);

	return capacity ? capacity - 1 : 0;
}

void flow_counts_read_limits(struct flow_counts *counts, const struct view *view)
{
	if (view->is_empty)
		return;
	counts->established_max = places(view, MAP_ASSURED);
	counts->half_open_max = places(view, MAP_HALF_OPEN);
}

json_t *flow_counts_json(const struct flow_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "established", (json_int_t)counts->established,
			 "established_max", (json_int_t)counts->established_max, "half_open",
			 (json_int_t)counts->half_open, "half_open_max",
			 (json_int_t)counts->half_open_max);
}

const char *flow_counts_format(const struct flow_counts *counts, char text[FLOW_COUNTS_TEXT_SIZE])
{
	char numbers[4][NUMBER_TEXT_SIZE];
	uint64_t most = counts->established_max ? counts->established_max : 1;

	snprintf(text, FLOW_COUNTS_TEXT_SIZE, "table %s of %s (%llu %%), half-open %s of %s",
		 format_number(counts->established, numbers[0]),
		 format_number(counts->established_max, numbers[1]),
		 (unsigned long long)(100 * counts->established / most),
		 format_number(counts->half_open, numbers[2]),
		 format_number(counts->half_open_max, numbers[3]));
	return text;
}

static int read_flows(struct statistics *statistics, struct view *view, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &view->datapath.objects,
					     .map = MAP_CONNECTIONS};

	flow_counts_read_limits(&statistics->flows, view);
	while (map_next(&walk, err))
		if (view_is_alive(view, walk.key, walk.value))
			flow_counts_add(&statistics->flows, walk.value);
	return walk.failed ? -1 : 0;
}

static void add_table(struct statistics *statistics, enum map_number map, uint64_t entries,
		      uint64_t max_entries)
{
	statistics->tables[statistics->table_count++] =
		(struct table_use){map_name(map), entries, max_entries};
}

/* Records in `connections` outlive their connections until their memory is needed: what tells how
 * full the table is are those that live. */
static int read_tables(struct statistics *statistics, const struct objects *objects,
		       struct cni_error *err)
{
	static const enum map_number maps[] = {MAP_ALIASES,   MAP_PORTMAPS,   MAP_ATTACHMENTS,
					       MAP_ENDPOINTS, MAP_INTERFACES, MAP_NETWORKS,
					       MAP_POLICIES,  MAP_FRAGMENTS,  MAP_HOST_ADDRESSES};
	const struct flow_counts *flows = &statistics->flows;

	_Static_assert(sizeof(maps) / sizeof(maps[0]) + 2 <= TABLE_COUNT, "all have room");
	add_table(statistics, MAP_ASSURED, flows->established, flows->established_max);
	add_table(statistics, MAP_HALF_OPEN, flows->half_open, flows->half_open_max);
	for (size_t i = 0; i < sizeof(maps) / sizeof(maps[0]); i++) {
		cleanup_walk struct map_walk walk = {.objects = objects, .map = maps[i]};
		uint64_t entries = 0;

		while (map_next(&walk, err))
			entries++;
		if (walk.failed)
			return -1;
		add_table(statistics, maps[i], entries, map_capacity(objects, maps[i]));
	}
	return 0;
}

/* Names of networks need not be UTF-8. */
static void tally(json_t **counts, const char *network, const char *word)
{
	json_t *words;

	*counts = *counts ? *counts : or_exit(json_object());
	words = json_object_get(*counts, network);
	if (!words)
		json_object_set_new_nocheck(*counts, network, words = or_exit(json_object()));
	json_object_set_new_nocheck(
		words, word, json_integer(json_integer_value(json_object_get(words, word)) + 1));
}

static int count_attachments(struct statistics *statistics, const struct objects *objects,
			     struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_ATTACHMENTS};

	while (map_next(&walk, err)) {
		const struct attachment *record = walk.value;
		struct attachment_name name;

		if (!attachment_name_split(walk.key, &name))
			name.network = "";
		else
			cni_printable((char *)name.network, "");
		tally(&statistics->attachments, name.network,
		      record->state == ATTACHMENT_READY ? "ready" : "adding");
	}
	return walk.failed ? -1 : 0;
}

static void add_hooks(struct statistics *statistics, const struct interface *interface,
		      uint32_t ifindex, const char *name)
{
	for (enum hook hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);
		struct hook_use *use;

		if (program == PROGRAM_COUNT)
			continue;
		use = ARRAY_ADD(statistics->hooks, statistics->hook_count);
		use->hook = hook_name(hook);
		use->attached = hook_has_program(ifindex, hook, program);
		memcpy(use->interface, name, sizeof(use->interface));
	}
}

/* Containers' veths are left out: there are many, and they come and go. */
static int read_hooks(struct statistics *statistics, const struct view *view, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &view->datapath.objects,
					     .map = MAP_INTERFACES};
	char name[IF_NAMESIZE];
	uint32_t ifindex;

	while (map_next(&walk, err)) {
		memcpy(&ifindex, walk.key, sizeof(ifindex));
		if (!interface_is_containers(walk.value) && view_interface(view, ifindex, name))
			add_hooks(statistics, walk.value, ifindex, name);
	}
	return walk.failed ? -1 : 0;
}

/* Of one map, as the kernel charges it; 0: it does not say. */
static uint64_t memory_of(int fd)
{
	unsigned long long bytes = 0;
	char path[64], line[128];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "memlock:%llu", &bytes) == 1)
			break;
	if (file)
		fclose(file);
	return bytes;
}

int statistics_read(struct statistics *statistics, struct view *view,
		    const struct mappings *mappings, struct cni_error *err)
{
	const struct objects *objects = &view->datapath.objects;

	snprintf(statistics->version, sizeof(statistics->version), "%.*s", PROGRAM_VERSION_SIZE - 1,
		 view->datapath.maker);
	cni_printable(statistics->version, "");
	if (view->is_empty)
		return 0;
	for (int map = 0; map < MAP_COUNT; map++)
		statistics->memory += memory_of(map_fd(objects, map));
	if (counters_read(objects, &statistics->counters, err) ||
	    read_flows(statistics, view, err) || read_tables(statistics, objects, err))
		return -1;
	for_each (mapping, mappings->list, mappings->count) {
		const struct container_info *container =
			view_container(view, mapping->portmap.owner);

		tally(&statistics->ports, container ? container->name.network : "",
		      protocol_word(mapping->key.protocol));
	}
	return count_attachments(statistics, objects, err) || read_hooks(statistics, view, err) ? -1
												: 0;
}

void statistics_release(struct statistics *statistics)
{
	free(statistics->checks);
	free(statistics->hooks);
	json_decref(statistics->ports);
	json_decref(statistics->attachments);
	*statistics = (struct statistics){0};
}

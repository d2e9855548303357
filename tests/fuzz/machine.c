/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* machine.c - loads the programs, and talks to them and to their maps. */
#include "machine.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <err.h>
#include <errno.h>
#include <linux/bpf.h>
#include <string.h>
#include <time.h>

#include "device_members.h"
#include "bpf/portmap.skel.h"

#define WORLDS_A_TABLE 256 /* fill no more than a part of it */
#define TABLE_SIZE 4096    /* enough for a few packets, and soon read through */

static struct portmap_bpf *skeleton;
static int programs[HOOKS];
static int tables[TABLES];
static struct world written;

const char *machine_hook_name(enum hook hook)
{
	static const char *const names[HOOKS] = {"from_uplink", "to_uplink", "from_bridge",
						 "to_container", "from_container"};

	return names[hook];
}

void machine_load(void)
{
	skeleton = portmap_bpf__open();
	if (skeleton)
		skeleton->data->pair_numbers = FLOW_PAIRS(TABLE_SIZE); /* as the loader does */
	if (!skeleton || bpf_map__set_max_entries(skeleton->maps.flows, TABLE_SIZE) ||
	    bpf_map__set_max_entries(skeleton->maps.flow_pairs, FLOW_PAIRS(TABLE_SIZE)) ||
	    bpf_map__set_max_entries(skeleton->maps.flows_new, TABLE_SIZE) ||
	    portmap_bpf__load(skeleton))
		err(1, "loading the programs");
	for (enum hook hook = 0; hook < HOOKS; hook++)
		programs[hook] = bpf_program__fd(
			bpf_object__find_program_by_name(skeleton->obj, machine_hook_name(hook)));
	tables[NEW] = bpf_map__fd(skeleton->maps.flows_new);
	tables[ANSWERED] = bpf_map__fd(skeleton->maps.flows);
}

uint32_t machine_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (uint32_t)now.tv_sec;
}

static void update(int map, const void *key, const void *value)
{
	if (bpf_map_update_elem(map, key, value, BPF_ANY))
		err(1, "writing to a map");
}

static void write_slots(const struct world *world)
{
	/* Also those that are the same: the programs count in them. */
	for (uint32_t i = 0; i < WORLD_SLOTS; i++) {
		struct slot slot = world->slots[i];

		slot.container = i;
		if (slot.ifindex)
			update(bpf_map__fd(skeleton->maps.veths), &i, &slot.ifindex);
		update(bpf_map__fd(skeleton->maps.slots), &i, &slot);
	}
}

static void write_policies(const struct world *world)
{
	int map = bpf_map__fd(skeleton->maps.policies);

	for (uint32_t i = 1; i < WORLD_SLOTS; i++) {
		if (world->has_policy[i])
			update(map, &i, &world->policies[i]);
		else if (written.has_policy[i])
			bpf_map_delete_elem(map, &i);
	}
}

static void write_endpoints(const struct world *world)
{
	int map = bpf_map__fd(skeleton->maps.endpoints);

	for (int i = 0; i < WORLD_ENDPOINTS; i++) {
		const struct world_endpoint *endpoint = &world->endpoints[i];

		if (memcmp(endpoint, &written.endpoints[i], sizeof(*endpoint)) == 0)
			continue;
		if (endpoint->present)
			update(map, &endpoint->key, &endpoint->value);
		else
			bpf_map_delete_elem(map, &endpoint->key);
	}
}

static void write_interfaces(const struct world *world)
{
	int map = bpf_map__fd(skeleton->maps.interfaces);

	for (int i = 0; i < WORLD_INTERFACES; i++) {
		const struct world_interface *interface = &world->interfaces[i];

		if (memcmp(interface, &written.interfaces[i], sizeof(*interface)) == 0)
			continue;
		if (interface->present)
			update(map, &interface->ifindex, &interface->value);
		else
			bpf_map_delete_elem(map, &interface->ifindex);
	}
}

static void publish_port(__u16 port)
{
	int map = bpf_map__fd(skeleton->maps.published_ports);
	__u32 word = port / 64;
	__u64 bits = 0;

	bpf_map_lookup_elem(map, &word, &bits);
	bits |= 1ULL << (port % 64);
	update(map, &word, &bits);
}

static void write_portmaps(const struct world *world)
{
	int map = bpf_map__fd(skeleton->maps.portmaps);

	for (int i = 0; i < written.portmap_count; i++)
		bpf_map_delete_elem(map, &written.portmaps[i].key);
	for (int i = 0; i < world->portmap_count; i++) {
		publish_port(world->portmaps[i].key.host_port);
		update(map, &world->portmaps[i].key, &world->portmaps[i].value);
	}
}

static void write_settings(const struct world *world)
{
	struct meta meta = {.layout = LAYOUT, .complete = 1};
	uint32_t only = 0;

	update(bpf_map__fd(skeleton->maps.noticed), &only, &world->noticed);
	memcpy(meta.masquerade_ports, world->ranges, sizeof(meta.masquerade_ports));
	update(bpf_map__fd(skeleton->maps.meta), &only, &meta);
}

static void write_flows(const struct world *world)
{
	struct flow_key keys[WORLD_FLOWS];

	for (enum table table = 0; table < TABLES; table++) {
		int count = machine_read_table(table, keys, WORLD_FLOWS);

		for (int i = 0; i < count; i++)
			bpf_map_delete_elem(tables[table], &keys[i]);
	}
	for (int i = 0; i < world->flow_count; i++)
		update(tables[world->flows[i].table], &world->flows[i].key, &world->flows[i].value);
}

/* Flows end with their world, without a word to their pairs, which would fill the table. */
static void free_pairs(void)
{
	static const struct flow_pair free_ones[FLOW_PAIRS(TABLE_SIZE)];
	static uint32_t numbers[FLOW_PAIRS(TABLE_SIZE)], worlds;
	uint32_t count = FLOW_PAIRS(TABLE_SIZE);

	if (worlds++ % WORLDS_A_TABLE != 0)
		return;
	for (uint32_t i = 0; i < count; i++)
		numbers[i] = i;
	if (bpf_map_update_batch(bpf_map__fd(skeleton->maps.flow_pairs), numbers, free_ones, &count,
				 NULL))
		err(1, "freeing flow_pairs");
}

void machine_write(const struct world *world)
{
	free_pairs();
	write_slots(world);
	write_policies(world);
	write_endpoints(world);
	write_interfaces(world);
	write_portmaps(world);
	write_settings(world);
	write_flows(world);
	skeleton->data->shortcuts_era++; /* those were of the world before */
	written = *world;
}

int machine_run(enum hook hook, uint32_t device, uint32_t came_in_by, struct frame *frame)
{
	static uint8_t out[FRAME_SIZE];
	struct __sk_buff context = {.ifindex = device, .ingress_ifindex = came_in_by};
	DECLARE_LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame->bytes,
			    .data_size_in = (uint32_t)frame->length, .data_out = out,
			    .data_size_out = sizeof(out), .ctx_in = &context,
			    .ctx_size_in = sizeof(context), .repeat = 1);

	if (bpf_prog_test_run_opts(programs[hook], &options))
		return MACHINE_REFUSED;
	frame->length = options.data_size_out;
	memcpy(frame->bytes, out, frame->length);
	return (int)options.retval;
}

static void forget(struct world *world, struct world_flow *flow)
{
	if (flow)
		*flow = world->flows[--world->flow_count];
}

void machine_read_flow(struct world *world, const struct flow_key *key)
{
	for (enum table table = 0; table < TABLES; table++) {
		struct world_flow *known = world_flow(world, table, key);
		struct flow value;

		if (bpf_map_lookup_elem(tables[table], key, &value)) {
			forget(world, known);
			continue;
		}
		if (!known && world->flow_count == WORLD_FLOWS)
			errx(1, "too many flows");
		if (!known)
			known = &world->flows[world->flow_count++];
		*known = (struct world_flow){.table = table, .key = *key, .value = value};
	}
}

void machine_read_fragment(struct world *world, const struct fragment_key *key)
{
	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.fragments), key, &world->fragment))
		memset(&world->fragment, 0, sizeof(world->fragment));
}

void machine_read_noticed(struct world *world)
{
	uint32_t only = 0;

	if (bpf_map_lookup_elem(bpf_map__fd(skeleton->maps.noticed), &only, &world->noticed))
		err(1, "reading what was noticed");
}

int machine_read_table(enum table table, struct flow_key *keys, int limit)
{
	static struct flow_key found[TABLE_SIZE];
	static struct flow values[TABLE_SIZE];
	uint64_t position;
	uint32_t count = TABLE_SIZE;
	int got = bpf_map_lookup_batch(tables[table], NULL, &position, found, values, &count, NULL);

	if (got && errno != ENOENT)
		err(1, "reading a flow table");
	if ((int)count > limit)
		count = (uint32_t)limit;
	memcpy(keys, found, count * sizeof(*keys));
	return (int)count;
}

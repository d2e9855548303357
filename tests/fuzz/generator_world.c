/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator_world.c - random configurations, mostly valid ones. */
#include <stdio.h>
#include <string.h>

#include "../packet/host.h"
#include "generator.h"
#include "pools.h"
#include "random.h"

struct owner generator_owner(const struct world *world, uint32_t slot)
{
	struct owner owner = {.slot = slot, .generation = world->slots[slot].generation};

	owner.generation -= !world->busy && random_one_in(10);
	return owner;
}

/* Mostly container n has slot n + 1. */
static uint32_t slot_of_container(int container)
{
	return random_one_in(12) ? 1 + random_below(WORLD_SLOTS - 1) : (uint32_t)container + 1;
}

static void make_slots(struct world *world)
{
	static const uint32_t veths[WORLD_SLOTS] = {0,          VETH_ONE,    VETH_TWO,
						    VETH_QUIET, VETH_ROUTED, VETH_DELETED};

	for (uint32_t i = 1; i < WORLD_SLOTS; i++) {
		world->slots[i].ifindex = veths[i];
		if (world->with_paths)
			world->slots[i].fast_path = random_one_in(6)
							    ? FAST_PATH_OFF
							    : (enum fast_path)(1 + random_below(2));
		world->slots[i].generation = 40 + i + random_below(2);
		world->slots[i].live = !random_one_in(10);
		world->slots[i].gateway = veths[i] == VETH_ROUTED ? VETH_ROUTED : BRIDGE;
		memcpy(world->slots[i].gateway_mac, host_mac((enum device)world->slots[i].gateway),
		       MAC_SIZE);
		world->veth_gone[i] = random_one_in(20);
	}
}

static int make_address_ranges(struct address_range *ranges)
{
	static const char *const prefixes[] = {"198.51.100.0/24", "198.51.100.80/32",
					       "10.10.0.0/16",    "192.0.2.1/32",
					       "2001:db8::/32",   "2001:db8:99::80/128",
					       "fd00:10::/64",    "2001:db8:1::1/128",
					       "0.0.0.0/0",       "::/0"};
	int count = random_one_in(3) ? 1 + (int)random_below(3) : 0;

	for (int i = 0; i < count; i++) {
		char text[32];
		int length;

		sscanf(RANDOM_OF(prefixes), "%31[^/]/%d", text, &length);
		world_address(ranges[i].address, text);
		ranges[i].prefix_length = (uint8_t)length;
		ranges[i].exception = random_one_in(3);
	}
	return count;
}

static void make_policy(struct world *world, uint32_t slot)
{
	struct policy *policy = &world->policies[slot];

	world->has_policy[slot] = true;
	policy->owner.slot = slot;
	policy->owner.generation = world->slots[slot].generation - random_one_in(8);
	policy->max_flows = random_one_in(3) ? 1 + random_below(6) : 0;
	policy->masquerade_all = random_one_in(3);
	policy->keep_hairpin_source = random_one_in(4);
	policy->source4_count = random_one_in(4);
	policy->source6_count = random_one_in(4);
	world_address(policy->sources4[0], v4_host_other);
	world_address(policy->sources6[0], v6_second_uplink);
	policy->unmasqueraded_count = (uint8_t)make_address_ranges(policy->unmasqueraded);
	policy->source_range_count = (uint8_t)make_address_ranges(policy->source_ranges);
	policy->excluded_count = (uint8_t)make_address_ranges(policy->excluded);
	if (random_one_in(4))
		policy->masquerade_ports[0] = (struct port_range){20001, 20003};
}

static void make_policies(struct world *world)
{
	for (uint32_t slot = 1; slot < WORLD_SLOTS; slot++) {
		if (random_one_in(4)) {
			make_policy(world, slot);
			world->slots[slot].has_policy = !random_one_in(16);
		}
	}
}

static void make_endpoints(struct world *world)
{
	static const uint8_t lengths4[] = {16, 16, 16, 24, 32, 8, 0, 29},
			     lengths6[] = {64, 64, 64, 128, 48, 0, 65, 127};

	for (int i = 0; i < WORLD_ENDPOINTS; i++) {
		struct world_endpoint *endpoint = &world->endpoints[i];
		bool stranger = i / 2 == 4, v4 = i % 2 == 0;

		pool_container(endpoint->key.address, i / 2, v4);
		endpoint->present = random_one_in(10) == stranger;
		endpoint->value = (struct endpoint){
			.owner = generator_owner(world, slot_of_container(i / 2)),
			.prefix_length = v4 ? RANDOM_OF(lengths4) : RANDOM_OF(lengths6),
			.masquerade = !random_one_in(4),
			.strict = random_one_in(5)};
	}
}

static void make_interfaces(struct world *world)
{
	static const uint32_t devices[WORLD_INTERFACES] = {
		UPLINK,     SECOND_UPLINK, BRIDGE,       VETH_ONE,    VETH_TWO,
		VETH_QUIET, VETH_ROUTED,   VETH_DELETED, UNCLASSIFIED};

	for (int i = 0; i < WORLD_INTERFACES; i++) {
		struct world_interface *interface = &world->interfaces[i];
		struct interface *value = &interface->value;
		int container = i - 3;

		interface->ifindex = devices[i];
		interface->present = !random_one_in(devices[i] == UNCLASSIFIED ? 1 : 12);
		value->role = i < 2 ? ROLE_UPLINK : ROLE_BRIDGE;
		if (random_one_in(8))
			world_address(value->address4, v4_host_other);
		if (random_one_in(8))
			world_address(value->address6, v6_host);
		if (container < 0 || devices[i] == UNCLASSIFIED)
			continue;
		value->role = devices[i] == VETH_ROUTED ? ROLE_ROUTED : ROLE_PORT;
		value->owner = generator_owner(world, slot_of_container(container));
		if (value->role == ROLE_PORT) {
			value->bridge_ifindex = BRIDGE;
			memcpy(value->bridge_mac, host_mac(BRIDGE), MAC_SIZE);
		}
	}
}

static void make_ranges(struct world *world)
{
	static const struct port_range crowded[3] = {{20001, 20003}};
	static const struct port_range sets[][3] = {
		{{20000, 29999}}, {{20000, 29999}},
		{{1024, 65535}},  {{20000, 20004}},
		{{20001, 20001}}, {{1024, 1024}, {20000, 20001}, {33333, 33333}},
		{{0, 0}},         {{65535, 65535}, {80, 80}}};

	memcpy(world->ranges, RANDOM_OF(sets), sizeof(sets[0]));
	if (world->crowded)
		memcpy(world->ranges, crowded, sizeof(crowded));
}

static bool has_portmap(const struct world *world, const struct portmap_key *key)
{
	for (int i = 0; i < world->portmap_count; i++)
		if (memcmp(&world->portmaps[i].key, key, sizeof(*key)) == 0)
			return true;
	return false;
}

static void make_portmaps(struct world *world)
{
	static const enum protocol protocols[] = {PROTOCOL_TCP, PROTOCOL_TCP, PROTOCOL_UDP,
						  PROTOCOL_UDP, PROTOCOL_SCTP};
	int wanted = (int)random_below(WORLD_PORTMAPS);

	while (wanted--) {
		struct world_portmap *portmap = &world->portmaps[world->portmap_count];
		int container = (int)random_below(4);
		bool v4 = random_below(2);

		memset(portmap, 0, sizeof(*portmap));
		portmap->key.protocol = RANDOM_OF(protocols);
		portmap->key.host_port = pool_port();
		if (random_below(2))
			world_address(portmap->key.host_address, v4 ? "0.0.0.0" : "::");
		else
			pool_host(portmap->key.host_address, v4);
		portmap->value.owner = generator_owner(world, slot_of_container(container));
		pool_container(portmap->value.container_address, container, v4);
		portmap->value.container_port = pool_port();
		world->portmap_count += !has_portmap(world, &portmap->key);
	}
}

static void set_bit(uint64_t *words, uint32_t bit)
{
	words[bit / 64] |= 1ULL << bit % 64;
}

/* Some bits are of entries that no longer exist. */
static void make_bits(struct world *world)
{
	uint64_t halves[2];
	uint8_t address[16];

	for (int i = 0; i < world->portmap_count; i++) {
		const struct portmap_key *key = &world->portmaps[i].key;

		set_bit(world->published_ports, key->host_port);
		world_any_address(address, key->host_address);
		if (memcmp(address, key->host_address, sizeof(address)) != 0)
			set_bit(world->published_ports, 65536 + key->host_port);
	}
	if (random_one_in(3))
		set_bit(world->published_ports, pool_port());
	for (int i = 0; i < WORLD_ENDPOINTS; i++) {
		memcpy(halves, world->endpoints[i].key.address, sizeof(halves));
		if (world->endpoints[i].present || random_one_in(3))
			set_bit(world->endpoint_addresses, address_hash(halves[0], halves[1]));
	}
	if (random_one_in(3)) {
		pool_host(address, random_below(2));
		world_notice_external(world, address);
		world->surplus_port = pool_port();
	}
	world->noticed.masquerade_all = !random_one_in(4);
}

void generator_world(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->now = machine_now();
	world->size = (int)random_below(WORLD_SIZES);
	world->with_paths = random_one_in(4);
	world->port_seed = random_number();
	world->busy = random_one_in(4);
	world->crowded = random_one_in(6);
	make_slots(world);
	make_policies(world);
	make_endpoints(world);
	make_interfaces(world);
	make_ranges(world);
	make_portmaps(world);
	make_bits(world);
	generator_records(world);
}

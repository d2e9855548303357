/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator_world.c - random maps: mostly sound ones. */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "../packet/host.h"
#include "generator.h"
#include "pools.h"
#include "random.h"

static struct owner owner_of(const struct world *world, uint32_t slot)
{
	struct owner owner = {.slot = slot, .generation = world->slots[slot].generation};

	owner.generation -= random_one_in(10);
	return owner;
}

/* Each container has the slot of its place in the list. */
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
	for (uint32_t slot = 1; slot < WORLD_SLOTS; slot++)
		if (random_one_in(4))
			make_policy(world, slot);
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
			.owner = owner_of(world, slot_of_container(i / 2)),
			.prefix_length = v4 ? RANDOM_OF(lengths4) : RANDOM_OF(lengths6),
			.masquerade = !random_one_in(4)};
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
		value->owner = owner_of(world, slot_of_container(container));
		if (value->role == ROLE_PORT) {
			value->bridge_ifindex = BRIDGE;
			memcpy(value->bridge_mac, host_mac(BRIDGE), MAC_SIZE);
		}
	}
}

static void make_ranges(struct world *world)
{
	static const struct port_range sets[][3] = {
		{{20000, 29999}}, {{20000, 29999}},
		{{1024, 65535}},  {{20000, 20004}},
		{{20001, 20001}}, {{1024, 1024}, {20000, 20001}, {33333, 33333}},
		{{0, 0}},         {{65535, 65535}, {80, 80}}};

	memcpy(world->ranges, RANDOM_OF(sets), sizeof(sets[0]));
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
		portmap->value.owner = owner_of(world, slot_of_container(container));
		pool_container(portmap->value.container_address, container, v4);
		portmap->value.container_port = pool_port();
		world->portmap_count += !has_portmap(world, &portmap->key);
	}
}

static void add_flow(struct world *world, const struct flow_key *key, const struct flow *flow)
{
	enum table table = flow->state == STATE_NEW ? NEW : ANSWERED;

	if (random_one_in(8) || world_flow(world, NEW, key) || world_flow(world, ANSWERED, key))
		return;
	world->flows[world->flow_count++] =
		(struct world_flow){.table = table, .key = *key, .value = *flow};
}

/* Around every time-out, never at one. */
static uint32_t random_age(void)
{
	static const uint32_t ages[] = {0, 0, 0, 1, 30, 30, 30, 90, 150, 230, 270, 400, 8000};

	return RANDOM_OF(ages);
}

static void make_mapped(struct world *world, struct flow_key *key, struct flow *flow, bool v4)
{
	key->direction = DIRECTION_IN;
	flow->kind = FLOW_MAPPING;
	pool_outside(key->source, v4);
	pool_host(key->destination, v4);
	pool_container(flow->address, (int)flow->owner.slot - 1, v4);
	flow->port = pool_port();
	flow->peer_port = random_one_in(3) ? pool_port() : key->source_port;
}

static void make_masqueraded(struct world *world, struct flow_key *key, struct flow *flow, bool v4)
{
	key->direction = DIRECTION_OUT;
	flow->kind = FLOW_MASQUERADE;
	pool_container(key->source, (int)flow->owner.slot - 1, v4);
	pool_outside(key->destination, v4);
	pool_host(flow->address, v4);
	flow->port = random_below(2) ? pool_port() : key->source_port;
	flow->peer_port = key->destination_port;
}

static void make_direct(struct world *world, struct flow_key *key, struct flow *flow, bool v4)
{
	key->direction = DIRECTION_IN;
	flow->kind = FLOW_DIRECT;
	pool_outside(key->source, v4);
	pool_container(key->destination, (int)flow->owner.slot - 1, v4);
	memcpy(flow->address, key->destination, 16);
	flow->port = key->destination_port;
	flow->peer_port = random_one_in(4) ? pool_port() : key->source_port;
}

static void make_host_flow(struct world *world, struct flow_key *key, struct flow *flow, bool v4)
{
	key->direction = DIRECTION_OUT;
	flow->kind = FLOW_HOST;
	flow->owner = (struct owner){0};
	pool_host(key->source, v4);
	pool_outside(key->destination, v4);
	memcpy(flow->address, key->source, 16);
	flow->port = key->source_port;
	flow->peer_port = key->destination_port;
}

/* The side that is asked has no identifier of its own. */
static void tidy_echo(struct flow_key *key, struct flow *flow)
{
	if (key->protocol != PROTOCOL_ICMP && key->protocol != PROTOCOL_ICMPV6)
		return;
	key->destination_port = 0;
	key->source_port += !key->source_port;
	if (key->direction == DIRECTION_IN)
		flow->port = 0;
	else
		flow->peer_port = 0;
	if (key->direction == DIRECTION_IN)
		flow->peer_port += !flow->peer_port;
	else
		flow->port += !flow->port;
}

static bool may_have_path(const struct flow_key *key, const struct flow *flow)
{
	return (key->protocol == PROTOCOL_TCP || key->protocol == PROTOCOL_UDP) &&
	       (flow->kind == FLOW_MAPPING || flow->kind == FLOW_MASQUERADE);
}

/* Any path, true or not: what was true of routes and containers a second ago need not be now. */
static void make_path(const struct world *world, struct flow *flow)
{
	static const uint32_t devices[] = {0,        UPLINK,      SECOND_UPLINK, VETH_ONE,
					   VETH_TWO, VETH_ROUTED, BRIDGE,        UNCLASSIFIED};
	static const uint16_t sizes[] = {1500, 1500, 1500, 100, 0};

	flow->left_stack = random_one_in(8) ? 0 : world->now - random_below(7);
	flow->path = random_one_in(4) ? PATH_UNDECIDED : (enum flow_path)(1 + random_below(3));
	flow->out_ifindex = RANDOM_OF(devices);
	flow->out_looked_up = world->now - random_one_in(3);
	flow->path_mtu = RANDOM_OF(sizes);
	if (random_below(2))
		memcpy(flow->path_destination, host_neighbour_mac(), MAC_SIZE);
	memcpy(flow->path_source, host_mac(UPLINK), MAC_SIZE);
}

static void make_flow(struct world *world)
{
	static void (*const kinds[])(struct world *, struct flow_key *, struct flow *, bool) = {
		make_mapped, make_masqueraded, make_direct, make_host_flow};
	static const uint8_t protocols[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_SCTP};
	bool v4 = random_below(2);
	struct flow_key key = {.protocol = (enum protocol)RANDOM_OF(protocols)}, other_key;
	struct flow flow = {.owner = owner_of(world, 1 + random_below(4))}, other;
	bool new = random_below(2);

	if (key.protocol == PROTOCOL_ICMP && !v4)
		key.protocol = PROTOCOL_ICMPV6;
	key.source_port = pool_port();
	key.destination_port = pool_port();
	flow.state = new ? STATE_NEW : (enum flow_state)(STATE_ESTABLISHED + random_below(3));
	flow.answered = !new || random_below(2);
	flow.last_seen = world->now - random_age();
	RANDOM_OF(kinds)(world, &key, &flow, v4);
	tidy_echo(&key, &flow);
	world_other_half(&key, &flow, &other_key, &other);
	flow.unconfirmed = flow.kind == FLOW_DIRECT && flow.peer_port == key.source_port &&
			   flow.state == STATE_NEW && random_below(2);
	if (random_one_in(10))
		other.last_seen = world->now - random_age();
	if (random_one_in(16) && other.port)
		other.port = pool_port(); /* half of another flow: this one has lost its tuple */
	if (world->with_paths && may_have_path(&key, &flow)) {
		make_path(world, &flow);
		make_path(world, &other);
	}
	add_flow(world, &key, &flow);
	if (!flow.unconfirmed)
		add_flow(world, &other_key, &other);
}

void generator_world(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->now = machine_now();
	world->with_paths = random_one_in(3);
	make_slots(world);
	make_policies(world);
	make_endpoints(world);
	make_interfaces(world);
	make_ranges(world);
	make_portmaps(world);
	for (int wanted = (int)random_below(10); wanted > 0; wanted--)
		make_flow(world);
}

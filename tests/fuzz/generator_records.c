/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator_records.c - random connections, in tables that are sometimes nearly full. */
#include <netinet/in.h>
#include <string.h>

#include "../packet/host.h"
#include "generator.h"
#include "pools.h"
#include "random.h"

/* Before or after each time-out, never at one */
static uint32_t random_age(const struct world *world)
{
	static const uint32_t young[] = {0, 1, 5, 30};
	static const uint32_t ages[] = {0,  0,  0,  0,   1,   5,   30,  30,   30,    45,
					70, 90, 90, 150, 230, 270, 400, 8000, 500000};

	return world->busy ? RANDOM_OF(young) : RANDOM_OF(ages);
}

/* From a client to a mapped port */
static void make_mapped(struct world *world, struct world_connection *record, bool v4)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;

	value->kind = FLOW_MAPPING;
	pool_container(key->inside, (int)value->owner.slot - 1, v4);
	pool_outside(key->outside, v4);
	pool_host(value->external_address, v4);
	value->external_port = pool_port();
	if (world->portmap_count && random_below(2)) {
		const struct world_portmap *portmap =
			&world->portmaps[random_below((uint32_t)world->portmap_count)];

		if (address_is_ipv4(portmap->key.host_address) == v4) {
			key->protocol = portmap->key.protocol;
			key->inside_port = portmap->value.container_port;
			memcpy(key->inside, portmap->value.container_address, 16);
			value->owner = portmap->value.owner;
			value->external_port = portmap->key.host_port;
			if (world_route(portmap->key.host_address) == 0)
				memcpy(value->external_address, portmap->key.host_address, 16);
		}
	}
	value->peer_port = random_one_in(4) ? pool_port() : key->outside_port;
}

/* Begun by a container, or towards it through a mapping */
static void make_masqueraded(struct world *world, struct world_connection *record, bool v4)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;
	bool outward = !random_one_in(4);

	value->kind = FLOW_MASQUERADE;
	value->begun_inside = 1;
	value->state = outward ? STATE_CHARGED_OUT : 0;
	pool_container(key->inside, (int)random_below(4), v4);
	pool_container(key->outside, (int)value->owner.slot - 1, v4);
	if (outward) {
		pool_container(key->inside, (int)value->owner.slot - 1, v4);
		pool_outside(key->outside, v4);
	}
	pool_host(value->external_address, v4);
	value->external_port = random_below(2) ? pool_port() : key->inside_port;
	if (world->crowded && outward) {
		world_address(key->outside, v4 ? v4_server : v6_server);
		key->outside_port = 80;
		world_address(value->external_address, v4 ? v4_host : v6_host);
		value->external_port = (uint16_t)(20001 + random_below(3));
	}
	value->peer_port = key->outside_port;
	value->uplink = random_one_in(4) ? SECOND_UPLINK : world_route(key->outside);
}

/* From a client to a container's own address, or of a strict container */
static void make_direct(struct world *world, struct world_connection *record, bool v4)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;

	value->kind = FLOW_DIRECT;
	value->begun_inside = random_one_in(4);
	value->state = value->begun_inside || random_one_in(4) ? STATE_CHARGED_OUT : 0;
	pool_container(key->inside, (int)value->owner.slot - 1, v4);
	pool_outside(key->outside, v4);
	memcpy(value->external_address, key->inside, 16);
	value->external_port = key->inside_port;
	value->peer_port = key->outside_port;
	if (!value->begun_inside && random_one_in(4))
		value->peer_port = pool_port();
}

/* Of the host or of another NAT */
static void make_host(struct world *world, struct world_connection *record, bool v4)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;

	value->kind = random_one_in(3) ? FLOW_FOREIGN : FLOW_HOST;
	value->begun_inside = 1;
	value->state = STATE_CHARGED_OUT;
	value->owner = (struct owner){0};
	pool_host(key->inside, v4);
	pool_outside(key->outside, v4);
	memcpy(value->external_address, key->inside, 16);
	value->external_port = key->inside_port;
	value->peer_port = key->outside_port;
	if (value->kind == FLOW_HOST && wire_has_ports(key->protocol) && random_one_in(4)) {
		value->external_port = pool_port();
		world->noticed.moved_host = 1;
	}
}

/* An echo's identifier is a port of the requester's side only. */
static void tidy_echo(struct world_connection *record)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;

	if (key->protocol != PROTOCOL_ICMP && key->protocol != PROTOCOL_ICMPV6)
		return;
	if (value->begun_inside) {
		key->outside_port = value->peer_port = 0;
		key->inside_port += !key->inside_port;
		value->external_port += !value->external_port;
		if (value->kind != FLOW_MASQUERADE)
			value->external_port = key->inside_port;
	} else {
		key->inside_port = value->external_port = 0;
		key->outside_port += !key->outside_port;
		value->peer_port += !value->peer_port;
	}
}

/* Only masqueraded and direct connections may be without ports. */
static bool tidy_portless(struct world_connection *record)
{
	struct connection_key *key = &record->key;
	struct connection *value = &record->value;

	if (!wire_is_portless(key->protocol))
		return true;
	key->inside_port = key->outside_port = 0;
	value->external_port = value->peer_port = 0;
	return value->kind == FLOW_MASQUERADE || value->kind == FLOW_DIRECT;
}

/* Numbers close to those of packets (craft.c) */
static uint32_t random_sequence(void)
{
	static const uint32_t numbers[] = {0x01020304, 0x01020304, 0x01020305, 0x01020303,
					   0x01020404, 0x01000000, 0xfffffff0};

	return RANDOM_OF(numbers);
}

static void make_tcp(const struct world *world, struct connection *value)
{
	const uint32_t closes =
		STATE_FIN_INSIDE | STATE_FIN_OUTSIDE | STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE;
	static const uint32_t bits[] = {STATE_FIN_INSIDE,
					STATE_FIN_OUTSIDE,
					STATE_AWAITED_INSIDE,
					STATE_AWAITED_OUTSIDE,
					STATE_SEQUENCE_INSIDE,
					STATE_SEQUENCE_OUTSIDE,
					STATE_SEQUENCE_INSIDE,
					STATE_SEQUENCE_OUTSIDE,
					STATE_ACKNOWLEDGED_INSIDE,
					STATE_ACKNOWLEDGED_OUTSIDE,
					STATE_SYN_INSIDE,
					STATE_SYN_OUTSIDE,
					STATE_DATA,
					STATE_DATA};
	bool half_open = !(value->state & STATE_ASSURED);

	for (int i = 0; i < 2; i++)
		value->tcp[i] = (struct tcp_numbers){random_sequence(), random_sequence()};
	for (uint32_t times = random_below(8); times; times--) {
		uint32_t bit = RANDOM_OF(bits);

		if (!half_open || bit < STATE_AWAITED_INSIDE ||
		    (bit >= STATE_SEQUENCE_INSIDE && bit <= STATE_ACKNOWLEDGED_OUTSIDE))
			value->state |= bit;
	}
	if (world->busy)
		value->state &= ~closes;
}

static bool may_have_path(const struct world_connection *record)
{
	return (record->key.protocol == PROTOCOL_TCP || record->key.protocol == PROTOCOL_UDP) &&
	       (record->value.kind == FLOW_MAPPING || record->value.kind == FLOW_MASQUERADE);
}

/* Any path, right or wrong: routes and containers may have changed since the look-up. */
static void make_path(const struct world *world, struct connection *value, enum way way)
{
	static const uint32_t devices[] = {0,        UPLINK,      SECOND_UPLINK, VETH_ONE,
					   VETH_TWO, VETH_ROUTED, BRIDGE,        UNCLASSIFIED};
	static const uint16_t sizes[] = {1500, 1500, 1500, 100, 0};
	struct next_hop *next_hop = &value->next_hop[way];

	value->left_stack[way] = random_one_in(8) ? 0 : world->now - random_below(7);
	value->path[way] =
		random_one_in(4) ? PATH_UNDECIDED : (enum flow_path)(1 + random_below(3));
	value->in_ifindex = random_below(2) ? UPLINK : 0;
	value->out_ifindex = RANDOM_OF(devices);
	value->out_asked = (uint16_t)(world->now - random_one_in(3));
	next_hop->ifindex = RANDOM_OF(devices);
	next_hop->asked = (uint16_t)(world->now - random_one_in(3));
	next_hop->mtu = RANDOM_OF(sizes);
	if (random_below(2))
		memcpy(next_hop->destination, host_neighbour_mac(), MAC_SIZE);
	memcpy(next_hop->source, host_mac(UPLINK), MAC_SIZE);
}

static uint32_t find_free(const struct world *world, bool assured)
{
	uint32_t count = assured ? world_places(world)->assured_places
				 : world_places(world)->half_open_places;
	uint32_t first = random_below(count);

	for (uint32_t i = 0; i < count; i++) {
		uint32_t number = 1 + (first + i) % count;

		if (!(assured ? world->assured[number].id : world->half_open[number].id))
			return number;
	}
	return 0;
}

static void give_place(struct world *world, struct world_connection *record)
{
	struct connection *value = &record->value;
	bool assured = value->state & STATE_ASSURED;
	uint32_t until = value->last_seen;

	if (!assured) {
		world->half_open[value->place] = (struct half_open){
			.key = record->key,
			.id = value->id,
			.slot = (uint16_t)value->owner.slot,
			.charged_out = (value->state & STATE_CHARGED_OUT) != 0,
			.counted = !random_one_in(8), /* another CPU has reset the share */
		};
		return;
	}
	if (!record_is_closed(value->state))
		until += record_patience(record, true);
	world->assured[value->place] =
		(struct assured){.id = value->id, .protected_until = until, .key = record->key};
	world->assured[value->place].slot = (uint16_t)value->owner.slot;
}

/* Sometimes the alias is missing or stale. False: another connection has it. */
static bool give_alias(struct world *world, const struct world_connection *record)
{
	struct world_alias alias = {.value = {.inside_port = record->key.inside_port,
					      .outside_port = record->key.outside_port,
					      .id = record->value.id,
					      .made = record->value.last_seen}};

	if (!needs_alias(&record->key, &record->value))
		return true;
	external_key(&record->key, &record->value, &alias.key);
	memcpy(alias.value.inside, record->key.inside, 16);
	if (record->value.kind == FLOW_MASQUERADE)
		alias.value.owner = record->value.owner;
	if (record_alias(world, &alias.key))
		return random_one_in(8);
	if (random_one_in(32))
		return true;
	if (random_one_in(32)) {
		alias.value.id ^= 4; /* of no connection */
		alias.value.made = world->now - random_below(5);
	}
	world_notice_external(world, alias.key.inside);
	world->aliases[world->alias_count++] = alias;
	return true;
}

static void make_state(struct world *world, struct world_connection *record)
{
	struct connection *value = &record->value;

	if (world->busy ? !random_one_in(4) : random_below(2))
		value->state |= STATE_ASSURED | STATE_REPLIED;
	else if (random_below(2))
		value->state |= STATE_REPLIED;
	if (record->key.protocol == PROTOCOL_TCP)
		make_tcp(world, value);
	else
		value->begun = value->last_seen - random_below(4);
	if (value->state & STATE_ASSURED && !record_is_closed(value->state))
		value->state |= STATE_COUNTED;
	if (value->kind == FLOW_DIRECT && value->peer_port == record->key.outside_port &&
	    !(value->state & ~STATE_SEQUENCE_OUTSIDE) && random_below(2)) {
		value->state = STATE_UNCONFIRMED;
		memset(value->tcp, 0, sizeof(value->tcp));
	}
	if (world->with_paths && may_have_path(record))
		for (enum way way = OUTWARDS; way <= INWARDS; way++)
			make_path(world, value, way);
}

static void make_record(struct world *world)
{
	static void (*const kinds[])(struct world *, struct world_connection *,
				     bool) = {make_mapped,      make_mapped, make_masqueraded,
					      make_masqueraded, make_direct, make_host};
	static const uint8_t protocols[] = {IPPROTO_TCP,  IPPROTO_TCP,  IPPROTO_UDP,
					    IPPROTO_ICMP, IPPROTO_SCTP, IPPROTO_GRE};
	struct world_connection record = {0};
	bool v4 = random_below(2);

	record.key.protocol = (enum protocol)RANDOM_OF(protocols);
	if (record.key.protocol == PROTOCOL_ICMP && !v4)
		record.key.protocol = PROTOCOL_ICMPV6;
	record.key.inside_port = pool_port();
	record.key.outside_port = pool_port();
	record.value.owner = generator_owner(world, 1 + random_below(4));
	record.value.last_seen = world->now - random_age(world);
	/* Only the host's connections fill a table: the shares of others are smaller. */
	if (world->busy && random_below(2))
		make_host(world, &record, v4);
	else
		RANDOM_OF(kinds)(world, &record, v4);
	tidy_echo(&record);
	if (!tidy_portless(&record))
		return;
	make_state(world, &record);
	record.value.id = record.value.owner.generation << 16 | 2 | (random_number() & 0xffff);
	record.value.place = find_free(world, record.value.state & STATE_ASSURED);
	if (!record.value.place || record_at(world, &record.key) || !give_alias(world, &record))
		return;
	give_place(world, &record);
	world->connections[world->connection_count++] = record;
}

/* Whether the slot has connections of this generation */
static bool has_records(const struct world *world, uint32_t slot, uint32_t generation)
{
	for (int i = 0; i < world->connection_count; i++) {
		const struct owner *owner = &world->connections[i].value.owner;

		if (owner->slot == slot && owner->generation == generation)
			return true;
	}
	return slot == 0;
}

void generator_records(struct world *world)
{
	uint32_t wanted = random_below(random_one_in(3) || world->busy ? 60 : 10);

	while (wanted--)
		make_record(world);
	for (uint32_t i = 0; i < WORLD_SLOTS; i++)
		world->shares[i].generation =
			world->slots[i].generation -
			(!has_records(world, i, world->slots[i].generation) && random_below(2));
	world->usage.half_open_hand = random_below(world_places(world)->half_open_places);
	world->usage.assured_hand = random_below(world_places(world)->assured_places);
	world_count(world, world->shares, &world->usage);
}

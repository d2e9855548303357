/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verify_records.c - connections, aliases, places and counts after a packet. */
#include <string.h>

#include "question.h"
#include "verify.h"

static bool same_key(const struct connection_key *a, const struct connection_key *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static const struct touch *find_touch(const struct expectation *expected,
				      const struct connection_key *key)
{
	for (int i = 0; i < expected->touch_count && i < TOUCHES; i++)
		if (same_key(&expected->touches[i].key, key))
			return &expected->touches[i];
	return NULL;
}

/* The oracle does not predict paths past the stack, turns in it, nor places. */
static void forget_ways(struct connection *value)
{
	value->state &= ~(uint32_t)STATE_SETTLED;
	memset(value->left_stack, 0, sizeof(value->left_stack));
	memset(value->next_hop, 0, sizeof(value->next_hop));
	memset(value->out_destination, 0, sizeof(value->out_destination));
	value->out_ifindex = 0;
	value->out_asked = 0;
	value->stack_reason = REASON_NONE;
	memset(value->path, 0, sizeof(value->path));
	value->in_ifindex = 0;
	value->place = 0;
}

static const char *compare(const struct connection *is, const struct connection *wanted)
{
	struct connection a = *is, b = *wanted;

	forget_ways(&a);
	forget_ways(&b);
	if (memcmp(&a, &b, sizeof(a)) == 0)
		return NULL;
	if (a.state != b.state)
		return "the connection's state is wrong";
	if (a.last_seen != b.last_seen)
		return "the connection's last_seen is wrong";
	if (memcmp(a.packets, b.packets, sizeof(a.packets)) ||
	    memcmp(a.bytes, b.bytes, sizeof(a.bytes)))
		return "the connection's packet counts are wrong";
	if (memcmp(a.tcp, b.tcp, sizeof(a.tcp)))
		return "the connection's TCP numbers are wrong";
	return "another member of the connection is wrong";
}

static bool is_begun(const struct expectation *expected, const struct world_connection *record)
{
	struct connection wanted = expected->begun.value;

	wanted.id = record->value.id;
	return expected->begins && same_key(&record->key, &expected->begun.key) &&
	       !compare(&record->value, &wanted);
}

/* The same connection, not a new one with its key. */
static const struct world_connection *again(const struct world *world,
					    const struct world_connection *record)
{
	const struct world_connection *found = record_at(world, &record->key);

	return found && found->value.id == record->value.id ? found : NULL;
}

/* The connection, if it still exists. The one that begins in its place may have the same id, which
 * has only 15 random bits. */
static const struct world_connection *still(const struct world *after,
					    const struct expectation *expected,
					    const struct world_connection *record)
{
	const struct world_connection *found = again(after, record);

	return found && !is_begun(expected, found) ? found : NULL;
}

/* Whether a connection may end when the oracle is unsure: a live one needs a reason. */
static bool may_go(const struct world *world, const struct world_connection *record)
{
	const struct connection *value = &record->value;
	const struct world_alias *alias;
	struct connection_key external;

	if (!record_lives(world, record) || !(value->state & STATE_ASSURED) ||
	    record_is_closed(value->state) || !record_has_owner(value) ||
	    world->veth_gone[value->owner.slot] || value->kind == FLOW_MASQUERADE ||
	    record_idle(world, value) > 59)
		return true;
	external_key(&record->key, value, &external);
	alias = record_alias(world, &external);
	return needs_alias(&record->key, value) && alias && alias->value.id != value->id;
}

static const char *verify_before(const struct world *before, const struct world *after,
				 const struct expectation *expected,
				 const struct world_connection *record)
{
	const struct touch *touch = find_touch(expected, &record->key);
	const struct world_connection *now = still(after, expected, record);

	if (expected->unsure)
		return now || may_go(before, record) ? NULL
						     : "a connection has ended without a reason";
	if (touch && touch->ends)
		return now ? "a connection still exists that should have ended" : NULL;
	if (!now)
		return oracle_may_end(before, expected, record)
			       ? NULL
			       : "a connection has ended without a reason";
	if (touch)
		return compare(&now->value, &touch->after);
	return memcmp(&now->value, &record->value, sizeof(record->value))
		       ? "a connection has changed that the packet does not belong to"
		       : NULL;
}

static const char *verify_begun(const struct world *before, const struct world *after,
				const struct expectation *expected)
{
	const struct world_connection *begun = record_at(after, &expected->begun.key);
	struct connection wanted = expected->begun.value;

	for (int i = 0; i < after->connection_count; i++) {
		const struct world_connection *record = &after->connections[i];

		if (!again(before, record) &&
		    !(expected->begins && same_key(&record->key, &expected->begun.key)))
			return "an unexpected new connection";
	}
	if (!expected->begins)
		return NULL;
	if (!begun || (again(before, begun) && !is_begun(expected, begun)))
		return "the new connection is missing";
	if (begun->value.id >> 16 != (wanted.owner.generation & 0xffff) ||
	    (begun->value.id & 0xffff) < 2)
		return "the new connection's id is not valid";
	wanted.id = begun->value.id;
	return compare(&begun->value, &wanted);
}

const char *verify_records(const struct world *before, const struct world *after,
			   const struct expectation *expected)
{
	for (int i = 0; i < before->connection_count; i++) {
		const char *wrong = verify_before(before, after, expected, &before->connections[i]);

		if (wrong)
			return wrong;
	}
	return expected->unsure ? NULL : verify_begun(before, after, expected);
}

static bool has_alias(const struct world *world, const struct world_connection *record)
{
	const struct world_alias *alias;
	struct connection_key external;

	external_key(&record->key, &record->value, &external);
	alias = record_alias(world, &external);
	return alias && alias->value.id == record->value.id;
}

static bool has_place(const struct world *world, const struct world_connection *record)
{
	const struct connection *value = &record->value;
	const struct half_open *half_open = &world->half_open[value->place % (WORLD_HALF_OPEN + 1)];
	const struct assured *assured = &world->assured[value->place % (WORLD_ASSURED + 1)];
	struct connection_key key = key_of_place(assured);

	if (!value->place)
		return false;
	if (value->state & STATE_ASSURED)
		return value->place <= world_places(world)->assured_places &&
		       assured->id == value->id && assured->slot == value->owner.slot &&
		       same_key(&key, &record->key);
	return value->place <= world_places(world)->half_open_places &&
	       half_open->id == value->id && half_open->slot == value->owner.slot &&
	       same_key(&half_open->key, &record->key);
}

/* A fault that was there before is not reported again. */
static const char *verify_record(const struct world *before, const struct world *after,
				 const struct world_connection *record)
{
	const struct world_connection *was = again(before, record);
	uint32_t state = record->value.state;

	if (!record->value.id)
		return "a connection that has ended is still in the table";
	if (!has_place(after, record))
		return "a connection has no place";
	if (state & STATE_COUNTED && (!(state & STATE_ASSURED) || record_is_closed(state)))
		return "a connection is counted that should not be";
	if (state & STATE_ASSURED && !(state & STATE_COUNTED) && !record_is_closed(state))
		return "a connection is not counted";
	if (needs_alias(&record->key, &record->value) && !has_alias(after, record) &&
	    (!was || has_alias(before, was)))
		return "a connection has lost its alias";
	return NULL;
}

static bool leads_somewhere(const struct world *world, const struct world_alias *alias)
{
	const struct world_connection *record;
	struct connection_key key = alias->key, external;
	struct owner owner = {0};

	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	record = record_at(world, &key);
	if (!record || record->value.id != alias->value.id || !needs_alias(&key, &record->value))
		return false;
	external_key(&key, &record->value, &external);
	if (record->value.kind == FLOW_MASQUERADE)
		owner = record->value.owner;
	return same_key(&external, &alias->key) && same_owner(&owner, &alias->value.owner) &&
	       (alias->key.protocol == PROTOCOL_ICMP || alias->key.protocol == PROTOCOL_ICMPV6 ||
		world_noticed_external(world, alias->key.inside));
}

static const char *verify_aliases(const struct world *before, const struct world *after)
{
	for (int i = 0; i < after->alias_count; i++) {
		const struct world_alias *alias = &after->aliases[i];
		const struct world_alias *was = record_alias(before, &alias->key);

		if (!leads_somewhere(after, alias) &&
		    (!was || was->value.id != alias->value.id || leads_somewhere(before, was)))
			return "an alias without a connection";
	}
	return NULL;
}

/* Whether the place is free, or has a connection in this state that knows it. */
static bool is_place_right(const struct world *world, uint32_t number, uint32_t id,
			   const struct connection_key *key, bool assured)
{
	const struct world_connection *record = id ? record_at(world, key) : NULL;

	return !id || (record && record->value.place == number && record->value.id == id &&
		       !(record->value.state & STATE_ASSURED) == !assured);
}

static const char *verify_places(const struct world *world)
{
	for (uint32_t i = 1; i <= world_places(world)->half_open_places; i++)
		if (!is_place_right(world, i, world->half_open[i].id, &world->half_open[i].key,
				    false))
			return "a place in half_open without a connection";
	for (uint32_t i = 1; i <= world_places(world)->assured_places; i++) {
		struct connection_key key = key_of_place(&world->assured[i]);

		if (!is_place_right(world, i, world->assured[i].id, &key, true))
			return "a place in assured without a connection";
	}
	return NULL;
}

static const char *verify_counts(const struct world *world)
{
	struct share shares[WORLD_SLOTS];
	struct usage usage;

	world_count(world, shares, &usage);
	if (usage.assured != world->usage.assured)
		return "the count of assured connections is wrong";
	if (usage.proven != world->usage.proven)
		return "the count of assured TCP connections is wrong";
	if (usage.hogs != world->usage.hogs)
		return "the count of hogs is wrong";
	for (int i = 0; i < WORLD_SLOTS; i++) {
		if (memcmp(shares[i].half_open, world->shares[i].half_open,
			   sizeof(shares[i].half_open)) != 0)
			return "an owner's count of half-open connections is wrong";
		if (memcmp(shares[i].flows, world->shares[i].flows, sizeof(shares[i].flows)) != 0)
			return "an owner's share is wrong";
	}
	return NULL;
}

const char *verify_tables(const struct world *before, const struct world *after)
{
	const char *wrong = NULL;

	for (int i = 0; i < after->connection_count && !wrong; i++)
		wrong = verify_record(before, after, &after->connections[i]);
	if (!wrong)
		wrong = verify_aliases(before, after);
	if (!wrong)
		wrong = verify_places(after);
	return wrong ? wrong : verify_counts(after);
}

const char *verify_hashed_counts(const struct world *world)
{
	static uint16_t clients[SHARES], ports[SHARES];
	static struct external_port external[EXTERNAL_PORTS];
	const struct owner all = {0};
	const char *wrong = NULL;

	memset(clients, 0, sizeof(clients));
	memset(ports, 0, sizeof(ports));
	memset(external, 0, sizeof(external));
	world_count_ports(world, external);
	for (int i = 0; i < world->connection_count; i++)
		if (record_has_client(&world->connections[i]))
			clients[client_place(world->port_seed, &world->connections[i].key,
					     &world->connections[i].value)]++;
	for (int i = 0; i < world->alias_count; i++) {
		const struct world_alias *alias = &world->aliases[i];

		if (!alias->value.owner.slot)
			continue;
		ports[port_place(world->port_seed, &alias->key, &all)]++;
		ports[port_place(world->port_seed, &alias->key, &alias->value.owner)]++;
	}
	for (uint32_t i = 0; i < SHARES && !wrong; i++) {
		if (machine_client_share(i) != clients[i])
			wrong = "a client's share is wrong";
		else if (machine_port_share(i)->ports != ports[i])
			wrong = "the count of ports towards a server is wrong";
	}
	if (!wrong && memcmp(external, machine_external_ports(), sizeof(external)) != 0)
		wrong = "the count of a port's aliases is wrong";
	return wrong;
}

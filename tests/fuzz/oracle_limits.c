/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle_limits.c - shares of the table, and which connections may lose their place. */
#include <string.h>

#include "question.h"

/* The owner's share; that of a predecessor in its slot does not count. */
static void share_of(const struct world *world, const struct owner *owner, struct share *share,
		     uint32_t *hogs)
{
	uint32_t hog = world_places(world)->assured_places / 16;

	*share = world->shares[owner->slot];
	*hogs = world->usage.hogs;
	if (share->generation == owner->generation)
		return;
	for (int i = 0; i < ACCOUNTS; i++)
		*hogs -= share->flows[i] >= hog;
	memset(share, 0, sizeof(*share));
}

/* part: how many of them make the whole; 0: none is to be left */
static uint32_t part_of(uint32_t limit, uint32_t part)
{
	return part ? limit / part : 0;
}

/* maxFlows counts only TCP of TCP, not what others begin of what the container begins, and all of
 * the rest. */
static bool is_within_policy(const struct world *world, const struct owner *owner,
			     const struct share *share, uint32_t account, uint32_t part)
{
	const struct policy *policy = world_policy(world, owner);
	uint32_t flows = 0;

	for (uint32_t i = 0; i < ACCOUNTS; i++)
		if (i & ACCOUNT_PROVEN || !account || (i == ACCOUNT_OUT && i == account))
			flows += share->flows[i];
	return !policy || !policy->max_flows ||
	       flows + part_of(policy->max_flows, part) < policy->max_flows;
}

bool is_hog(const struct world *world, const struct connection_key *key,
	    const struct connection *value)
{
	struct share share;
	uint32_t hogs;

	share_of(world, &value->owner, &share, &hogs);
	return share.flows[account_of(key, value)] >= world_places(world)->assured_places / 16;
}

static uint32_t free_places(const struct world *world)
{
	uint32_t all = world_places(world)->assured_places;

	return all > world->usage.assured ? all - world->usage.assured : 0;
}

/* As the world has them: the machine's counts are those after the packet. */
static uint32_t client_share(const struct world *world, uint32_t place)
{
	uint32_t share = 0;

	for (int i = 0; i < world->connection_count; i++) {
		const struct world_connection *record = &world->connections[i];

		share += record_has_client(record) &&
			 client_place(world->port_seed, &record->key, &record->value) == place;
	}
	return share;
}

/* A hog may grow while more than 1/(hogs + 1) is free; a client gets half of a hog's maximum. What
 * others begin and may be forged gets no place of the last 16th. */
static bool has_part_left(const struct world *world, const struct connection_key *key,
			  const struct connection *value, uint32_t part)
{
	uint32_t all = world_places(world)->assured_places, account = account_of(key, value);
	uint32_t hogs, rest, place, left = free_places(world);
	struct share share;

	if (record_has_owner(value) && !world_owner_live(world, &value->owner) &&
	    world->shares[value->owner.slot].generation != value->owner.generation)
		return true;
	share_of(world, &value->owner, &share, &hogs);
	if (!record_has_owner(value))
		return share.flows[account] < all / 16;
	if (!is_within_policy(world, &value->owner, &share, account, part))
		return false;
	left -= left < part_of(all, part) ? left : part_of(all, part);
	if (share.flows[account] < all / 16) {
		rest = all / (hogs + 2);
		if (account == 0 && left <= all / 16)
			return false;
	} else {
		rest = all / (hogs + 1);
		if (left <= rest)
			return false;
	}
	place = client_place(world->port_seed, key, value);
	rest /= 2;
	return account & ACCOUNT_OUT || client_share(world, place) + part_of(rest, part) < rest;
}

bool share_is_left(const struct world *world, const struct connection_key *key,
		   const struct connection *value)
{
	return has_part_left(world, key, value, 0);
}

static bool owner_is_there(const struct world *world, uint32_t number, uint32_t id)
{
	const struct slot *slot = &world->slots[number % WORLD_SLOTS];

	return !number || (slot->live && (slot->generation & 0xffff) == id >> 16);
}

static bool place_protects(const struct world *world, const struct assured *place)
{
	return (int32_t)(place->protected_until - world->now) > 0 &&
	       owner_is_there(world, place->slot, place->id);
}

static bool is_dead_weight(const struct world *world, const struct world_connection *record)
{
	uint32_t all = world_places(world)->assured_places, left = free_places(world);
	const struct connection *value = &record->value;
	uint32_t idle = record_idle(world, value);
	uint32_t left_to_tcp = all - world->usage.proven;
	bool pressed = is_hog(world, &record->key, value)
			       ? left_to_tcp < all / 4 || left < all / 32
			       : left_to_tcp <= all / 16 || left < all / 64;

	return !record_lives(world, record) || record_is_closed(value->state) ||
	       idle > record_patience(record, pressed) ||
	       (value->state & (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE) && idle > 15 &&
		!has_part_left(world, &record->key, value, 64));
}

bool place_is_left(const struct world *world)
{
	for (uint32_t i = 1; i <= world_places(world)->assured_places; i++) {
		const struct assured *place = &world->assured[i];
		struct connection_key key = key_of_place(place);
		const struct world_connection *record;

		if (!place->id)
			return true;
		record = record_at(world, &key);
		if (!place_protects(world, place) &&
		    (!record || record->value.id != place->id || is_dead_weight(world, record)))
			return true;
	}
	return false;
}

static bool is_own(const struct connection *value)
{
	return value->state & STATE_CHARGED_OUT;
}

/* own: of those that the owner has begun */
static uint32_t half_open_of(const struct world *world, uint32_t slot, uint32_t id, bool own)
{
	const struct share *share = &world->shares[slot % WORLD_SLOTS];

	return (share->generation & 0xffff) == id >> 16 ? share->half_open[own] : 0;
}

/* Of the next four places the first that is free or whose owner is dead; else that of the owner
 * with most half-open connections, not fewer than the newcomer's owner. 0: none of them; then it is
 * some other, or none. */
static uint32_t place_to_take(const struct world *world, const struct connection *newcomer)
{
	uint32_t count = world_places(world)->half_open_places, hand = world->usage.half_open_hand;
	uint32_t least = half_open_of(world, newcomer->owner.slot, newcomer->owner.generation << 16,
				      is_own(newcomer));
	uint32_t most = 0, best = 0;

	for (uint32_t i = 0; i < 4; i++) {
		uint32_t number = 1 + (hand + i) % count;
		const struct half_open *place = &world->half_open[number];
		uint32_t has = half_open_of(world, place->slot, place->id, place->charged_out);

		if (!place->id || !owner_is_there(world, place->slot, place->id))
			return number;
		if (has >= least && (!best || has > most)) {
			best = number;
			most = has;
		}
	}
	return best;
}

bool oracle_ring_is_shut(const struct world *world, const struct expectation *expected)
{
	return !place_to_take(world, &expected->begun.value);
}

static bool may_be_pushed_out(const struct world *world, const struct expectation *expected,
			      const struct world_connection *record)
{
	const struct connection *newcomer = &expected->begun.value;
	uint32_t next = place_to_take(world, newcomer);

	/* Connections that end meanwhile change counts and places. */
	if (expected->touch_count || expected->frees_ports)
		return true;
	if (next)
		return record->value.place == next;
	return !record_lives(world, record) ||
	       half_open_of(world, record->value.owner.slot, record->value.id,
			    is_own(&record->value)) >=
		       half_open_of(world, newcomer->owner.slot, newcomer->owner.generation << 16,
				    is_own(newcomer));
}

/* Whether the draft may need the external tuple of this one. */
static bool is_in_the_way(const struct expectation *expected, const struct world_connection *record)
{
	struct connection_key external, wanted;

	external_key(&record->key, &record->value, &external);
	external_key(&expected->begun.key, &expected->begun.value, &wanted);
	wanted.inside_port = external.inside_port;
	return memcmp(&external, &wanted, sizeof(wanted)) == 0;
}

static bool is_long_idle(const struct world *world, const struct world_connection *record)
{
	return record->value.kind == FLOW_MASQUERADE &&
	       record_idle(world, &record->value) > record_spared(record);
}

/* A protocol without ports that has had no answer for 5 s */
static bool is_unheard(const struct world *world, const struct world_connection *record)
{
	const struct world_alias *alias;
	struct connection_key external;

	external_key(&record->key, &record->value, &external);
	alias = record_alias(world, &external);
	return !(record->value.state & STATE_REPLIED) && alias &&
	       (int32_t)(world->now - alias->value.made) > 5;
}

/* TCP that has been closed for 10 s, UDP that is not assured and idle for 10 s, or, to a port that
 * is not privileged, for 30 s. */
bool can_do_without(const struct world *world, const struct world_connection *record)
{
	uint32_t idle = record_idle(world, &record->value), state = record->value.state;

	if (record->value.kind != FLOW_MASQUERADE)
		return false;
	if (idle > record_spared(record))
		return true;
	if (wire_is_portless(record->key.protocol))
		return is_unheard(world, record);
	if (record->key.protocol == PROTOCOL_TCP)
		return record_is_closed(state) && idle > 10;
	return is_udp(record->key.protocol) && !(state & STATE_ASSURED) &&
	       idle > (record->key.outside_port < 1024 ? 10 : 30);
}

/* How many ports the owner has towards the external tuple's server */
static uint32_t ports_of(const struct world *world, const struct connection_key *external,
			 const struct owner *owner)
{
	uint32_t place = port_place(world->port_seed, external, owner), ports = 0;

	for (int i = 0; i < world->alias_count && owner->slot; i++) {
		const struct world_alias *alias = &world->aliases[i];

		ports += alias->value.owner.slot &&
			 port_place(world->port_seed, &alias->key, &alias->value.owner) == place;
	}
	return ports;
}

/* Whether it gives its port to the draft: one that is not assured also to an owner with no more
 * ports, unless an answer may still come. */
static bool gives_port(const struct world *world, const struct expectation *expected,
		       const struct world_connection *record)
{
	const struct world_connection *begun = &expected->begun;
	uint32_t state = record->value.state;
	struct connection_key external;

	if (can_do_without(world, record))
		return true;
	if (record->value.kind != FLOW_MASQUERADE || wire_is_portless(record->key.protocol) ||
	    state & STATE_ASSURED ||
	    (record->key.protocol == PROTOCOL_TCP && record_is_closed(state)))
		return false;
	external_key(&begun->key, &begun->value, &external);
	return record_idle(world, &record->value) > (state & STATE_REPLIED ? 1u : 5u) &&
	       ports_of(world, &external, &record->value.owner) >=
		       ports_of(world, &external, &begun->value.owner);
}

bool oracle_may_end(const struct world *world, const struct expectation *expected,
		    const struct world_connection *record)
{
	const struct connection_key *begun = &expected->begun.key;

	if (expected->takes_place && !(record->value.state & STATE_ASSURED) &&
	    may_be_pushed_out(world, expected, record))
		return true;
	if (expected->takes_place && !memcmp(begun, &record->key, sizeof(*begun)) &&
	    (record_is_note(record) || !record_lives(world, record)))
		return true;
	if (expected->takes_assured && record->value.state & STATE_ASSURED &&
	    is_dead_weight(world, record) &&
	    !place_protects(world, &world->assured[record->value.place]))
		return true;
	return expected->frees_ports && is_in_the_way(expected, record) &&
	       (!record_lives(world, record) ||
		(expected->choice != CHOICE_MOVED ? gives_port(world, expected, record)
						  : is_long_idle(world, record)));
}

/* Whether another connection cannot have its external tuple. */
static bool holds_port(const struct world *world, const struct expectation *expected,
		       const struct world_alias *alias)
{
	const struct world_connection *record;
	struct connection_key key = alias->key;

	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	record = record_at(world, &key);
	if (!record || record->value.id != alias->value.id)
		return (int32_t)(world->now - alias->value.made) <= 2;
	return record_lives(world, record) && !gives_port(world, expected, record);
}

/* A port that leads to the container's own by a mapping is kept, in the set or not. */
bool oracle_port_is_own(const struct world *world, const struct expectation *expected,
			uint16_t port)
{
	const struct world_connection *begun = &expected->begun;
	const struct portmap *mapping;

	if (!wire_has_ports(begun->key.protocol) || port != begun->key.inside_port)
		return false;
	mapping = world_mapping(world, begun->key.protocol, begun->value.external_address, port);
	return mapping && mapping->container_port == port &&
	       mapping->owner.slot == begun->value.owner.slot &&
	       mapping->owner.generation == begun->value.owner.generation &&
	       memcmp(mapping->container_address, begun->key.inside, 16) == 0;
}

bool oracle_port_free(const struct world *world, const struct expectation *expected, uint16_t port)
{
	struct world_connection begun = expected->begun;
	const struct world_alias *alias;
	struct connection_key external;
	struct tuple reply = {0};

	begun.value.external_port = port;
	external_key(&begun.key, &begun.value, &external);
	alias = record_alias(world, &external);
	if (alias && holds_port(world, expected, alias))
		return false;
	if (!wire_has_ports(external.protocol) || oracle_port_is_own(world, expected, port))
		return true;
	memcpy(reply.source, external.outside, 16);
	memcpy(reply.destination, external.inside, 16);
	reply.source_port = external.outside_port;
	reply.destination_port = external.inside_port;
	reply.protocol = external.protocol;
	return !world_mapping(world, reply.protocol, reply.destination, port) &&
	       world_socket(&reply) == SOCKET_NONE;
}

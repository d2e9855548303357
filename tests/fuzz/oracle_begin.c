/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle_begin.c - connections that a packet begins. */
#include <netinet/in.h>
#include <string.h>

#include "question.h"

struct world_connection *draft(struct question *question, const struct owner *owner,
			       enum flow_kind kind, enum way way)
{
	struct world_connection *begun = &question->expected->begun;

	memset(begun, 0, sizeof(*begun));
	record_key_of(&question->expected->tuple, way, &begun->key);
	begun->value.owner = *owner;
	begun->value.kind = kind;
	memcpy(begun->value.external_address, begun->key.inside, 16);
	begun->value.external_port = begun->key.inside_port;
	begun->value.peer_port = begun->key.outside_port;
	begun->value.begun_inside = way == OUTWARDS;
	begun->value.last_seen = question->world->now;
	if (begun->key.protocol != PROTOCOL_TCP)
		begun->value.begun = question->world->now;
	return begun;
}

static bool has_ended(const struct question *question, const struct connection_key *key)
{
	const struct expectation *expected = question->expected;

	for (int i = 0; i < expected->touch_count; i++)
		if (expected->touches[i].ends &&
		    !memcmp(&expected->touches[i].key, key, sizeof(*key)))
			return true;
	return false;
}

/* The live connection with this key, unless this packet has ended it. */
static const struct world_connection *still_live(const struct question *question,
						 const struct connection_key *key)
{
	return has_ended(question, key) ? NULL : record_live(question->world, key);
}

bool is_taken(struct question *question, const struct connection_key *key)
{
	const struct world_connection *record = still_live(question, key);
	struct expectation *expected = question->expected;

	if (!record || record_is_note(record))
		return false;
	/* The new connection may push out this very one. */
	expected->takes_place = true;
	expected->unsure |= oracle_may_end(question->world, expected, record);
	return true;
}

void begin(struct question *question)
{
	question->expected->begins = true;
	question->expected->takes_place = true;
	if (question->expected->begun.key.protocol == PROTOCOL_TCP)
		track_first(&question->expected->begun.value, &question->visit->wire);
	question->expected->unsure |= oracle_ring_is_shut(question->world, question->expected);
}

static void take_draft(struct question *question, enum way way, const char *because)
{
	question->expected->takes_place = true;
	take(question, &question->expected->begun, way, because);
}

/* The world still has the counts and ports of connections that this packet has ended. */
static bool has_ended_any(const struct question *question)
{
	for (int i = 0; i < question->expected->touch_count; i++)
		if (question->expected->touches[i].ends)
			return true;
	return false;
}

static void refuse(struct question *question, const char *because)
{
	question->expected->unsure |= has_ended_any(question);
	question->expected->takes_assured = true; /* the search removes dead ones */
	answer(question, ANSWER_DROP, because);
}

/* The connection exists, but a packet did not find it because a connection of the host has its
 * alias. */
static bool stands_already(const struct question *question)
{
	const struct world_connection *begun = &question->expected->begun;
	const struct world_connection *standing = record_at(question->world, &begun->key);
	const struct connection *a = &begun->value, *b;

	if (!standing || !record_lives(question->world, standing))
		return false;
	b = &standing->value;
	return !(b->state & STATE_UNCONFIRMED) && a->kind == b->kind &&
	       a->owner.slot == b->owner.slot && a->owner.generation == b->owner.generation &&
	       memcmp(a->external_address, b->external_address, 16) == 0 &&
	       a->external_port == b->external_port && a->peer_port == b->peer_port;
}

/* The connection that holds this alias; NULL: none does. */
static const struct world_connection *holder_of(const struct world *world,
						const struct world_alias *alias)
{
	const struct world_connection *holder;
	struct connection_key key = alias->key;

	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	holder = record_at(world, &key);
	return holder && holder->value.id == alias->value.id ? holder : NULL;
}

/* Whether an alias has the draft's external tuple. `holder` is its connection; NULL: one that has
 * just begun and has no record yet. */
static bool is_external_taken(const struct question *question,
			      const struct world_connection **holder)
{
	const struct world_connection *begun = &question->expected->begun;
	const struct world *world = question->world;
	const struct world_alias *alias;
	struct connection_key external;

	*holder = NULL;
	external_key(&begun->key, &begun->value, &external);
	alias = record_alias(world, &external);
	if (!alias)
		return false;
	*holder = holder_of(world, alias);
	if (!*holder)
		return (int32_t)(world->now - alias->value.made) <= 2;
	return record_lives(world, *holder) && !has_ended(question, &(*holder)->key);
}

/* To a container: the client's port is changed if another connection has the tuple. */
static void begin_inwards(struct question *question, const char *because)
{
	struct expectation *expected = question->expected;
	const struct connection_key *key = &expected->begun.key;
	const struct world_connection *holder;
	bool to_itself =
		memcmp(key->inside, key->outside, 16) == 0 && key->inside_port == key->outside_port;

	if (!to_itself && is_taken(question, key) && stands_already(question)) {
		take_draft(question, INWARDS, because);
		return;
	}
	if ((to_itself || is_taken(question, key)) && wire_is_portless(key->protocol)) {
		answer(question, ANSWER_DROP, "another connection has its tuple");
		return;
	}
	if ((to_itself || is_taken(question, key)) && is_external_taken(question, &holder)) {
		expected->takes_place = true; /* and gives it back */
		answer(question, ANSWER_DROP, "another connection has its alias");
		return;
	}
	if (to_itself || is_taken(question, key)) {
		expected->choice = CHOICE_MOVED;
		expected->frees_ports = true;
		take_draft(question, INWARDS, because);
		answer(question, ANSWER_TRANSLATE, because);
	} else {
		take_draft(question, INWARDS, because);
	}
	begin(question);
}

/* An answer, a refusal or an end that nobody expects */
static bool is_stray(const struct wire *wire)
{
	return wire->outer.protocol == IPPROTO_TCP && !begins_tcp(wire) &&
	       wire->tcp_flags & (SYN | RST | FIN);
}

void begin_mapped(struct question *question, const struct portmap *mapping)
{
	const struct tuple *tuple = &question->expected->tuple;
	const struct policy *policy = world_policy(question->world, &mapping->owner);
	struct world_connection *begun = draft(question, &mapping->owner, FLOW_MAPPING, INWARDS);

	memcpy(begun->key.inside, mapping->container_address, 16);
	begun->key.inside_port = mapping->container_port;
	if (tuple->protocol == PROTOCOL_TCP && !begins_tcp(&question->visit->wire) &&
	    world_socket(tuple) == SOCKET_OF_PEER)
		answer(question, ANSWER_PASS, "a connection of the host's own");
	else if (is_stray(&question->visit->wire))
		answer(question, ANSWER_PASS, "of no connection, and begins none");
	else if (policy && policy->source_range_count &&
		 !world_in_ranges(policy->source_ranges, policy->source_range_count, tuple->source))
		answer(question, ANSWER_DROP, "from outside sourceRanges");
	else if (!share_is_left(question->world, &begun->key, &begun->value))
		refuse(question, "beyond the share of the mapping's owner or of the client");
	else
		begin_inwards(question, "a mapping");
}

/* The sender is verified at a container's veth only. Elsewhere the record is unconfirmed until the
 * stack has let the packet through. */
void begin_direct(struct question *question, const struct endpoint *endpoint)
{
	const struct world *world = question->world;
	const struct wire *wire = &question->visit->wire;
	bool verified = question->visit->hook == FROM_CONTAINER;
	const struct world_connection *known;
	struct world_connection *begun;

	answer(question, ANSWER_PASS, "to a container, but begins nothing");
	if (!world_owner_live(world, &endpoint->owner) || !begins_direct(wire))
		return;
	if (verified)
		endpoint = world_endpoint(world, wire->outer.source);
	begun = draft(question, &endpoint->owner, FLOW_DIRECT, INWARDS);
	known = still_live(question, &begun->key);
	if (verified) {
		begun->value.state = STATE_CHARGED_OUT;
	} else if (!known) {
		begun->value.state = STATE_UNCONFIRMED;
		begin(question);
		return;
	} else if (record_is_note(known)) {
		touch_of(question, known)->after.last_seen = world->now;
		return;
	}
	begin_inwards(question, "to a container itself");
}

static const struct port_range *port_ranges(const struct world *world,
					    const struct expectation *expected)
{
	const struct policy *policy = world_policy(world, &expected->begun.value.owner);

	return policy && policy->masquerade_ports[0].last ? policy->masquerade_ports
							  : world->ranges;
}

/* A port below 1024 keeps that property, unless masqPorts says otherwise. */
static bool is_privileged(const struct world *world, const struct expectation *expected)
{
	const struct policy *policy = world_policy(world, &expected->begun.value.owner);
	uint16_t own = expected->tuple.source_port;

	return own && own < 1024 && !(policy && policy->masquerade_ports[0].last);
}

bool oracle_port_in_set(const struct world *world, const struct expectation *expected,
			uint16_t port)
{
	const struct port_range *ranges = port_ranges(world, expected);

	if (wire_is_portless(expected->tuple.protocol))
		return port == 0;
	/* An echo request with 0 would look like a reply. */
	if (!wire_has_ports(expected->tuple.protocol))
		return port != 0;
	if (oracle_port_is_own(world, expected, port))
		return true;
	if (is_privileged(world, expected))
		return port == expected->tuple.source_port || (port >= 600 && port < 1024);
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		if (ranges[i].last && port >= ranges[i].first && port <= ranges[i].last)
			return true;
	return false;
}

static bool any_port_free(const struct world *world, const struct expectation *expected)
{
	const struct port_range *ranges = port_ranges(world, expected);

	if (!wire_has_ports(expected->tuple.protocol) || is_privileged(world, expected) ||
	    oracle_port_is_own(world, expected, expected->tuple.source_port))
		return true;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		for (uint32_t port = ranges[i].first; ranges[i].last && port <= ranges[i].last;
		     port++)
			if (oracle_port_free(world, expected, (uint16_t)port))
				return true;
	return false;
}

/* The container's own port is tried first, and only if it is free. One that is or was published is
 * avoided. */
static bool own_port_free(const struct world *world, const struct expectation *expected)
{
	struct connection_key external;
	uint16_t own = expected->tuple.source_port;
	struct world_connection begun = expected->begun;
	const struct world_alias *alias;
	const struct world_connection *holder;
	struct connection_key key;

	if (!oracle_port_in_set(world, expected, own) || !oracle_port_free(world, expected, own) ||
	    (wire_has_ports(expected->tuple.protocol) && world_is_published(world, own) &&
	     !oracle_port_is_own(world, expected, own)))
		return false;
	begun.value.external_port = own;
	external_key(&begun.key, &begun.value, &external);
	alias = record_alias(world, &external);
	if (!alias)
		return true;
	key = external;
	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	holder = record_live(world, &key);
	return !holder || holder->value.id != alias->value.id;
}

/* snatAddresses is for connections that a container begins. */
bool choose_source(const struct question *question, const struct owner *owner, bool outward,
		   uint8_t *address)
{
	const struct expectation *expected = question->expected;
	const struct policy *policy = world_policy(question->world, owner);
	bool v4 = question->visit->wire.ipv4;

	if (outward && policy && (v4 ? policy->source4_count : policy->source6_count)) {
		memcpy(address, v4 ? policy->sources4[0] : policy->sources6[0], 16);
		return true;
	}
	return world_source(question->world, question->visit->device, expected->tuple.destination,
			    address);
}

/* How many ports a search may choose from, besides the container's own. */
static uint32_t number_of_ports(const struct world *world, const struct expectation *expected)
{
	const struct port_range *ranges = port_ranges(world, expected);
	uint32_t number = 0;

	if (!wire_has_ports(expected->tuple.protocol))
		return 65535;
	if (is_privileged(world, expected))
		return 1024 - 600;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		number += ranges[i].last ? ranges[i].last - ranges[i].first + 1u : 0;
	return number;
}

/* Nothing is tried where there are no ports, not even the container's own, nor where a search in
 * this second has found none. */
static bool none_left(const struct question *question)
{
	const struct world_connection *begun = &question->expected->begun;
	uint32_t number = number_of_ports(question->world, question->expected);
	struct connection_key external;

	if (number == 0)
		return true;
	external_key(&begun->key, &begun->value, &external);
	return machine_port_share(
		       port_place(question->world->port_seed, &external, &begun->value.owner))
		       ->none_left == question->world->now;
}

/* Whether the host, or one that is not done with it, has the only external tuple of a protocol
 * without ports. */
static bool is_tunnel_taken(const struct question *question)
{
	const struct expectation *expected = question->expected;
	struct connection_key external;

	external_key(&expected->begun.key, &expected->begun.value, &external);
	return machine_has_tunnel(question->world->port_seed, &external) ||
	       !oracle_port_free(question->world, expected, 0);
}

static bool is_syn_ack(const struct wire *wire)
{
	return (wire->tcp_flags & (SYN | ACK)) == (SYN | ACK);
}

/* outward: begun by a container, else one towards it. */
void begin_masqueraded(struct question *question, const struct endpoint *endpoint, bool outward)
{
	struct expectation *expected = question->expected;
	const struct world *world = question->world;
	struct world_connection *begun =
		draft(question, &endpoint->owner, FLOW_MASQUERADE, OUTWARDS);

	begun->value.state = outward ? STATE_CHARGED_OUT : 0;
	if (question->visit->wire.tcp_flags & RST)
		begun->value.state |= STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE;
	begun->value.uplink = question->visit->device;
	expected->unsure |= has_ended_any(question);
	if (question->visit->wire.outer.echo_reply || is_syn_ack(&question->visit->wire)) {
		answer(question, ANSWER_DROP, "an answer without a request");
	} else if (!share_is_left(world, &begun->key, &begun->value)) {
		refuse(question, "beyond the share of the container or of the client");
	} else if (!choose_source(question, &endpoint->owner, outward,
				  begun->value.external_address)) {
		answer(question, ANSWER_DROP, "no address to leave with");
	} else if (wire_is_portless(expected->tuple.protocol)) {
		expected->frees_ports = true;
		take_draft(question, OUTWARDS, "masqueraded, without ports");
		if (is_tunnel_taken(question))
			answer(question, ANSWER_DROP, "the packets would be another one's");
		else
			begin(question);
	} else if (none_left(question)) {
		answer(question, ANSWER_DROP, "no port to leave with, in this second");
	} else if (own_port_free(world, expected)) {
		expected->frees_ports = true;
		take_draft(question, OUTWARDS, "masqueraded, with its own port");
		begin(question);
	} else if (expected->frees_ports = true, any_port_free(world, expected)) {
		expected->choice = CHOICE_MASQUERADE;
		take_draft(question, OUTWARDS, "masqueraded, with another port");
		answer(question, ANSWER_TRANSLATE, expected->because);
		begin(question);
	} else {
		answer(question, ANSWER_DROP, "no port to leave with");
	}
}

/* Whether replies would belong to a mapping's client. */
static bool replies_are_mapped(const struct question *question)
{
	const struct tuple *tuple = &question->expected->tuple;
	struct found_inwards found;
	struct tuple reply = {.source_port = tuple->destination_port,
			      .destination_port = tuple->source_port,
			      .protocol = tuple->protocol};

	memcpy(reply.source, tuple->destination, 16);
	memcpy(reply.destination, tuple->source, 16);
	record_find_inwards(question->world, &reply, &found);
	return world_is_published(question->world, reply.destination_port) && found.record &&
	       found.record->value.kind == FLOW_MAPPING;
}

/* Whether a masqueraded connection gives its port to the host's. */
static bool gives_way(const struct world *world, const struct world_connection *holder,
		      enum flow_kind kind)
{
	if (!holder || holder->value.kind != FLOW_MASQUERADE)
		return false;
	if (record_idle(world, &holder->value) > record_spared(holder))
		return true;
	return kind == FLOW_HOST && ((!(holder->value.state & STATE_ASSURED) &&
				      holder->value.path[INWARDS] < PATH_CONTAINER) ||
				     can_do_without(world, holder));
}

/* The masqueraded connection keeps its port: the host's gets another one. */
static void move_hosts(struct question *question)
{
	struct expectation *expected = question->expected;

	expected->frees_ports = true;
	if (none_left(question) || !any_port_free(question->world, expected))
		return;
	expected->choice = CHOICE_MASQUERADE;
	take_draft(question, OUTWARDS, "the host's own, with another port");
	answer(question, ANSWER_TRANSLATE, expected->because);
	begin(question);
}

/* A packet of the host itself */
void begin_hosts(struct question *question, enum flow_kind kind)
{
	static const struct owner nobody;
	struct expectation *expected = question->expected;
	const struct world_connection *holder;
	const struct world_alias *alias;
	struct connection_key external;

	if (replies_are_mapped(question))
		return;
	draft(question, &nobody, kind, OUTWARDS);
	expected->begun.value.state = STATE_CHARGED_OUT;
	if (is_external_taken(question, &holder) && !gives_way(question->world, holder, kind)) {
		external_key(&expected->begun.key, &expected->begun.value, &external);
		alias = record_alias(question->world, &external);
		if (kind == FLOW_HOST && alias->value.owner.slot)
			move_hosts(question);
		return;
	}
	if (holder)
		end_record(question, holder);
	if (!is_taken(question, &expected->begun.key))
		begin(question);
}

/* A strict container's untranslated packet is remembered at an uplink, so that answers pass. */
void remember_strict(struct question *question, const struct endpoint *from)
{
	const struct wire *wire = &question->visit->wire;
	struct world_connection *begun;

	if (!from->strict || wire->kind != WIRE_FLOW || wire->outer.echo_reply ||
	    wire->tcp_flags & RST || question->visit->hook != TO_UPLINK)
		return;
	begun = draft(question, &from->owner, FLOW_DIRECT, OUTWARDS);
	begun->value.state = STATE_CHARGED_OUT;
	if (!is_taken(question, &begun->key))
		begin(question);
}

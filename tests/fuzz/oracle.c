/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle.c - the expected result at each hook. */
#include <netinet/in.h>
#include <string.h>

#include "../packet/host.h"
#include "question.h"

bool same_owner(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

void answer(struct question *question, enum answer answer, const char *because)
{
	question->expected->answer = answer;
	question->expected->because = because;
}

void oracle_tuple(const struct wire *wire, enum direction direction, struct tuple *tuple)
{
	bool error = wire->kind == WIRE_ERROR;
	const struct wire_header *header = error ? &wire->quoted : &wire->outer;

	memset(tuple, 0, sizeof(*tuple));
	tuple->direction = direction;
	tuple->protocol = (enum protocol)header->protocol;
	memcpy(tuple->source, error ? header->destination : header->source, 16);
	memcpy(tuple->destination, error ? header->source : header->destination, 16);
	if (wire->kind >= WIRE_FLOW) {
		tuple->source_port = error ? header->destination_port : header->source_port;
		tuple->destination_port = error ? header->source_port : header->destination_port;
	}
}

bool begins_tcp(const struct wire *wire)
{
	return (wire->tcp_flags & (SYN | ACK | RST | FIN)) == SYN;
}

bool begins_direct(const struct wire *wire)
{
	return wire->outer.protocol == IPPROTO_TCP ? begins_tcp(wire) : !wire->outer.echo_reply;
}

bool leaves(const struct visit *visit)
{
	return visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER;
}

bool changes(const struct tuple *tuple, const struct rewrite *rewrite)
{
	bool in = tuple->direction == DIRECTION_IN;

	return memcmp(rewrite->address, in ? tuple->destination : tuple->source, 16) != 0 ||
	       rewrite->port != (in ? tuple->destination_port : tuple->source_port) ||
	       rewrite->peer_port != (in ? tuple->source_port : tuple->destination_port);
}

void rewrite_by(const struct world_connection *record, enum way way, struct rewrite *rewrite)
{
	bool in = way == INWARDS;
	const struct connection *value = &record->value;

	memcpy(rewrite->address, in ? record->key.inside : value->external_address, 16);
	rewrite->port = in ? record->key.inside_port : value->external_port;
	rewrite->peer_port = in ? record->key.outside_port : value->peer_port;
}

void take(struct question *question, const struct world_connection *record, enum way way,
	  const char *because)
{
	struct expectation *expected = question->expected;

	expected->takes = true;
	expected->tuple.direction = way == INWARDS ? DIRECTION_IN : DIRECTION_OUT;
	rewrite_by(record, way, &expected->rewrite);
	answer(question,
	       changes(&expected->tuple, &expected->rewrite) ? ANSWER_TRANSLATE : ANSWER_PASS,
	       because);
}

/* A packet of a live connection. False: the packet has ended it. */
static bool go_by_record(struct question *question, const struct world_connection *record,
			 enum way way, const char *because)
{
	enum used used = use(question, record, way, question->visit->frame.length);

	if (used == USED_ENDED)
		return false;
	if (used == USED_REFUSED)
		answer(question, ANSWER_DROP, "answered, but there is no room");
	else
		take(question, record, way, because);
	return true;
}

/* excludeCIDRs */
static bool is_excluded(const struct world *world, const struct portmap *mapping,
			const uint8_t *address)
{
	const struct policy *policy = world_policy(world, &mapping->owner);

	return policy && world_in_ranges(policy->excluded, policy->excluded_count, address);
}

/* The peer of a closed socket uses its port again. Flows of another NAT have no socket. */
static bool host_is_done(const struct question *question, const struct world_connection *record)
{
	const struct tuple *tuple = &question->expected->tuple;
	enum flow_kind kind = record->value.kind;
	enum world_socket_found socket;
	struct tuple own = *tuple; /* of the socket, whose port may be another one outside */

	own.destination_port = record->key.inside_port;
	socket = world_socket(&own);

	if (tuple->protocol == PROTOCOL_TCP)
		return begins_tcp(&question->visit->wire) &&
		       (kind == FLOW_FOREIGN || socket != SOCKET_OF_PEER);
	return kind == FLOW_HOST && tuple->protocol == PROTOCOL_UDP && socket == SOCKET_NONE;
}

static bool strict_refuses(const struct question *question, const struct endpoint *endpoint)
{
	const struct interface *interface =
		world_interface(question->world, question->visit->device);

	return endpoint && endpoint->strict &&
	       world_owner_live(question->world, &endpoint->owner) && interface &&
	       interface->role == ROLE_UPLINK;
}

/* A packet of no connection */
static void begin_inwards(struct question *question, const struct portmap *mapping, bool routed)
{
	const struct world *world = question->world;
	const struct tuple *tuple = &question->expected->tuple;
	const struct endpoint *endpoint = world_endpoint(world, tuple->destination);

	if (mapping && routed && world_route(tuple->destination) == 0 &&
	    !is_excluded(world, mapping, tuple->destination))
		begin_mapped(question, mapping);
	else if (strict_refuses(question, endpoint))
		answer(question, ANSWER_DROP, "to a strict container");
	else if (endpoint)
		begin_direct(question, endpoint);
	else
		answer(question, ANSWER_PASS, "of no connection, inwards");
}

/* A masqueraded connection without an answer, whose port was published since */
static bool gives_way_to_mapping(const struct question *question,
				 const struct world_connection *record)
{
	const struct tuple *tuple = &question->expected->tuple;

	return record->value.kind == FLOW_MASQUERADE &&
	       (!(record->value.state & STATE_REPLIED) ||
		record_idle(question->world, &record->value) > record_spared(record)) &&
	       (tuple->protocol == PROTOCOL_UDP ||
		(tuple->protocol == PROTOCOL_TCP && begins_tcp(&question->visit->wire))) &&
	       world_mapping(question->world, tuple->protocol, tuple->destination,
			     tuple->destination_port);
}

/* A packet that enters the IP stack or, if not routed, is switched. */
static void ask_in(struct question *question, bool routed)
{
	const struct world *world = question->world;
	struct tuple *tuple = &question->expected->tuple;
	const struct world_connection *record;
	struct found_inwards found;

	oracle_tuple(&question->visit->wire, DIRECTION_IN, tuple);
	record_find_inwards(world, tuple, &found);
	record = found.record;
	if (record && gives_way_to_mapping(question, record)) {
		end_record(question, record);
		record = NULL;
		found.mapping = world_mapping(world, tuple->protocol, tuple->destination,
					      tuple->destination_port);
	}
	if (record && !record_has_owner(&record->value)) {
		if (host_is_done(question, record)) {
			end_record(question, record);
			record = NULL;
		} else if (record->value.kind == FLOW_FOREIGN && tuple->protocol != PROTOCOL_TCP &&
			   world_is_published(world, tuple->destination_port)) {
			answer(question, ANSWER_PASS, "an answer to another NAT's, or a request");
			return;
		}
	}
	if (record && !record_is_note(record) &&
	    go_by_record(question, record, INWARDS, "a connection's, inwards"))
		return;
	begin_inwards(question, found.mapping, routed);
}

static void ask_error_in(struct question *question)
{
	struct found_inwards found;

	oracle_tuple(&question->visit->wire, DIRECTION_IN, &question->expected->tuple);
	record_find_inwards(question->world, &question->expected->tuple, &found);
	if (found.record)
		take(question, found.record, INWARDS, "an error about a connection, inwards");
	else
		answer(question, ANSWER_PASS, "an error about no connection, inwards");
}

void oracle_fragment_key(const struct visit *visit, struct fragment_key *key)
{
	const struct wire *wire = &visit->wire;

	memset(key, 0, sizeof(*key));
	memcpy(key->source, wire->outer.source, 16);
	memcpy(key->destination, wire->outer.destination, 16);
	key->identification = wire->identification;
	key->protocol = (enum protocol)(wire->ipv4 ? wire->first_header : 0);
	key->direction = leaves(visit) ? DIRECTION_OUT : DIRECTION_IN;
	key->ifindex = leaves(visit) ? 0 : visit->device;
}

static bool fragment_lives(const struct world *world)
{
	return world->fragment.last_seen &&
	       (int32_t)(world->now - (uint32_t)(world->fragment.last_seen / 1000000000)) <= 5;
}

/* False: the fate of the datagram's first fragment is not known. */
static bool ask_first_fragment(struct question *question)
{
	const struct fragment *fragment = &question->world->fragment;
	struct expectation *expected = question->expected;

	if (!fragment_lives(question->world) || fragment->fate == FRAGMENT_WAITING)
		return false;
	switch (fragment->fate) {
	case FRAGMENT_DROPPED:
		answer(question, ANSWER_DROP, "as the first fragment was");
		break;
	case FRAGMENT_TRANSLATED:
		oracle_tuple(&question->visit->wire,
			     leaves(question->visit) ? DIRECTION_OUT : DIRECTION_IN,
			     &expected->tuple);
		memcpy(expected->rewrite.address, fragment->translation.address, 16);
		expected->redirect = fragment->translation.out_ifindex;
		answer(question, ANSWER_TRANSLATE, "as the first fragment was");
		break;
	default:
		answer(question, ANSWER_PASS, "as the first fragment was");
	}
	return true;
}

static bool wants_masquerade(const struct world *world, const struct visit *visit,
			     const struct endpoint *endpoint)
{
	const struct wire_header *outer = &visit->wire.outer;
	const struct policy *policy = world_policy(world, &endpoint->owner);

	if (policy &&
	    world_in_ranges(policy->unmasqueraded, policy->unmasqueraded_count, outer->destination))
		return false;
	return endpoint->masquerade &&
	       !world_same_subnet(outer->source, outer->destination, endpoint->prefix_length);
}

/* The connection whose inside is the packet's destination */
static const struct world_connection *record_towards(const struct question *question)
{
	struct connection_key key;

	record_key_of(&question->expected->tuple, INWARDS, &key);
	return record_settled(question->world, &key);
}

static bool came_by_mapping(const struct question *question)
{
	const struct world_connection *record = record_towards(question);

	return record && record->value.kind == FLOW_MAPPING;
}

/* A mapped request, or an answer to a masqueraded one: the other direction is translated. Nobody
 * looks for that where the destination never was a container and no client was masqueraded. */
static bool is_settled(const struct question *question)
{
	const struct world *world = question->world;
	const struct world_connection *record = record_towards(question);

	if (!world->noticed.masquerade_all &&
	    !world_endpoint_likely(world, question->expected->tuple.destination))
		return false;
	return came_by_mapping(question) || (record && record->value.kind == FLOW_MASQUERADE);
}

/* masqAll: the container sees clients with the host's address. */
static const struct endpoint *masq_all_endpoint(const struct world *world, const uint8_t *address)
{
	const struct endpoint *endpoint = world_endpoint(world, address);
	const struct policy *policy = endpoint ? world_policy(world, &endpoint->owner) : NULL;

	return policy && policy->masquerade_all && !policy->keep_hairpin_source &&
			       world->noticed.masquerade_all
		       ? endpoint
		       : NULL;
}

/* snatAddresses */
static bool has_fixed_source(const struct question *question, const struct world_connection *record)
{
	const struct policy *policy = world_policy(question->world, &record->value.owner);
	bool v4 = question->visit->wire.ipv4;

	return policy && (v4 ? policy->source4_count : policy->source6_count) &&
	       !memcmp(record->value.external_address,
		       v4 ? policy->sources4[0] : policy->sources6[0], 16);
}

/* Whether it leaves as a query says, or there is no answer. If not, the stack knows more. Only one
 * way leads to a container. */
static bool is_routed_plainly(const struct question *question)
{
	const uint8_t *destination = question->expected->tuple.destination;
	const uint8_t *next_hop = world_next_hop(destination);
	uint32_t device = world_route(destination);

	if (world_endpoint_likely(question->world, destination) || !device)
		return true;
	return device == question->visit->device &&
	       (!next_hop || memcmp(question->visit->frame.bytes, next_hop, MAC_SIZE) == 0);
}

/* Whether a masqueraded connection keeps its address, where this packet of it leaves. */
static bool keeps_address(struct question *question, const struct world_connection *record)
{
	const struct connection *value = &record->value;
	uint32_t uplink = question->visit->device;
	uint8_t preferred[16];
	bool is_preferred, fixed, is_elsewhere;

	is_elsewhere = value->uplink != uplink && record->key.protocol != PROTOCOL_TCP;
	if (value->kind != FLOW_MASQUERADE ||
	    (value->out_asked == (uint16_t)question->world->now && !is_elsewhere))
		return true;
	is_preferred = choose_source(question, &(struct owner){0}, false, preferred) &&
		       !memcmp(preferred, value->external_address, 16);
	fixed = value->state & STATE_CHARGED_OUT && has_fixed_source(question, record);
	if (fixed)
		touch_of(question, record)->after.uplink = uplink;
	if (fixed || (value->uplink == uplink && is_preferred))
		return true;
	if (is_elsewhere) {
		if (is_preferred)
			touch_of(question, record)->after.uplink = uplink;
		return is_preferred;
	}
	return is_preferred || world_is_host(value->external_address);
}

/* A reply of a mapping leaves through the interface of its new source's route, looked up once a
 * second. There is no lookup for a packet without an ingress interface. */
static uint32_t other_way_out(const struct question *question,
			      const struct world_connection *record)
{
	const struct connection *value = &record->value;
	uint32_t device = 0;

	if (value->kind != FLOW_MAPPING)
		return 0;
	if (question->visit->came_in_by && is_routed_plainly(question))
		device = world_route(question->expected->tuple.destination);
	else if (question->visit->came_in_by)
		device = question->visit->device;
	if (value->out_ifindex && value->out_asked == (uint16_t)question->world->now)
		device = value->out_ifindex;
	return device == question->visit->device ? 0 : device;
}

/* The unconfirmed record of the packet, which goes this way */
static const struct world_connection *live_note(const struct question *question, enum way way)
{
	const struct world_connection *note;
	struct connection_key key;

	record_key_of(&question->expected->tuple, way, &key);
	note = record_live(question->world, &key);
	return note && record_is_note(note) ? note : NULL;
}

/* The stack has let a direct client's packet through. */
static bool confirm_note(struct question *question)
{
	const struct wire *wire = &question->visit->wire;
	const struct world_connection *note = live_note(question, INWARDS);

	if (wire->kind != WIRE_FLOW || !begins_direct(wire) || !note ||
	    !world_endpoint_likely(question->world, note->key.inside))
		return false;
	touch_of(question, note)->after.state &= ~(uint32_t)STATE_UNCONFIRMED;
	return true;
}

static bool is_hairpin(const struct world *world, const struct endpoint *from,
		       const struct endpoint *to)
{
	const struct policy *policy = world_policy(world, &from->owner);

	return to && same_owner(&to->owner, &from->owner) &&
	       !(policy && policy->keep_hairpin_source);
}

bool oracle_is_unverified(const struct visit *visit)
{
	return (visit->came_in_by || visit->wire.first_fragment) && !visit->verified;
}

/* A packet of no connection. */
static void ask_out_of_container(struct question *question, const struct endpoint *from)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct endpoint *to = world_endpoint(world, visit->wire.outer.destination);

	if (oracle_is_unverified(visit))
		answer(question,
		       wants_masquerade(world, visit, from) && !world->veth_gone[from->owner.slot]
			       ? ANSWER_DROP
			       : ANSWER_PASS,
		       "not by the container's veth");
	else if (!visit->came_in_by && visit->wire.tcp_flags & RST && live_note(question, OUTWARDS))
		answer(question, ANSWER_PASS, "the firewall refuses a direct client");
	else if (is_hairpin(world, from, to))
		begin_masqueraded(question, from, false);
	else if (wants_masquerade(world, visit, from) && !is_settled(question))
		begin_masqueraded(question, from, true);
	else
		answer(question, ANSWER_PASS, "not to be masqueraded");
}

static void ask_out_by_record(struct question *question, const struct endpoint *from,
			      const struct endpoint *masq_all)
{
	struct expectation *expected = question->expected;
	const struct world_connection *record = record_outwards(question->world, &expected->tuple);

	if (record && !keeps_address(question, record)) {
		end_record(question, record);
		record = NULL;
	}
	if (record && go_by_record(question, record, OUTWARDS, "a connection's, outwards")) {
		if (expected->answer == ANSWER_TRANSLATE)
			expected->redirect = other_way_out(question, record);
	} else if (masq_all && came_by_mapping(question)) {
		begin_masqueraded(question, masq_all, false);
	} else if (from) {
		ask_out_of_container(question, from);
	} else {
		answer(question, ANSWER_PASS, "not from a container");
		confirm_note(question);
	}
}

/* A packet that leaves the IP stack and is not the host's own. */
static void ask_out(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct endpoint *from = world_endpoint(world, visit->wire.outer.source);
	const struct endpoint *masq_all = masq_all_endpoint(world, visit->wire.outer.destination);
	bool wanted = from && wants_masquerade(world, visit, from);

	oracle_tuple(&visit->wire, DIRECTION_OUT, &question->expected->tuple);
	answer(question, wanted ? ANSWER_DROP : ANSWER_PASS, "nothing to translate");
	if (from && !world_owner_live(world, &from->owner))
		return;
	if (visit->wire.kind == WIRE_FRAGMENT && (from || masq_all))
		ask_first_fragment(question);
	if (visit->wire.kind < WIRE_FLOW)
		return;
	answer(question, ANSWER_PASS, "not from a container");
	if (from || masq_all)
		ask_out_by_record(question, from, masq_all);
	else
		confirm_note(question);
}

static void ask_error_out(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct endpoint *from = world_endpoint(question->world, visit->wire.outer.source);
	const struct world_connection *record;

	oracle_tuple(&visit->wire, DIRECTION_OUT, &question->expected->tuple);
	record = record_outwards(question->world, &question->expected->tuple);
	if (record)
		take(question, record, OUTWARDS, "an error about a connection, outwards");
	else if (from && wants_masquerade(question->world, visit, from) && !is_settled(question))
		answer(question, ANSWER_DROP, "a container's error about no connection");
	else
		answer(question, ANSWER_PASS, "an error about no connection, outwards");
}

static bool must_be_remembered(const struct question *question)
{
	const struct wire *wire = &question->visit->wire;
	const struct tuple *tuple = &question->expected->tuple;
	struct connection_key key;

	record_key_of(tuple, OUTWARDS, &key);
	if (!wire_has_ports(tuple->protocol))
		return !wire->outer.echo_reply;
	if (tuple->protocol == PROTOCOL_SCTP || tuple->protocol == PROTOCOL_UDPLITE)
		return true;
	if ((tuple->protocol == PROTOCOL_UDP || begins_tcp(wire)) &&
	    record_alias(question->world, &key))
		return true;
	return !(wire->tcp_flags & RST) &&
	       world_mapping(question->world, tuple->protocol, tuple->source, tuple->source_port);
}

/* Its connection may have got another port: every packet is looked at. */
static bool may_be_moved(const struct question *question)
{
	const struct tuple *tuple = &question->expected->tuple;

	return question->world->noticed.moved_host && wire_has_ports(tuple->protocol) &&
	       world_port_counts(question->world, tuple->source_port, tuple->protocol);
}

/* The host takes the packets of a protocol without ports from a container. */
static void displace(struct question *question, const struct connection_key *external)
{
	const struct world *world = question->world;
	const struct world_alias *alias = record_alias(world, external);
	const struct world_connection *holder;
	struct connection_key key = *external;

	if (!alias || !world_noticed_external(world, external->inside))
		return;
	memcpy(key.inside, alias->value.inside, 16);
	key.inside_port = alias->value.inside_port;
	key.outside_port = alias->value.outside_port;
	holder = record_at(world, &key);
	if (holder && holder->value.id == alias->value.id &&
	    (!record_lives(world, holder) || holder->value.kind == FLOW_MASQUERADE))
		end_record(question, holder);
}

/* The host's own packet is not changed, unless its connection has got another port. It is
 * remembered, so that its answer is not taken for a request or for an answer to a container. */
static void ask_host(struct question *question)
{
	struct expectation *expected = question->expected;
	const struct world_connection *record;
	struct connection_key key;
	bool must;

	answer(question, ANSWER_PASS, "the host's own");
	if (question->visit->wire.kind != WIRE_FLOW)
		return;
	oracle_tuple(&question->visit->wire, DIRECTION_OUT, &expected->tuple);
	if (question->visit->wire.first_fragment && confirm_note(question)) {
		answer(question, ANSWER_PASS, "a direct client's, fragmented again");
		return;
	}
	record_key_of(&expected->tuple, OUTWARDS, &key);
	if (wire_is_portless(key.protocol)) {
		displace(question, &key);
		return;
	}
	must = must_be_remembered(question);
	if (!must && !may_be_moved(question))
		return;
	record = record_live(question->world, &key);
	if (!record || use(question, record, OUTWARDS, 0) == USED_ENDED) {
		if (must)
			begin_hosts(question, FLOW_HOST);
	} else if (record->value.kind == FLOW_HOST) {
		take(question, record, OUTWARDS, "the host's own, of a known connection");
	}
}

/* Another NAT has given it the address of its egress interface. The programs that are run here
 * cannot ask conntrack. */
static bool is_foreign(const struct question *question)
{
	const struct visit *visit = question->visit;
	const struct interface *interface = world_interface(question->world, visit->device);
	const struct wire *wire = &visit->wire;

	return visit->came_in_by && wire->kind == WIRE_FLOW && begins_direct(wire) && interface &&
	       memcmp(wire->ipv4 ? interface->address4 : interface->address6, wire->outer.source,
		      16) == 0;
}

static void ask_foreign(struct question *question)
{
	const struct world_connection *record;
	struct connection_key key;

	answer(question, ANSWER_PASS, "another NAT's");
	oracle_tuple(&question->visit->wire, DIRECTION_OUT, &question->expected->tuple);
	if (wire_is_portless(question->expected->tuple.protocol))
		return;
	record_key_of(&question->expected->tuple, OUTWARDS, &key);
	record = record_live(question->world, &key);
	if (!record)
		begin_hosts(question, FLOW_FOREIGN);
	else if (record->value.kind == FLOW_FOREIGN &&
		 record->value.last_seen != question->world->now)
		refresh(question, record);
}

static void remember_fragment(struct question *question);

static void ask_leave(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct endpoint *from = world_endpoint(question->world, visit->wire.outer.source);

	if (visit->wire.kind == WIRE_ERROR) {
		ask_error_out(question);
	} else if (!visit->came_in_by && !from) {
		ask_host(question);
	} else if (!from && is_foreign(question)) {
		ask_foreign(question);
	} else {
		ask_out(question);
		if (from && !oracle_is_unverified(visit) &&
		    question->expected->answer == ANSWER_PASS && !question->expected->takes)
			remember_strict(question, from);
		if (from)
			remember_fragment(question);
	}
}

/* The fate of the datagram's other fragments. If some are held already, the first one is sent in
 * again before them. */
static void remember_fragment(struct question *question)
{
	struct expectation *expected = question->expected;
	const struct fragment *fragment = &question->world->fragment;

	if (!question->visit->wire.first_fragment)
		return;
	expected->remembers = true;
	if (expected->answer == ANSWER_DROP)
		expected->fate = FRAGMENT_DROPPED;
	else if (expected->answer == ANSWER_LIFT)
		expected->fate = FRAGMENT_LIFTED;
	else
		expected->fate = expected->takes ? FRAGMENT_TRANSLATED : FRAGMENT_PASSED;
	if (expected->answer != ANSWER_DROP && fragment->newest &&
	    fragment_lives(question->world) && !leaves(question->visit)) {
		expected->unsure |= expected->choice != CHOICE_NONE; /* the port is not seen here */
		answer(question, ANSWER_DROP, "sent in again before held ones");
	}
}

/* A fragment to this host may have to be translated, so it is held. */
static void ask_later_fragment(struct question *question)
{
	if (ask_first_fragment(question))
		return;
	if (world_route(question->visit->wire.outer.destination) == 0)
		answer(question, ANSWER_HOLD, "before its first one, to this host");
	else
		answer(question, ANSWER_PASS, "before its first one, not to this host");
}

static bool addressed_to(const struct visit *visit, const uint8_t *mac)
{
	return memcmp(visit->frame.bytes, mac, MAC_SIZE) == 0;
}

static void ask_enter(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct wire *wire = &visit->wire;
	const struct endpoint *from = world_endpoint(question->world, wire->outer.source);
	const struct endpoint *to = world_endpoint(question->world, wire->outer.destination);

	answer(question, ANSWER_PASS, "not for this host, or handled at the container's veth");
	if (wire->kind < WIRE_OPAQUE || !addressed_to(visit, host_mac(visit->device)))
		return;
	if (visit->hook == FROM_BRIDGE && from && world_owner_live(question->world, &from->owner))
		return;
	if (wire->kind == WIRE_FRAGMENT)
		ask_later_fragment(question);
	else if (visit->hook == FROM_BRIDGE && world_route(wire->outer.source) != visit->device)
		answer(question, ANSWER_PASS, "maybe forged: routing does not lead back");
	else if (wire->kind == WIRE_ERROR)
		ask_error_in(question);
	else if (wire->kind == WIRE_FLOW)
		ask_in(question, true);
	if ((wire->kind == WIRE_OPAQUE ||
	     (wire->kind == WIRE_ERROR && !question->expected->takes)) &&
	    strict_refuses(question, to)) {
		answer(question, ANSWER_DROP, "to a strict container, of no connection");
		return;
	}
	remember_fragment(question);
}

/* A packet that is translated at egress, but would be switched past that hook. */
static void ask_lift(struct question *question, const struct world_connection *record,
		     const struct interface *interface)
{
	struct expectation *expected = question->expected;
	struct rewrite rewrite;

	rewrite_by(record, OUTWARDS, &rewrite);
	if (!changes(&expected->tuple, &rewrite)) {
		if (question->visit->wire.kind == WIRE_FLOW)
			use(question, record, OUTWARDS, question->visit->frame.length);
		answer(question, ANSWER_PASS, "switched, untranslated");
		return;
	}
	answer(question, ANSWER_LIFT, "switched, to be translated");
	memcpy(expected->mac, interface->bridge_mac, MAC_SIZE);
}

static bool is_translated(const struct world_connection *record)
{
	return record->value.kind == FLOW_MASQUERADE || record->value.kind == FLOW_MAPPING;
}

/* A masqueraded container's packet would leave through an unclassified interface. */
static bool leaves_unclassified(const struct question *question, const struct endpoint *from,
				bool translated)
{
	const uint8_t *destination = question->visit->wire.outer.destination;
	uint32_t device = world_route(destination);

	return (translated || wants_masquerade(question->world, question->visit, from)) &&
	       device != 0 && !world_interface(question->world, device);
}

/* A router may send errors about packets that leave through its interface to a host that is no
 * container. */
static bool is_of_way(const struct question *question, const struct tuple *tuple,
		      const struct world_connection *record, const struct interface *interface)
{
	const struct connection *value = &record->value;

	if (tuple->direction != DIRECTION_IN || world_endpoint(question->world, tuple->source))
		return false;
	return (value->path[OUTWARDS] >= PATH_CONTAINER ? value->next_hop[OUTWARDS].ifindex
							: value->out_ifindex) ==
	       (interface->role == ROLE_PORT ? interface->bridge_ifindex : question->visit->device);
}

/* A container's error that would be translated by a connection of another one */
static bool is_foreign_error(const struct question *question, const struct interface *interface)
{
	const struct world *world = question->world;
	const struct wire *wire = &question->visit->wire;
	const struct world_connection *record;
	struct found_inwards found;
	struct rewrite rewrite;
	struct tuple tuple;

	if (wire->kind != WIRE_ERROR ||
	    memcmp(wire->quoted.destination, wire->outer.source, 16) == 0)
		return false;
	oracle_tuple(wire, DIRECTION_OUT, &tuple);
	record = record_outwards(world, &tuple);
	if (!record) {
		tuple.direction = DIRECTION_IN;
		record_find_inwards(world, &tuple, &found);
		record = found.record;
	}
	if (!record || same_owner(&record->value.owner, &interface->owner))
		return false;
	rewrite_by(record, tuple.direction == DIRECTION_IN ? INWARDS : OUTWARDS, &rewrite);
	return changes(&tuple, &rewrite) && !is_of_way(question, &tuple, record, interface);
}

/* A container's fragment may be of a reply, to be translated or lifted: it is always held. */
static void ask_container_fragment(struct question *question, const struct interface *interface)
{
	if (!ask_first_fragment(question)) {
		answer(question, ANSWER_HOLD, "before its first one, from a container");
	} else if (question->world->fragment.fate == FRAGMENT_LIFTED) {
		answer(question, ANSWER_LIFT, "as the first fragment was");
		memcpy(question->expected->mac, interface->bridge_mac, MAC_SIZE);
	}
}

/* The address of another container, or of the host; over IPv6 routing alone decides. */
static bool is_forged(const struct question *question, const struct endpoint *from, bool routed)
{
	const struct wire *wire = &question->visit->wire;

	if (from)
		return world_owner_live(question->world, &from->owner) &&
		       !question->world->veth_gone[from->owner.slot];
	return (world_is_host(wire->outer.source) || (!wire->ipv4 && routed)) &&
	       !world_route(wire->outer.source);
}

/* Whether the packet comes by the veth of the connection's owner, which lives. */
static bool is_at_owners_veth(const struct question *question,
			      const struct world_connection *record)
{
	const struct owner *owner = &record->value.owner;

	return world_owner_live(question->world, owner) &&
	       question->world->slots[owner->slot].ifindex == question->visit->device;
}

/* Whether the inside is the owner, rather than a client or another container. */
static bool is_of_owner(const struct world_connection *record)
{
	return !(record->value.state & STATE_CHARGED_OUT) == !record->value.begun_inside;
}

/* The stack has let a packet of this connection through in this second: there are no checks. */
static bool is_known_well(const struct question *question, const struct world_connection *record)
{
	const struct visit *visit = question->visit;
	const struct slot *slot = &question->world->slots[record->value.owner.slot];

	return visit->wire.kind == WIRE_FLOW && !visit->wire.first_fragment &&
	       is_at_owners_veth(question, record) && is_of_owner(record) &&
	       addressed_to(visit, slot->gateway_mac) &&
	       record->value.left_stack[OUTWARDS] == question->world->now &&
	       !is_candidate(question, record, OUTWARDS);
}

/* For a packet to the gateway that will be translated. Such a packet counts at egress, but if it
 * may skip the stack its connection becomes assured here. None begins to skip it from another veth
 * than its owner's. True: there is no room for that. */
static bool is_refused_here(struct question *question, const struct world_connection *record)
{
	if (record->value.state & STATE_ASSURED || !is_candidate(question, record, OUTWARDS) ||
	    !is_at_owners_veth(question, record))
		return false;
	if (use(question, record, OUTWARDS, question->visit->frame.length) != USED_REFUSED)
		return false;
	answer(question, ANSWER_DROP, "answered, but there is no room");
	return true;
}

/* A packet with a tuple. True: the answer is final. */
static bool ask_container_packet(struct question *question, const struct interface *interface,
				 const struct world_connection *out, bool routed)
{
	if (out && !routed && out->value.kind != FLOW_MASQUERADE) {
		ask_lift(question, out, interface);
		remember_fragment(question);
		return true;
	}
	if (out && routed && is_refused_here(question, out))
		return true;
	if (out)
		return false;
	if (question->visit->wire.kind == WIRE_ERROR)
		ask_error_in(question);
	else
		ask_in(question, routed);
	if (question->expected->answer == ANSWER_PASS)
		return false;
	remember_fragment(question);
	return true;
}

/* Whether a later fragment keeps its addresses: the program then goes on as for any packet. */
static bool is_unchanged(const struct expectation *expected)
{
	return expected->answer == ANSWER_LIFT || (expected->answer == ANSWER_TRANSLATE &&
						   !changes(&expected->tuple, &expected->rewrite));
}

/* Neighbour discovery has a hop limit of 255 (RFC 4861). */
static bool may_hide_advertisement(const struct visit *visit)
{
	return visit->wire.kind == WIRE_OPAQUE && visit->wire.unreadable &&
	       visit->frame.bytes[visit->wire.outer.network + 7] == 255;
}

static void ask_container(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct interface *interface = world_interface(world, visit->device);
	const struct endpoint *from = world_endpoint(world, visit->wire.outer.source);
	const struct world_connection *out = NULL;
	bool routed;

	if (visit->wire.kind >= WIRE_FLOW) {
		oracle_tuple(&visit->wire, DIRECTION_OUT, &question->expected->tuple);
		out = record_outwards(world, &question->expected->tuple);
	}
	if (out)
		touch_of(question, out); /* the route lookup changes the record */
	answer(question, ANSWER_PASS, "let through in this second");
	if (out && is_known_well(question, out)) {
		if (is_translated(out) && leaves_unclassified(question, NULL, true))
			answer(question, ANSWER_DROP, "would leave by an unclassified interface");
		return;
	}
	if (!interface || !world_owner_live(world, &interface->owner)) {
		answer(question, ANSWER_DROP, "from a veth without an attachment");
		return;
	}
	if (is_foreign_error(question, interface)) {
		answer(question, ANSWER_DROP, "an error about another one's connection");
		return;
	}
	if (may_hide_advertisement(visit)) {
		answer(question, ANSWER_DROP, "a neighbour's claim may be behind its headers");
		return;
	}
	answer(question, ANSWER_PASS, "not the container's own address");
	routed = addressed_to(visit, host_mac(visit->device)) ||
		 (interface->role == ROLE_PORT && addressed_to(visit, interface->bridge_mac));
	if (!from || !same_owner(&from->owner, &interface->owner)) {
		if (is_forged(question, from, routed))
			answer(question, ANSWER_DROP, "a forged address");
		return;
	}
	answer(question, ANSWER_PASS, "nothing to translate at the veth");
	if (visit->wire.kind == WIRE_FRAGMENT) {
		ask_container_fragment(question, interface);
		if (is_unchanged(question->expected) && routed &&
		    leaves_unclassified(question, from, false))
			answer(question, ANSWER_DROP, "would leave by an unclassified interface");
		if (question->expected->answer != ANSWER_PASS)
			return;
	}
	if (visit->wire.kind >= WIRE_FLOW && ask_container_packet(question, interface, out, routed))
		return;
	if (routed && leaves_unclassified(question, from, out && is_translated(out)))
		answer(question, ANSWER_DROP, "would leave by an unclassified interface");
	else
		remember_fragment(question);
}

/* Then the range of the CRC is unknown. */
static bool lies_about_length(const struct frame *frame, const struct wire *wire)
{
	size_t length = wire->ipv4 ? read16(frame, wire->quoted.network + 2)
				   : read16(frame, wire->quoted.network + 4) + 40u;

	return wire->quoted.network + length < wire->quoted.transport + 12;
}

/* An echo request with the identifier 0 looks like a reply. */
static bool is_ambiguous(const struct frame *frame, const struct wire *wire)
{
	const struct wire_header *header = wire->kind == WIRE_ERROR ? &wire->quoted : &wire->outer;

	if (header->protocol == IPPROTO_SCTP && wire->kind == WIRE_ERROR)
		return lies_about_length(frame, wire);
	return (header->protocol == IPPROTO_ICMP || header->protocol == IPPROTO_ICMPV6) &&
	       !header->source_port && !header->destination_port;
}

static bool is_tag(const struct frame *frame, size_t at)
{
	uint16_t type = read16(frame, at);

	return type == 0x8100 || type == 0x88a8;
}

/* Whether the kernel would remove tags after the program. The frames here are as if the kernel had
 * already removed a priority tag. */
static bool is_unwrapped_later(const struct visit *visit)
{
	const struct frame *frame = &visit->frame;

	if (leaves(visit) || !is_tag(frame, 12))
		return false;
	if (visit->hook == FROM_CONTAINER)
		return true;
	if (!addressed_to(visit, host_mac(visit->device)))
		return false;
	for (size_t at = 12; at < 28 && at + 6 <= frame->length && is_tag(frame, at); at += 4)
		if (read16(frame, at + 2) & 0xfff)
			return false;
	return true;
}

void oracle_ask(const struct world *world, const struct visit *visit, struct expectation *expected)
{
	struct question question = {.world = world, .visit = visit, .expected = expected};

	memset(expected, 0, sizeof(*expected));
	answer(&question, ANSWER_PASS, "not translated");
	expected->unsure = is_ambiguous(&visit->frame, &visit->wire);
	if (is_unwrapped_later(visit))
		answer(&question, ANSWER_DROP, "tags that the kernel would remove later");
	if (visit->wire.kind == WIRE_FOREIGN) {
		/* For example multicast with the address of another container. */
		expected->unsure |= visit->hook == FROM_CONTAINER;
		return;
	}
	if (visit->hook == FROM_CONTAINER)
		ask_container(&question);
	else if (visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER)
		ask_leave(&question);
	else
		ask_enter(&question);
}

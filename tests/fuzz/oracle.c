/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* oracle.c - decides as the programs should. */
#include "oracle.h"

#include <netinet/in.h>
#include <string.h>

#include "../packet/host.h"

/* One question on its way to an answer. */
struct question {
	const struct world *world;
	const struct visit *visit;
	struct expectation *expected;
};

static bool same_owner(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

static void answer(struct question *question, enum answer answer, const char *because)
{
	question->expected->answer = answer;
	question->expected->because = because;
}

/* The tuple of a packet; of an error, what an answer to the quoted packet would have. */
static void tuple_of(const struct wire *wire, enum direction direction, struct flow_key *key)
{
	bool error = wire->kind == WIRE_ERROR;
	const struct wire_header *header = error ? &wire->quoted : &wire->outer;

	memset(key, 0, sizeof(*key));
	key->direction = direction;
	key->protocol = (enum protocol)header->protocol;
	memcpy(key->source, error ? header->destination : header->source, 16);
	memcpy(key->destination, error ? header->source : header->destination, 16);
	if (wire->kind >= WIRE_FLOW) {
		key->source_port = error ? header->destination_port : header->source_port;
		key->destination_port = error ? header->source_port : header->destination_port;
	}
}

static bool begins_tcp(const struct wire *wire)
{
	return (wire->tcp_flags & (WIRE_SYN | WIRE_ACK | WIRE_RST | WIRE_FIN)) == WIRE_SYN;
}

/* Does the translation change anything about the tuple it is for? */
static bool changes(const struct flow_key *key, const struct flow *flow)
{
	bool in = key->direction == DIRECTION_IN;

	return memcmp(flow->address, in ? key->destination : key->source, 16) != 0 ||
	       flow->port != (in ? key->destination_port : key->source_port) ||
	       flow->peer_port != (in ? key->source_port : key->destination_port);
}

static void take_flow(struct question *question, const struct flow *flow, const char *because)
{
	struct expectation *expected = question->expected;

	expected->takes_flow = true;
	expected->flow = *flow;
	answer(question, changes(&expected->key, flow) ? ANSWER_TRANSLATE : ANSWER_PASS, because);
}

/* Once a second a flow is compared with its other half; one whose tuple has been given to
 * another flow meanwhile is no more. */
static bool flow_lost(const struct world *world, const struct world_flow *flow)
{
	struct flow_key other_key;
	struct flow other;
	const struct world_flow *standing;

	if (flow->value.last_seen == world->now)
		return false;
	world_other_half(&flow->key, &flow->value, &other_key, &other);
	standing = world_live_flow(world, &other_key);
	return standing && !world_same_translation(&standing->value, &other);
}

/* What establishes a connection acknowledges what its other half has sent, or 64 kB less. */
static bool acknowledges(const struct wire *wire, const struct flow *other)
{
	return wire->outer.protocol != IPPROTO_TCP || !other->sequence_known ||
	       (wire->tcp_flags & WIRE_ACK &&
		other->sequence_end - wire->tcp_acknowledgment <= 65536);
}

/* What must be seen of the packet in the flow tables, where both halves stand there. */
static void follow_states(struct question *question, const struct world_flow *flow)
{
	struct expectation *expected = question->expected;
	uint8_t flags = question->visit->wire.tcp_flags;
	const struct world_flow *standing;
	struct flow_key other_key;
	struct flow other;

	world_other_half(&flow->key, &flow->value, &other_key, &other);
	standing = world_live_flow(question->world, &other_key);
	if (question->visit->wire.kind != WIRE_FLOW || !standing ||
	    standing->table != flow->table || !world_same_translation(&standing->value, &other))
		return;
	expected->promotes = flow->table == NEW && flow->value.answered && !flow->value.reply &&
			     !(flags & (WIRE_SYN | WIRE_RST)) &&
			     acknowledges(&question->visit->wire, &standing->value);
	expected->sees_fin =
		flow->table == ANSWERED && flags & WIRE_FIN && !(flags & (WIRE_SYN | WIRE_RST));
}

static const struct world_flow *known_flow(struct question *question)
{
	const struct world_flow *flow = world_live_flow(question->world, &question->expected->key);

	if (!flow || flow_lost(question->world, flow))
		return NULL;
	question->expected->touches_flow = true;
	follow_states(question, flow);
	question->expected->repairs_flow = flow->value.last_seen != question->world->now;
	return flow;
}

/* Whether the tuple behind the translation is another flow's. */
static bool taken(const struct world *world, const struct flow_key *key, const struct flow *flow)
{
	struct flow_key other_key;
	struct flow other;
	const struct world_flow *standing;

	world_other_half(key, flow, &other_key, &other);
	standing = world_flow((struct world *)world, NEW, &other_key);
	if (!standing || !world_flow_live(world, standing))
		standing = world_flow((struct world *)world, ANSWERED, &other_key);
	return standing && world_flow_live(world, standing) &&
	       !world_same_translation(&standing->value, &other);
}

bool oracle_tuple_free(const struct world *world, const struct expectation *expected)
{
	return !taken(world, &expected->key, &expected->flow);
}

static void begin_flow(struct question *question, struct flow *flow, const char *because)
{
	question->expected->begins_flow = true;
	take_flow(question, flow, because);
}

/* A flow whose destination is a container: the client's port moves where it must. */
static void begin_inward_flow(struct question *question, struct flow *flow, const char *because)
{
	const struct flow_key *key = &question->expected->key;
	bool to_itself =
		memcmp(flow->address, key->source, 16) == 0 && flow->port == key->source_port;

	flow->peer_port = key->source_port;
	if (to_itself || taken(question->world, key, flow)) {
		question->expected->choice = CHOICE_MOVED;
		question->expected->begins_flow = true;
		question->expected->takes_flow = true;
		question->expected->flow = *flow;
		answer(question, ANSWER_TRANSLATE, because);
		return;
	}
	begin_flow(question, flow, because);
}

static void ask_mapping(struct question *question, const struct portmap *mapping)
{
	const struct flow_key *key = &question->expected->key;
	const struct policy *policy = world_policy(question->world, &mapping->owner);
	struct flow flow = {.owner = mapping->owner, .kind = FLOW_MAPPING};

	if (!begins_tcp(&question->visit->wire) && world_socket(key) == SOCKET_OF_PEER) {
		answer(question, ANSWER_PASS, "a connection of the host's own");
		return;
	}
	if (policy && policy->source_range_count &&
	    !world_in_ranges(policy->source_ranges, policy->source_range_count, key->source)) {
		answer(question, ANSWER_DROP, "from outside sourceRanges");
		return;
	}
	memcpy(flow.address, mapping->container_address, 16);
	flow.port = mapping->container_port;
	begin_inward_flow(question, &flow, "a mapping");
}

static bool begins_direct(const struct wire *wire)
{
	return wire->outer.protocol == IPPROTO_TCP ? begins_tcp(wire) : !wire->outer.echo_reply;
}

/* What the container would answer with, where that leaves the stack. */
static void way_back(const struct flow_key *key, struct flow_key *back)
{
	*back = *key;
	back->direction = DIRECTION_OUT;
	memcpy(back->source, key->destination, 16);
	memcpy(back->destination, key->source, 16);
	back->source_port = key->destination_port;
	back->destination_port = key->source_port;
}

/* Only a container's own veth vouches for the sender: anybody else is noted, and believed
 * when the stack has let the packet through. */
static void ask_direct(struct question *question, const struct endpoint *endpoint)
{
	struct flow_key back;
	const struct flow_key *key = &question->expected->key;
	const struct wire *wire = &question->visit->wire;
	struct flow flow = {.owner = endpoint->owner, .kind = FLOW_DIRECT};

	answer(question, ANSWER_PASS, "to a container, but begins nothing");
	if (!world_owner_live(question->world, &endpoint->owner) || !begins_direct(wire))
		return;
	way_back(key, &back);
	if (question->visit->hook != FROM_CONTAINER && !world_live_flow(question->world, &back)) {
		question->expected->notes = true;
		return;
	}
	if (question->visit->hook == FROM_CONTAINER)
		flow.owner = world_endpoint(question->world, wire->outer.source)->owner;
	memcpy(flow.address, key->destination, 16);
	flow.port = key->destination_port;
	begin_inward_flow(question, &flow, "to a container itself");
}

/* excludeCIDRs */
static bool is_excluded(const struct world *world, const struct portmap *mapping,
			const uint8_t *address)
{
	const struct policy *policy = world_policy(world, &mapping->owner);

	return policy && world_in_ranges(policy->excluded, policy->excluded_count, address);
}

/* The peer of a socket that has gone uses its port again. */
static bool host_is_done(const struct question *question, const struct world_flow *flow)
{
	enum world_socket_found socket = world_socket(&flow->key);

	if (flow->value.kind != FLOW_HOST)
		return false;
	if (flow->key.protocol == PROTOCOL_TCP)
		return begins_tcp(&question->visit->wire) && socket != SOCKET_OF_PEER;
	return flow->key.protocol == PROTOCOL_UDP && socket == SOCKET_NONE;
}

/* A packet on its way into the IP stack, or, not routed, across the bridge. */
static void ask_in(struct question *question, bool routed)
{
	const struct world *world = question->world;
	struct flow_key *key = &question->expected->key;
	const struct portmap *mapping = NULL;
	const struct endpoint *endpoint;
	const struct world_flow *flow;

	tuple_of(&question->visit->wire, DIRECTION_IN, key);
	flow = world_live_flow(world, key);
	if (flow && !host_is_done(question, flow) && !flow->value.unconfirmed)
		flow = known_flow(question);
	else
		flow = NULL;
	if (flow) {
		take_flow(question, &flow->value, "a flow inwards");
		return;
	}
	if (routed && world_route(key->destination) == 0)
		mapping = world_mapping(world, key->protocol, key->destination,
					key->destination_port);
	if (mapping && is_excluded(world, mapping, key->destination))
		mapping = NULL;
	endpoint = world_endpoint(world, key->destination);
	if (mapping)
		ask_mapping(question, mapping);
	else if (endpoint)
		ask_direct(question, endpoint);
	else
		answer(question, ANSWER_PASS, "nobody's, inwards");
}

static void ask_error_in(struct question *question)
{
	const struct world_flow *flow;

	tuple_of(&question->visit->wire, DIRECTION_IN, &question->expected->key);
	flow = world_live_flow(question->world, &question->expected->key);
	if (flow)
		take_flow(question, &flow->value, "an error about a flow, inwards");
	else
		answer(question, ANSWER_PASS, "an error about nothing, inwards");
}

static bool leaves(const struct visit *visit)
{
	return visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER;
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

/* False: nobody knows what became of the datagram's first fragment. */
static bool ask_first_fragment(struct question *question)
{
	const struct fragment *fragment = &question->world->fragment;
	struct expectation *expected = question->expected;

	if (!fragment->last_seen || (int32_t)(question->world->now - fragment->last_seen) > 5 ||
	    fragment->fate == FRAGMENT_WAITING)
		return false;
	switch (fragment->fate) {
	case FRAGMENT_DROPPED:
		answer(question, ANSWER_DROP, "as the first fragment was");
		break;
	case FRAGMENT_TRANSLATED:
		tuple_of(&question->visit->wire,
			 leaves(question->visit) ? DIRECTION_OUT : DIRECTION_IN, &expected->key);
		memcpy(expected->flow.address, fragment->address, 16);
		expected->redirect = fragment->out_ifindex;
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

static const struct world_flow *flow_back(const struct world *world, const struct flow_key *key)
{
	struct flow_key back;

	way_back(key, &back);
	return world_live_flow(world, &back);
}

static bool came_by_mapping(const struct world *world, const struct flow_key *key)
{
	const struct world_flow *flow = flow_back(world, key);

	return flow && flow->value.kind == FLOW_MAPPING && flow->value.reply;
}

/* A request that came by a mapping, or an answer to a masqueraded one: translated on its way back.
 */
static bool is_settled(const struct world *world, const struct flow_key *key)
{
	const struct world_flow *flow = flow_back(world, key);

	return came_by_mapping(world, key) || (flow && flow->value.kind == FLOW_MASQUERADE);
}

/* masqAll: the container is to see nobody but the host. */
static const struct endpoint *shy_endpoint(const struct world *world, const uint8_t *address)
{
	const struct endpoint *endpoint = world_endpoint(world, address);
	const struct policy *policy = endpoint ? world_policy(world, &endpoint->owner) : NULL;

	return policy && policy->masquerade_all && !policy->keep_hairpin_source &&
			       world->noticed.masquerade_all
		       ? endpoint
		       : NULL;
}

static bool any_identifier(const struct flow_key *key)
{
	return !wire_has_ports(key->protocol);
}

static const struct port_range *port_ranges(const struct world *world,
					    const struct expectation *expected)
{
	const struct policy *policy = world_policy(world, &expected->flow.owner);

	return policy && policy->masquerade_ports[0].last ? policy->masquerade_ports
							  : world->ranges;
}

bool oracle_port_in_set(const struct world *world, const struct expectation *expected,
			uint16_t port)
{
	const struct port_range *ranges = port_ranges(world, expected);

	/* With 0 a request would look like a reply. */
	if (any_identifier(&expected->key))
		return port != 0;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		if (ranges[i].last && port >= ranges[i].first && port <= ranges[i].last)
			return true;
	return false;
}

bool oracle_port_is_own(const struct world *world, const struct expectation *expected,
			uint16_t port)
{
	struct flow flow = expected->flow, other;
	struct flow_key reply;
	const struct world_flow *standing;

	flow.port = port;
	world_other_half(&expected->key, &flow, &reply, &other);
	standing = world_live_flow(world, &reply);
	return standing && world_same_translation(&standing->value, &other);
}

/* Closed for longer than late segments take: its port goes to another where there is no other. */
static bool is_closed(const struct world *world, const struct world_flow *flow)
{
	return flow->value.kind == FLOW_MASQUERADE && flow->value.state == STATE_CLOSING &&
	       (int32_t)(world->now - flow->value.last_seen) > 10;
}

static bool port_free(const struct world *world, const struct expectation *expected, uint16_t port,
		      bool evict)
{
	const struct flow_key *key = &expected->key;
	const struct world_flow *standing;
	struct flow_key reply;
	struct flow flow = expected->flow, ignored;

	flow.port = port;
	world_other_half(key, &flow, &reply, &ignored);
	if (oracle_port_is_own(world, expected, port))
		return true;
	standing = world_live_flow(world, &reply);
	if (standing && !(evict && is_closed(world, standing)))
		return false;
	return any_identifier(key) || (!world_mapping(world, key->protocol, flow.address, port) &&
				       world_socket(&reply) == SOCKET_NONE);
}

bool oracle_port_free(const struct world *world, const struct expectation *expected, uint16_t port)
{
	return port_free(world, expected, port, expected->evicts);
}

/* TCP in mid-connection looks for the port that it had before it takes another. */
static bool may_find_old_port(const struct question *question)
{
	const struct world *world = question->world;
	const struct expectation *expected = question->expected;

	if (expected->key.protocol != PROTOCOL_TCP || begins_tcp(&question->visit->wire))
		return false;
	for (int i = 0; i < world->flow_count; i++) {
		uint16_t port = world->flows[i].key.destination_port;

		if (world->flows[i].key.direction == DIRECTION_IN &&
		    port != expected->key.source_port && oracle_port_is_own(world, expected, port))
			return true;
	}
	return false;
}

static bool any_port_free(const struct world *world, const struct expectation *expected)
{
	if (any_identifier(&expected->key))
		return true;
	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		const struct port_range *range = &port_ranges(world, expected)[i];

		for (uint32_t port = range->first; range->last && port <= range->last; port++)
			if (oracle_port_free(world, expected, (uint16_t)port))
				return true;
	}
	return false;
}

/* Also where only a closed flow's is to be had. */
static bool find_any_port(const struct world *world, struct expectation *expected)
{
	if (any_port_free(world, expected))
		return true;
	expected->evicts = true;
	return any_port_free(world, expected);
}

/* snatAddresses, for what a container begins. */
static bool choose_source(const struct question *question, bool outward, uint8_t *address)
{
	const struct expectation *expected = question->expected;
	const struct policy *policy = world_policy(question->world, &expected->flow.owner);
	bool v4 = question->visit->wire.ipv4;

	if (outward && policy && (v4 ? policy->source4_count : policy->source6_count)) {
		memcpy(address, v4 ? policy->sources4[0] : policy->sources6[0], 16);
		return true;
	}
	return world_source(question->world, question->visit->device, expected->key.destination,
			    address);
}

/* outward: the container's own, else to a container. */
static void ask_masquerade(struct question *question, const struct endpoint *endpoint, bool outward)
{
	struct expectation *expected = question->expected;
	const struct world *world = question->world;
	uint16_t own = expected->key.source_port;

	expected->flow = (struct flow){.owner = endpoint->owner, .kind = FLOW_MASQUERADE};
	expected->flow.port = own;
	expected->flow.peer_port = expected->key.destination_port;
	expected->notices = wire_has_ports(expected->key.protocol);
	if (question->visit->wire.outer.echo_reply) {
		answer(question, ANSWER_DROP, "an answer that nobody asked for");
	} else if (!choose_source(question, outward, expected->flow.address)) {
		answer(question, ANSWER_DROP, "no address to leave with");
	} else if (!may_find_old_port(question) && oracle_port_in_set(world, expected, own) &&
		   oracle_port_free(world, expected, own)) {
		begin_flow(question, &expected->flow, "masqueraded, with its own port");
	} else if (find_any_port(world, expected)) {
		expected->choice = CHOICE_MASQUERADE;
		expected->begins_flow = true;
		expected->takes_flow = true;
		answer(question, ANSWER_TRANSLATE, "masqueraded, with another port");
	} else {
		answer(question, ANSWER_DROP, "no port to leave with");
	}
}

/* The reply of a mapping leaves where routing wants its new source, asked once a second.
 * Of what came in nowhere routing does not say. */
static uint32_t other_way_out(const struct question *question, const struct flow *flow)
{
	uint32_t device = 0;

	if (flow->kind != FLOW_MAPPING || !flow->reply)
		return 0;
	if (question->visit->came_in_by)
		device = world_route(question->expected->key.destination);
	if (flow->out_ifindex && flow->out_looked_up == question->world->now)
		device = flow->out_ifindex;
	return device == question->visit->device ? 0 : device;
}

static const struct world_flow *live_note(const struct question *question,
					  const struct flow_key *tuple)
{
	struct flow_key key = *tuple;
	const struct world_flow *note;

	key.direction = DIRECTION_IN;
	note = world_flow((struct world *)question->world, NEW, &key);
	return note && note->value.unconfirmed && world_flow_live(question->world, note) ? note
											 : NULL;
}

/* A direct client has come through the stack. */
static bool confirms_note(const struct question *question)
{
	const struct wire *wire = &question->visit->wire;
	const struct world_flow *note = live_note(question, &question->expected->key);

	return wire->kind == WIRE_FLOW && begins_direct(wire) && note &&
	       !taken(question->world, &note->key, &note->value);
}

/* The stack's own RST in the container's name, to a client that was only noted. */
static bool is_refusal(const struct question *question)
{
	const struct visit *visit = question->visit;
	struct flow_key key;

	way_back(&question->expected->key, &key);
	return !visit->came_in_by && visit->wire.tcp_flags & WIRE_RST && live_note(question, &key);
}

static bool is_hairpin(const struct world *world, const struct endpoint *from,
		       const struct endpoint *to)
{
	const struct policy *policy = world_policy(world, &from->owner);

	return to && same_owner(&to->owner, &from->owner) &&
	       !(policy && policy->keep_hairpin_source);
}

/* Of no flow. */
static void ask_out_of_container(struct question *question, const struct endpoint *from)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct endpoint *to = world_endpoint(world, visit->wire.outer.destination);

	if (is_refusal(question))
		answer(question, ANSWER_PASS, "the firewall refuses a direct client");
	else if (is_hairpin(world, from, to))
		ask_masquerade(question, from, false);
	else if (wants_masquerade(world, visit, from) &&
		 !is_settled(world, &question->expected->key))
		ask_masquerade(question, from, true);
	else
		answer(question, ANSWER_PASS, "not to be masqueraded");
}

static void ask_out_by_flow(struct question *question, const struct endpoint *from,
			    const struct endpoint *shy)
{
	struct expectation *expected = question->expected;
	const struct world_flow *flow = known_flow(question);

	if (flow) {
		take_flow(question, &flow->value, "a flow outwards");
		if (expected->answer == ANSWER_TRANSLATE)
			expected->redirect = other_way_out(question, &flow->value);
	} else if (shy && came_by_mapping(question->world, &expected->key)) {
		ask_masquerade(question, shy, false);
	} else if (from) {
		ask_out_of_container(question, from);
	} else {
		expected->confirms = confirms_note(question);
	}
}

/* A packet that leaves the IP stack and is not the host's own. */
static void ask_out(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct endpoint *from = world_endpoint(world, visit->wire.outer.source);
	const struct endpoint *shy = shy_endpoint(world, visit->wire.outer.destination);
	bool wanted = from && wants_masquerade(world, visit, from);

	tuple_of(&visit->wire, DIRECTION_OUT, &question->expected->key);
	answer(question, wanted ? ANSWER_DROP : ANSWER_PASS, "nothing to translate");
	if (from && !world_owner_live(world, &from->owner))
		return;
	if (visit->wire.kind == WIRE_FRAGMENT && (from || shy))
		ask_first_fragment(question);
	if (visit->wire.kind < WIRE_FLOW)
		return;
	answer(question, ANSWER_PASS, "not from a container");
	if (from || shy)
		ask_out_by_flow(question, from, shy);
	else
		question->expected->confirms = confirms_note(question);
}

static void ask_error_out(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct endpoint *from = world_endpoint(question->world, visit->wire.outer.source);
	const struct world_flow *flow;

	tuple_of(&visit->wire, DIRECTION_OUT, &question->expected->key);
	flow = world_live_flow(question->world, &question->expected->key);
	if (flow)
		take_flow(question, &flow->value, "an error about a flow, outwards");
	else if (from && wants_masquerade(question->world, visit, from) &&
		 !is_settled(question->world, &question->expected->key))
		answer(question, ANSWER_DROP, "a container's error about nothing");
	else
		answer(question, ANSWER_PASS, "an error about nothing, outwards");
}

static bool must_be_remembered(const struct question *question)
{
	const struct wire *wire = &question->visit->wire;
	const struct flow_key *key = &question->expected->key;
	uint16_t port = key->source_port;

	if (any_identifier(key))
		return !wire->outer.echo_reply;
	if (key->protocol == PROTOCOL_SCTP)
		return true;
	if (wire->tcp_flags & WIRE_RST)
		return false;
	if (world_mapping(question->world, key->protocol, key->source, port))
		return true;
	return (key->protocol == PROTOCOL_UDP || begins_tcp(wire)) &&
	       world_noticed(question->world, port);
}

/* The host's own packet is let alone, but its answer must not be taken for a request, nor
 * for the answer to a container, which has to find another port. */
static void ask_host(struct question *question)
{
	struct expectation *expected = question->expected;
	const struct world *world = question->world;
	const struct flow_key *key = &expected->key;
	const struct world_flow *standing;
	struct flow flow = {.kind = FLOW_HOST}, other;
	struct flow_key other_key;

	answer(question, ANSWER_PASS, "the host's own");
	if (question->visit->wire.kind != WIRE_FLOW)
		return;
	tuple_of(&question->visit->wire, DIRECTION_OUT, &expected->key);
	expected->confirms = question->visit->wire.first_fragment && confirms_note(question);
	if (expected->confirms) {
		answer(question, ANSWER_PASS, "a direct client's, cut again");
		return;
	}
	memcpy(flow.address, key->source, 16);
	flow.port = key->source_port;
	flow.peer_port = key->destination_port;
	if (!must_be_remembered(question) || known_flow(question))
		return;
	world_other_half(key, &flow, &other_key, &other);
	standing = world_live_flow(world, &other_key);
	if (!taken(world, key, &flow) || (standing && standing->value.kind == FLOW_MASQUERADE))
		begin_flow(question, &flow, "the host's own, remembered");
}

/* Somebody else's NAT has given it the address of the interface by which it leaves. */
static bool is_foreign(const struct question *question)
{
	const struct visit *visit = question->visit;
	const struct interface *interface = world_interface(question->world, visit->device);
	const struct wire *wire = &visit->wire;
	bool begins =
		wire->outer.protocol == PROTOCOL_TCP ? begins_tcp(wire) : !wire->outer.echo_reply;

	return visit->came_in_by && visit->hook == TO_UPLINK && wire->kind == WIRE_FLOW && begins &&
	       interface &&
	       memcmp(wire->ipv4 ? interface->address4 : interface->address6, wire->outer.source,
		      16) == 0;
}

static void ask_foreign(struct question *question)
{
	const struct flow_key *key = &question->expected->key;
	struct flow flow = {.kind = FLOW_FOREIGN};

	answer(question, ANSWER_PASS, "somebody else's");
	tuple_of(&question->visit->wire, DIRECTION_OUT, &question->expected->key);
	if (world_live_flow(question->world, key))
		return;
	memcpy(flow.address, key->source, 16);
	flow.port = key->source_port;
	flow.peer_port = key->destination_port;
	if (!taken(question->world, key, &flow))
		begin_flow(question, &flow, "somebody else's, remembered");
}

static void remember_fragment(struct question *question);

static void ask_leave(struct question *question)
{
	const struct visit *visit = question->visit;

	if (visit->wire.kind == WIRE_ERROR)
		ask_error_out(question);
	else if (!visit->came_in_by && !world_endpoint(question->world, visit->wire.outer.source)) {
		ask_host(question);
		return;
	} else if (!world_endpoint(question->world, visit->wire.outer.source) &&
		   is_foreign(question)) {
		ask_foreign(question);
		return;
	} else
		ask_out(question);
	if (visit->wire.kind != WIRE_ERROR &&
	    world_endpoint(question->world, visit->wire.outer.source))
		remember_fragment(question);
}

/* What is to be done to the other fragments. Those that came too early follow behind this
 * one when it comes in once more. */
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
		expected->fate = expected->takes_flow ? FRAGMENT_TRANSLATED : FRAGMENT_PASSED;
	if (expected->answer != ANSWER_DROP && fragment->last_seen && fragment->newest &&
	    (int32_t)(question->world->now - fragment->last_seen) <= 5 &&
	    !leaves(question->visit)) {
		expected->unsure |= expected->choice != CHOICE_NONE; /* nobody sees the port */
		answer(question, ANSWER_DROP, "sent in once more, before the others");
	}
}

/* One to this host may have to be translated: it waits. */
static void ask_later_fragment(struct question *question)
{
	if (ask_first_fragment(question))
		return;
	if (world_route(question->visit->wire.outer.destination) == 0)
		answer(question, ANSWER_HOLD, "early, to this host");
	else
		answer(question, ANSWER_PASS, "early, not to this host");
}

static bool addressed_to(const struct visit *visit, const uint8_t *mac)
{
	return memcmp(visit->frame.bytes, mac, MAC_SIZE) == 0;
}

static void ask_enter(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct endpoint *from = world_endpoint(question->world, visit->wire.outer.source);

	answer(question, ANSWER_PASS, "not for us, or seen at the container's veth");
	if (visit->wire.kind < WIRE_OPAQUE || !addressed_to(visit, host_mac(visit->device)))
		return;
	if (visit->hook == FROM_BRIDGE && from && world_owner_live(question->world, &from->owner))
		return;
	if (visit->wire.kind == WIRE_FRAGMENT)
		ask_later_fragment(question);
	else if (visit->wire.kind == WIRE_ERROR)
		ask_error_in(question);
	else if (visit->wire.kind == WIRE_FLOW)
		ask_in(question, true);
	remember_fragment(question);
}

/* What is to leave translated, but would be switched past the hook that does so. */
static void ask_lift(struct question *question, const struct world_flow *flow,
		     const struct interface *interface)
{
	struct expectation *expected = question->expected;

	if (!changes(&expected->key, &flow->value)) {
		known_flow(question);
		answer(question, ANSWER_PASS, "switched, untranslated");
		return;
	}
	answer(question, ANSWER_LIFT, "switched, to be translated");
	memcpy(expected->mac, interface->bridge_mac, MAC_SIZE);
}

/* A masqueraded container's way out by an interface that nobody has classified. */
static bool leaves_unclassified(const struct question *question, const struct endpoint *from)
{
	const uint8_t *destination = question->visit->wire.outer.destination;
	uint32_t device = world_route(destination);

	return wants_masquerade(question->world, question->visit, from) && device != 0 &&
	       !world_interface(question->world, device);
}

/* A router may complain of what leaves by where it is, for somebody who is no container. */
static bool is_of_way(const struct world *world, const struct world_flow *flow,
		      const struct interface *interface, uint32_t device)
{
	const struct world_flow *out;
	struct flow_key out_key;
	struct flow ignored;

	if (flow->key.direction != DIRECTION_IN || world_endpoint(world, flow->key.source))
		return false;
	world_other_half(&flow->key, &flow->value, &out_key, &ignored);
	out = world_live_flow(world, &out_key);
	return out && out->value.out_ifindex ==
			      (interface->role == ROLE_PORT ? interface->bridge_ifindex : device);
}

/* A container's error that a flow would translate which is none of its business */
static bool is_foreign_error(const struct question *question, const struct interface *interface)
{
	const struct world *world = question->world;
	const struct wire *wire = &question->visit->wire;
	const struct world_flow *flow;
	struct flow_key key;

	if (wire->kind != WIRE_ERROR ||
	    memcmp(wire->quoted.destination, wire->outer.source, 16) == 0)
		return false;
	tuple_of(wire, DIRECTION_OUT, &key);
	flow = world_live_flow(world, &key);
	if (!flow) {
		key.direction = DIRECTION_IN;
		flow = world_live_flow(world, &key);
	}
	return flow && !same_owner(&flow->value.owner, &interface->owner) &&
	       changes(&key, &flow->value) &&
	       !is_of_way(world, flow, interface, question->visit->device);
}

/* A container's may be a reply, to be translated or lifted: it waits whoever it is for. */
static void ask_container_fragment(struct question *question, const struct interface *interface)
{
	if (!ask_first_fragment(question)) {
		answer(question, ANSWER_HOLD, "early, from a container");
	} else if (question->world->fragment.fate == FRAGMENT_LIFTED) {
		answer(question, ANSWER_LIFT, "as the first fragment was");
		memcpy(question->expected->mac, interface->bridge_mac, MAC_SIZE);
	}
}

/* Not the container's own address: another one's, or, as routing over IPv6 says, the host's.
 * What is written down of the host's addresses is empty here. */
static bool is_forged(const struct question *question, const struct endpoint *from, bool routed)
{
	const struct wire *wire = &question->visit->wire;

	if (from)
		return world_owner_live(question->world, &from->owner);
	return !wire->ipv4 && routed && !world_route(wire->outer.source);
}

static void ask_container(struct question *question)
{
	const struct visit *visit = question->visit;
	const struct world *world = question->world;
	const struct interface *interface = world_interface(world, visit->device);
	const struct endpoint *from = world_endpoint(world, visit->wire.outer.source);
	const struct world_flow *out = NULL;
	bool routed;

	if (!interface || !world_owner_live(world, &interface->owner)) {
		answer(question, ANSWER_DROP, "from a veth without attachment");
		return;
	}
	if (is_foreign_error(question, interface)) {
		answer(question, ANSWER_DROP, "an error about somebody else's flow");
		return;
	}
	answer(question, ANSWER_PASS, "not the container's own address");
	routed = addressed_to(visit, host_mac(visit->device)) ||
		 (interface->role == ROLE_PORT && addressed_to(visit, interface->bridge_mac));
	if (!from || !same_owner(&from->owner, &interface->owner)) {
		if (is_forged(question, from, routed))
			answer(question, ANSWER_DROP, "another's address");
		return;
	}
	answer(question, ANSWER_PASS, "nothing to translate at the veth");
	if (visit->wire.kind == WIRE_FRAGMENT) {
		ask_container_fragment(question, interface);
		if (question->expected->answer != ANSWER_PASS)
			return;
	}
	if (visit->wire.kind >= WIRE_FLOW) {
		tuple_of(&visit->wire, DIRECTION_OUT, &question->expected->key);
		out = world_live_flow(world, &question->expected->key);
		if (out && !routed) {
			ask_lift(question, out, interface);
			remember_fragment(question);
			return;
		}
		if (!out && visit->wire.kind == WIRE_ERROR)
			ask_error_in(question);
		else if (!out)
			ask_in(question, routed);
		if (question->expected->takes_flow) {
			remember_fragment(question);
			return;
		}
	}
	if (routed && leaves_unclassified(question, from))
		answer(question, ANSWER_DROP, "would leave by an unclassified interface");
	else
		remember_fragment(question);
}

/* Then nobody can tell what a CRC is to be. */
static bool lies_about_length(const struct frame *frame, const struct wire *wire)
{
	size_t length = wire->ipv4 ? wire_read16(frame, wire->quoted.network + 2)
				   : wire_read16(frame, wire->quoted.network + 4) + 40u;

	return wire->quoted.network + length < wire->quoted.transport + 12;
}

/* A question with the identifier 0 looks like an answer. */
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
	uint16_t type = wire_read16(frame, at);

	return type == 0x8100 || type == 0x88a8;
}

/* Would the kernel take tags off behind the program? Here all of them stand in the frame, as if
 * another one, of no VLAN, had been taken off before. */
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
		if (wire_read16(frame, at + 2) & 0xfff)
			return false;
	return true;
}

void oracle_ask(const struct world *world, const struct visit *visit, struct expectation *expected)
{
	struct question question = {.world = world, .visit = visit, .expected = expected};

	memset(expected, 0, sizeof(*expected));
	answer(&question, ANSWER_PASS, "no packet of ours");
	expected->unsure = is_ambiguous(&visit->frame, &visit->wire);
	if (is_unwrapped_later(visit))
		answer(&question, ANSWER_DROP, "tags that are taken off later");
	if (visit->wire.kind == WIRE_FOREIGN) {
		/* To a group, say, with the address of another container. */
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

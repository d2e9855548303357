/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verify.c - verdict and bytes against the oracle's; the flow tables; the invariants. */
#include "verify.h"

#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <string.h>

static bool equal(const struct frame *a, const struct frame *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* In ones' complement 0 and 0xffff are the same number. Where the input's checksum was
 * right, verify_invariants() asks for a right one. */
static void unify_zero(struct frame *frame, size_t checksum)
{
	if (checksum + 2 <= frame->length && wire_read16(frame, checksum) == 0xffff)
		wire_write16(frame, checksum, 0);
}

static void unify_header(struct frame *frame, const struct wire *wire,
			 const struct wire_header *header)
{
	if (wire->ipv4)
		unify_zero(frame, header->network + 10);
	if (header->protocol == IPPROTO_SCTP)
		return;
	if (header->protocol != IPPROTO_UDP && wire_checksum_offset(header->protocol))
		unify_zero(frame, header->transport + wire_checksum_offset(header->protocol));
}

static bool equal_but_for_zeros(const struct frame *a, const struct frame *b,
				const struct wire *wire)
{
	struct frame left = *a, right = *b;

	if (equal(a, b))
		return true;
	unify_header(&left, wire, &wire->outer);
	unify_header(&right, wire, &wire->outer);
	if (wire->kind == WIRE_ERROR) {
		unify_header(&left, wire, &wire->quoted);
		unify_header(&right, wire, &wire->quoted);
	}
	return equal(&left, &right);
}

static const char *learn_choice(const struct world *world, struct expectation *expected,
				const struct frame *out)
{
	uint16_t chosen;
	struct wire wire;

	wire_read(out, &wire);
	chosen = wire.outer.source_port;
	if (expected->choice == CHOICE_MASQUERADE) {
		expected->flow.port = chosen;
		if (!oracle_port_in_set(world, expected, chosen))
			return "the port chosen is not in the set";
		if (!oracle_port_free(world, expected, chosen))
			return "the port chosen is somebody else's";
		return NULL;
	}
	expected->flow.peer_port = chosen;
	if (chosen < 1024)
		return "the client's port was moved below 1024";
	return oracle_tuple_free(world, expected)
		       ? NULL
		       : "the client's port was moved to one that is another flow's";
}

static const char *verify_verdict(const struct expectation *expected, int verdict)
{
	int wanted = TC_ACT_UNSPEC;

	if (expected->answer == ANSWER_DROP ||
	    (expected->answer == ANSWER_HOLD && verdict == TC_ACT_SHOT))
		wanted = TC_ACT_SHOT;
	else if (expected->answer == ANSWER_TRANSLATE && expected->redirect)
		wanted = TC_ACT_REDIRECT;
	if (verdict == wanted)
		return NULL;
	return verdict == TC_ACT_SHOT ? "dropped, should not have been" : "another verdict";
}

const char *verify_outcome(const struct world *world, const struct visit *visit,
			   struct expectation *expected, struct outcome *outcome)
{
	const char *wrong = verify_verdict(expected, outcome->verdict);

	outcome->expected = visit->frame;
	if (wrong || outcome->verdict == TC_ACT_SHOT)
		return wrong;
	if (expected->choice != CHOICE_NONE)
		wrong = learn_choice(world, expected, &outcome->frame);
	if (expected->notices)
		expected->notices = expected->begins_flow &&
				    !oracle_port_is_own(world, expected, expected->flow.port);
	if (expected->answer == ANSWER_TRANSLATE)
		oracle_translate(visit, expected,
				 world_endpoint(world, visit->wire.outer.source) != NULL,
				 &outcome->expected);
	if (expected->answer == ANSWER_LIFT)
		memcpy(outcome->expected.bytes, expected->mac, MAC_SIZE);
	if (wrong)
		return wrong;
	return equal_but_for_zeros(&outcome->expected, &outcome->frame, &visit->wire)
		       ? NULL
		       : "other bytes";
}

static bool stands(const struct world *world, const struct flow_key *key, const struct flow *flow)
{
	const struct world_flow *standing = world_live_flow(world, key);

	return standing && world_same_translation(&standing->value, flow);
}

static const char *verify_other_half(const struct world *world, const struct flow_key *key,
				     const struct flow *flow)
{
	struct flow_key other_key;
	struct flow other;

	world_other_half(key, flow, &other_key, &other);
	return stands(world, &other_key, &other) ? NULL : "the flow's other half is not there";
}

/* Whoever came through the stack is no longer only noted. */
static const char *verify_confirmed(const struct world *world, const struct expectation *expected)
{
	struct flow_key key = expected->key;
	const struct world_flow *standing;

	key.direction = DIRECTION_IN;
	standing = world_live_flow(world, &key);
	if (!standing || standing->value.unconfirmed)
		return "not confirmed";
	return verify_other_half(world, &standing->key, &standing->value);
}

static const char *verify_states(const struct world *world, const struct expectation *expected)
{
	const struct world_flow *standing = world_live_flow(world, &expected->key);

	if (expected->promotes && (!standing || standing->table != ANSWERED))
		return "an answered flow has not come into flows";
	if (expected->notices && expected->begins_flow &&
	    !world_noticed(world, expected->flow.port))
		return "a masquerade port has not been noticed";
	if (expected->sees_fin && (!standing || !standing->value.fin))
		return "a FIN has not been seen";
	return NULL;
}

const char *verify_flows(const struct world *world, const struct visit *visit,
			 const struct expectation *expected, int flows_before)
{
	const struct world_flow *standing = world_live_flow(world, &expected->key);
	const char *wrong;

	if (expected->notes)
		return standing && standing->value.unconfirmed ? NULL : "not noted";
	if (expected->confirms)
		return verify_confirmed(world, expected);
	wrong = verify_states(world, expected);
	if (wrong)
		return wrong;
	if (world->flow_count > flows_before &&
	    (visit->wire.kind != WIRE_FLOW || (!expected->begins_flow && !expected->touches_flow)))
		return "a flow has come into being";
	if (visit->wire.kind != WIRE_FLOW || (!expected->begins_flow && !expected->repairs_flow))
		return NULL;
	if (!standing)
		return "the flow is not there";
	if (expected->takes_flow && !world_same_translation(&standing->value, &expected->flow))
		return "the flow is another one";
	return verify_other_half(world, &standing->key, &standing->value);
}

const char *verify_fragment(const struct world *world, const struct expectation *expected)
{
	const struct fragment *fragment = &world->fragment;

	if (!expected->remembers)
		return NULL;
	if (!fragment->last_seen || fragment->fate != expected->fate)
		return "something else is remembered for the other fragments";
	if (expected->fate == FRAGMENT_TRANSLATED &&
	    memcmp(fragment->address, expected->flow.address, 16) != 0)
		return "another address is remembered for the other fragments";
	return NULL;
}

/* The packet that an error quotes, as a frame of its own. */
static void take_quoted(const struct frame *frame, const struct wire *wire, struct frame *quoted)
{
	quoted->length = 14 + wire->end - wire->quoted.network;
	memcpy(quoted->bytes, frame->bytes, 14);
	memcpy(quoted->bytes + 14, frame->bytes + wire->quoted.network, quoted->length - 14);
}

static const char *verify_checksums(const struct frame *in, const struct frame *out)
{
	struct frame quoted_in, quoted_out;
	struct wire before, after;

	wire_read(in, &before);
	wire_read(out, &after);
	if (before.kind == WIRE_FOREIGN)
		return NULL;
	if (after.kind != before.kind)
		return "another kind of packet";
	if (wire_network_checksum_right(in, &before) && !wire_network_checksum_right(out, &after))
		return "the IPv4 header checksum is wrong now";
	if (before.kind < WIRE_FLOW)
		return NULL;
	if (wire_transport_checksum_right(in, &before) &&
	    !wire_transport_checksum_right(out, &after))
		return "the transport checksum is wrong now";
	if (before.kind != WIRE_ERROR)
		return NULL;
	take_quoted(in, &before, &quoted_in);
	take_quoted(out, &after, &quoted_out);
	return verify_checksums(&quoted_in, &quoted_out);
}

/* May a packet leave by an uplink with the address of a container that is masqueraded? */
static bool may_keep_address(const struct world *world, const struct wire *wire)
{
	const struct wire_header *outer = &wire->outer;
	struct flow_key key = {.direction = DIRECTION_OUT,
			       .protocol = (enum protocol)outer->protocol,
			       .source_port = outer->source_port,
			       .destination_port = outer->destination_port};
	const struct world_flow *flow;

	memcpy(key.source, outer->source, 16);
	memcpy(key.destination, outer->destination, 16);
	if (wire->kind == WIRE_FRAGMENT)
		return world->fragment.fate == FRAGMENT_PASSED ||
		       (world->fragment.fate == FRAGMENT_TRANSLATED &&
			!memcmp(world->fragment.address, outer->source, 16));
	flow = world_live_flow(world, &key);
	if (flow && flow->value.kind == FLOW_DIRECT)
		return true;
	memcpy(key.source, outer->destination, 16);
	memcpy(key.destination, outer->source, 16);
	key.source_port = outer->destination_port;
	key.destination_port = outer->source_port;
	flow = world_live_flow(world, &key);
	return flow && flow->value.kind < FLOW_DIRECT;
}

static const char *verify_leak(const struct world *world, const struct visit *visit,
			       const struct wire *out)
{
	const uint8_t *source = out->outer.source, *destination = out->outer.destination;
	const struct endpoint *from = world_endpoint(world, source);
	const struct policy *policy = from ? world_policy(world, &from->owner) : NULL;

	if (!visit->came_in_by && out->tcp_flags & WIRE_RST)
		return NULL; /* the stack's own, to a direct client that the firewall refuses */
	if (visit->hook != TO_UPLINK || out->kind == WIRE_FOREIGN || out->kind == WIRE_ERROR)
		return NULL;
	if (!from || !from->masquerade ||
	    world_same_subnet(source, destination, from->prefix_length))
		return NULL;
	if (policy &&
	    world_in_ranges(policy->unmasqueraded, policy->unmasqueraded_count, destination))
		return NULL;
	return may_keep_address(world, &visit->wire) ? NULL : "a container's address leaks";
}

const char *verify_invariants(const struct world *world, const struct visit *visit,
			      const struct outcome *outcome)
{
	bool of_the_host = (visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER) &&
			   !visit->came_in_by && !world_endpoint(world, visit->wire.outer.source);
	const char *wrong;
	struct wire out;

	if (of_the_host && visit->wire.kind != WIRE_ERROR &&
	    (outcome->verdict != TC_ACT_UNSPEC || !equal(&visit->frame, &outcome->frame)))
		return "the host's own packet was not let alone";
	if (outcome->verdict == TC_ACT_SHOT)
		return NULL;
	if (outcome->frame.length != visit->frame.length)
		return "another length";
	wire_read(&outcome->frame, &out);
	wrong = verify_checksums(&visit->frame, &outcome->frame);
	return wrong ? wrong : verify_leak(world, visit, &out);
}

/* The live flow that may send packets past the stack; NULL: there is none. */
static const struct flow *sending_flow(const struct world *world, const struct flow_key *tuple,
				       enum direction direction)
{
	const struct world_flow *flow;
	struct flow_key key = *tuple;

	key.direction = direction;
	flow = world_live_flow(world, &key);
	if (!flow || (key.protocol != PROTOCOL_TCP && key.protocol != PROTOCOL_UDP) ||
	    (flow->value.kind != FLOW_MAPPING && flow->value.kind != FLOW_MASQUERADE))
		return NULL;
	return &flow->value;
}

static const char *verify_hop(const struct wire *wire, const struct frame *in,
			      const struct frame *out)
{
	size_t offset = wire->outer.network + (wire->ipv4 ? 8 : 7);

	if (in->bytes[offset] <= 1)
		return "sent on, and has no hop left";
	return out->bytes[offset] == in->bytes[offset] - 1 ? NULL : "not a hop less";
}

const char *verify_sent(const struct world *world, const struct visit *visit,
			const struct expectation *expected, const struct outcome *outcome)
{
	bool leaves = visit->hook == TO_UPLINK || visit->hook == TO_CONTAINER;
	const struct flow *in = sending_flow(world, &expected->key, DIRECTION_IN);
	const struct flow *out = sending_flow(world, &expected->key, DIRECTION_OUT);
	struct wire now;

	if (outcome->verdict != TC_ACT_REDIRECT || leaves)
		return NULL;
	if (visit->hook == FROM_BRIDGE)
		return "sent on from the bridge";
	if (visit->wire.kind == WIRE_FRAGMENT)
		return world->fragment.path >= PATH_CONTAINER
			       ? verify_hop(&visit->wire, &visit->frame, &outcome->frame)
			       : "a fragment without a path";
	if (visit->wire.kind < WIRE_FLOW)
		return "sent on, and belongs to no flow";
	if (visit->hook == FROM_UPLINK)
		out = NULL;
	if (!in && !out && !expected->begins_flow)
		return "sent on, and no live flow's";
	if (visit->wire.kind == WIRE_ERROR)
		return verify_hop(&visit->wire, &visit->frame, &outcome->frame);
	wire_read(&outcome->frame, &now);
	if (out && memcmp(now.outer.source, out->address, 16) != 0)
		return "sent on without its flow's source [i04]";
	if (!out && in && memcmp(now.outer.destination, in->address, 16) != 0)
		return "sent on to somebody else than its flow's container";
	return verify_hop(&visit->wire, &visit->frame, &outcome->frame);
}

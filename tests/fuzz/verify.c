/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verify.c - compares verdict and bytes with the oracle's, and checks invariants. */
#include "verify.h"

#include <linux/pkt_cls.h>
#include <netinet/in.h>
#include <string.h>

#include "question.h"

static bool equal(const struct frame *a, const struct frame *b)
{
	return a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0;
}

/* In ones' complement 0 and 0xffff are the same number. verify_invariants() checks that a right
 * checksum stays right. */
static void unify_zero(struct frame *frame, size_t checksum)
{
	if (checksum + 2 <= frame->length && read16(frame, checksum) == 0xffff)
		write16(frame, checksum, 0);
}

static void unify_header(struct frame *frame, const struct wire *wire,
			 const struct wire_header *header)
{
	if (wire->ipv4)
		unify_zero(frame, header->network + 10);
	if (header->protocol == IPPROTO_SCTP)
		return;
	if (header->protocol != IPPROTO_UDP && checksum_offset(header->protocol))
		unify_zero(frame, header->transport + checksum_offset(header->protocol));
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

/* Fills in the port that the program has chosen for the new connection. */
static const char *learn_choice(const struct world *world, struct expectation *expected,
				const struct frame *out)
{
	struct world_connection *begun = &expected->begun;
	uint16_t chosen;
	struct wire wire;

	wire_read(out, &wire);
	chosen = wire.outer.source_port;
	if (expected->choice == CHOICE_MASQUERADE) {
		begun->value.external_port = chosen;
		expected->rewrite.port = chosen;
		if (!oracle_port_in_set(world, expected, chosen))
			return "the chosen port is not in the set";
		return oracle_port_free(world, expected, chosen) ? NULL
								 : "the chosen port is not free";
	}
	begun->key.outside_port = chosen;
	expected->rewrite.peer_port = chosen;
	if (chosen < 1024)
		return "the client's new port is below 1024";
	return record_settled(world, &begun->key)
		       ? "the client's new port belongs to another connection"
		       : NULL;
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
	return verdict == TC_ACT_SHOT ? "dropped, but should not have been" : "wrong verdict";
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
		       : "wrong bytes";
}

const char *verify_fragment(const struct world *world, const struct expectation *expected)
{
	const struct fragment *fragment = &world->fragment;

	if (!expected->remembers)
		return NULL;
	if (!fragment->last_seen || fragment->fate != expected->fate)
		return "the record of the datagram has a wrong fate";
	if (expected->fate == FRAGMENT_TRANSLATED &&
	    memcmp(fragment->translation.address, expected->rewrite.address, 16) != 0)
		return "the record of the datagram has a wrong address";
	return NULL;
}

/* Copies the packet that an error quotes to its own frame. */
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
		return "the kind of the packet has changed";
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

/* Whether a packet may leave through an uplink with the address of a masqueraded container. */
static bool may_keep_address(const struct world *world, const struct wire *wire)
{
	const struct world_connection *record;
	struct connection_key key;
	struct tuple tuple;

	if (wire->kind == WIRE_FRAGMENT)
		return world->fragment.fate == FRAGMENT_PASSED ||
		       (world->fragment.fate == FRAGMENT_TRANSLATED &&
			!memcmp(world->fragment.translation.address, wire->outer.source, 16));
	oracle_tuple(wire, DIRECTION_OUT, &tuple);
	record = record_outwards(world, &tuple);
	if (record && record->value.kind == FLOW_DIRECT)
		return true;
	record_key_of(&tuple, INWARDS, &key);
	record = record_settled(world, &key);
	return record && record->value.kind < FLOW_DIRECT;
}

static const char *verify_leak(const struct world *world, const struct visit *visit,
			       const struct wire *out)
{
	const uint8_t *source = out->outer.source, *destination = out->outer.destination;
	const struct endpoint *from = world_endpoint(world, source);
	const struct policy *policy = from ? world_policy(world, &from->owner) : NULL;

	if (!visit->came_in_by && out->tcp_flags & RST)
		return NULL; /* the stack's RST to a direct client that the firewall refuses */
	if (visit->hook != TO_UPLINK || out->kind == WIRE_FOREIGN || out->kind == WIRE_ERROR)
		return NULL;
	if (!from || !from->masquerade ||
	    world_same_subnet(source, destination, from->prefix_length))
		return NULL;
	if (world->veth_gone[from->owner.slot] && oracle_is_unverified(visit))
		return NULL; /* nobody's, and not to be masqueraded by the record of one that has
				gone */
	if (policy &&
	    world_in_ranges(policy->unmasqueraded, policy->unmasqueraded_count, destination))
		return NULL;
	return may_keep_address(world, &visit->wire) ? NULL
						     : "a masqueraded container's address leaks";
}

/* Of the host's own packet nothing else may change: its connection may have got another port. */
static bool equal_but_for_port(const struct visit *visit, const struct frame *out)
{
	const struct wire_header *outer = &visit->wire.outer;
	struct frame restored = *out;
	size_t ports = outer->transport; /* with checksum or, of an echo, identifier */

	if (equal(&visit->frame, out))
		return true;
	if (visit->wire.kind != WIRE_FLOW || out->length != visit->frame.length)
		return false;
	memcpy(restored.bytes + ports, visit->frame.bytes + ports, 2);
	if (outer->protocol == IPPROTO_ICMP || outer->protocol == IPPROTO_ICMPV6)
		ports += 4;
	memcpy(restored.bytes + ports, visit->frame.bytes + ports, 2);
	ports = outer->transport +
		(outer->protocol == IPPROTO_SCTP ? 8 : checksum_offset(outer->protocol));
	memcpy(restored.bytes + ports, visit->frame.bytes + ports,
	       outer->protocol == IPPROTO_SCTP ? 4 : 2);
	return equal(&visit->frame, &restored);
}

const char *verify_invariants(const struct world *world, const struct visit *visit,
			      const struct outcome *outcome)
{
	bool of_the_host = leaves(visit) && !visit->came_in_by &&
			   !world_endpoint(world, visit->wire.outer.source);
	const char *wrong;
	struct wire out;

	if (of_the_host && visit->wire.kind != WIRE_ERROR &&
	    (outcome->verdict != TC_ACT_UNSPEC || !equal_but_for_port(visit, &outcome->frame)))
		return "the host's own packet was changed or dropped";
	if (outcome->verdict == TC_ACT_SHOT)
		return NULL;
	if (outcome->frame.length != visit->frame.length)
		return "the length has changed";
	wire_read(&outcome->frame, &out);
	wrong = verify_checksums(&visit->frame, &outcome->frame);
	return wrong ? wrong : verify_leak(world, visit, &out);
}

/* Whether its packets may skip the stack. */
static bool may_send(const struct world_connection *record)
{
	return record &&
	       (record->key.protocol == PROTOCOL_TCP || record->key.protocol == PROTOCOL_UDP) &&
	       (record->value.kind == FLOW_MAPPING || record->value.kind == FLOW_MASQUERADE);
}

static const char *verify_hop(const struct wire *wire, const struct frame *in,
			      const struct frame *out)
{
	size_t offset = wire->outer.network + (wire->ipv4 ? 8 : 7);

	if (in->bytes[offset] <= 1)
		return "skips the stack on its last hop";
	return out->bytes[offset] == in->bytes[offset] - 1 ? NULL : "the TTL is not decremented";
}

/* The connection of an inward packet; a mapped one where the host's own gives way to it. */
static const struct world_connection *record_of_sent(const struct world *world,
						     const struct tuple *tuple,
						     const struct expectation *expected)
{
	struct tuple mapped = *tuple;
	struct connection_key key;
	struct found_inwards in;

	record_find_inwards(world, tuple, &in);
	if (!in.record || in.record->value.kind != FLOW_HOST || !expected->takes)
		return in.record;
	memcpy(mapped.destination, expected->rewrite.address, sizeof(mapped.destination));
	mapped.destination_port = expected->rewrite.port;
	record_key_of(&mapped, INWARDS, &key);
	return record_live(world, &key);
}

static const char *verify_sent_packet(const struct world *world, const struct visit *visit,
				      const struct expectation *expected,
				      const struct outcome *outcome)
{
	const struct world_connection *in, *out = NULL;
	const uint8_t *inside;
	struct tuple tuple;
	struct wire now;

	oracle_tuple(&visit->wire, DIRECTION_IN, &tuple);
	in = record_of_sent(world, &tuple, expected);
	if (visit->hook != FROM_UPLINK)
		out = record_outwards(world, &tuple);
	if (!may_send(in) && !may_send(out) && !expected->begins)
		return "skips the stack, but is of no live connection";
	if (visit->wire.kind == WIRE_ERROR)
		return NULL;
	wire_read(&outcome->frame, &now);
	if (out && memcmp(now.outer.source, out->value.external_address, 16) != 0)
		return "skips the stack without its connection's source";
	inside = expected->begins ? expected->begun.key.inside
		 : may_send(in)   ? in->key.inside
				  : NULL;
	if (!out && inside && memcmp(now.outer.destination, inside, 16) != 0)
		return "skips the stack, but not to its connection's container";
	return NULL;
}

const char *verify_sent(const struct world *world, const struct visit *visit,
			const struct expectation *expected, const struct outcome *outcome)
{
	const char *wrong = NULL;

	if (outcome->verdict != TC_ACT_REDIRECT || leaves(visit))
		return NULL;
	if (visit->hook == FROM_BRIDGE)
		return "skips the stack at the bridge";
	if (visit->wire.kind == WIRE_FRAGMENT && world->fragment.translation.path < PATH_CONTAINER)
		return "a fragment skips the stack without a path";
	if (visit->wire.kind < WIRE_FRAGMENT)
		return "skips the stack, but is of no connection";
	if (visit->wire.kind > WIRE_FRAGMENT)
		wrong = verify_sent_packet(world, visit, expected, outcome);
	return wrong ? wrong : verify_hop(&visit->wire, &visit->frame, &outcome->frame);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* egress.h - packets that leave the IP stack by an uplink, or towards a container: whose reply one
 * is, and whether it begins a connection that leaves with another source. */
#ifndef BPF_PORTMAP_EGRESS_H
#define BPF_PORTMAP_EGRESS_H

#include "apply.h"
#include "host.h"

/* Is this packet to leave with another source, were it to begin a connection? */
GLOBAL_FUNCTION bool masquerade_wanted(const struct packet *packet, const struct endpoint *endpoint)
{
	if (!packet || !endpoint || !endpoint->masquerade)
		return false;
	return !address_same_subnet(packet->sender, packet->tuple.destination,
				    endpoint->prefix_length) &&
	       !policy_leaves_source(&endpoint->owner, packet->tuple.destination);
}

/* The connection of a packet that goes this way, as the stack sees it; notes do not count. */
INLINE struct connection *connection_confirmed(const struct tuple *tuple, enum way way)
{
	struct connection *connection = connection_of(tuple, way);

	return connection && !(connection->state & STATE_UNCONFIRMED) ? connection : NULL;
}

/* The kind of the connection that a packet goes back by, to the outside. 0: there is none. */
INLINE __u8 kind_inwards(const struct tuple *tuple)
{
	const struct connection *back = connection_confirmed(tuple, INWARDS);

	return back ? back->kind : 0;
}

/* Part of a connection that is translated on its way back: the request of a container through a
 * mapping (the other one is to see who asked), or the answer to a masqueraded one, already
 * addressed to it. */
INLINE bool translated_on_return(const struct tuple *tuple)
{
	__u8 kind = kind_inwards(tuple);

	return kind == FLOW_MAPPING || kind == FLOW_MASQUERADE;
}

/* A container that is to see nobody but the host (masqAll), or NULL. */
INLINE const struct endpoint *masquerade_all_endpoint(const struct packet *packet)
{
	const struct endpoint *destination;

	if (!noticed_has(masquerade_all, 0))
		return NULL;
	destination = endpoint_find(packet->tuple.destination);
	return destination && policy_masquerades_all(&destination->owner) ? destination : NULL;
}

/* To itself, by way of a mapping: with its own address as source it would never answer us. */
INLINE bool is_hairpin(const struct packet *packet, const struct endpoint *endpoint)
{
	const struct endpoint *destination = endpoint_find(packet->tuple.destination);

	return destination && owner_equal(&destination->owner, &endpoint->owner) &&
	       !policy_keeps_hairpin_source(&endpoint->owner);
}

/* Routing chose the way of a reply by the container's address; the one that it is to have may
 * belong to another uplink. Returns that, or 0. A masqueraded connection has the address of the
 * interface that routing chose, and is left there. */
INLINE __u32 reply_reroute(struct __sk_buff *skb, const struct packet *packet,
			   const struct found *found)
{
	struct connection *connection = found->connection;
	struct leave *leave = &connection->leave[OUTWARDS];
	struct address source;
	__u32 out;

	if (connection->path[OUTWARDS] >= PATH_CONTAINER) {
		/* `leave` is the fast path's, which finds by it when to ask again. */
		address_copy(source.bytes, connection->external_address);
		out = route_by_source(skb, packet, &source);
	} else {
		if (!leave->ifindex || leave->looked_up != (__u16)found->now) {
			leave->ifindex = 0;
			/* A neighbour that is not known yet does not matter: whoever redirects asks
			 * it. */
			offload_look_up(skb, found->key, connection, OUTWARDS,
					skb->ingress_ifindex);
			if (!found_stands(found))
				return 0;
			leave->looked_up = found->now;
		}
		out = leave->ifindex;
	}
	return out == skb->ifindex || !route_fits(skb, packet, out) ? 0 : out;
}

/* A later fragment that leaves goes the way of its first one. Where that is not known, a
 * container's address stays inside. */
INLINE enum verdict decide_fragment_outwards(struct __sk_buff *skb, const struct packet *packet,
					     const struct endpoint *endpoint,
					     struct translation *translation)
{
	enum fragment_fate fate = fragment_follow(skb, packet, translation);

	if (fate == FRAGMENT_TRANSLATED)
		return VERDICT_TRANSLATE;
	if (fate == FRAGMENT_DROPPED)
		return VERDICT_DROP;
	if (fate == FRAGMENT_PASSED || !masquerade_wanted(packet, endpoint))
		return VERDICT_PASS;
	return drop(untranslatable);
}

/* A packet of a live connection on its way out. VERDICT_PASS: there is none. */
INLINE enum verdict leave_by_connection(struct __sk_buff *skb, struct packet *packet,
					struct translation *translation)
{
	struct found found = {};

	if (!found_outwards(&found, &packet->tuple) ||
	    (found.connection->state & STATE_UNCONFIRMED))
		return VERDICT_PASS;
	translation_outwards(found.connection, translation);
	if (found.connection->kind == FLOW_MAPPING)
		translation->out_ifindex = reply_reroute(skb, packet, &found);
	else
		offload_note_way(found.connection, skb->ifindex, found.now);
	if (!found_stands(&found))
		return VERDICT_TRANSLATE;
	offload_note(found.connection, OUTWARDS, found.now);
	return connection_use(&found, packet, skb->len);
}

/* A forwarded packet that leaves the stack. endpoint: its sender's, if that is a container. */
INLINE enum verdict decide_outwards(struct __sk_buff *skb, struct packet *packet, bool translatable,
				    const struct endpoint *endpoint,
				    struct translation *translation)
{
	struct tuple *tuple = &packet->tuple;
	const struct endpoint *destination;
	enum verdict verdict = VERDICT_PASS;
	bool concerned;

	if (endpoint && !owner_live(&endpoint->owner))
		return masquerade_wanted(packet, endpoint) ? drop(no_attachment) : VERDICT_PASS;
	destination = masquerade_all_endpoint(packet);
	concerned = endpoint;
	barrier_var(concerned); /* or compilers "or" the two pointers: clang 19 does */
	concerned = concerned || destination;
	if (packet->fragment == LATER_FRAGMENT && concerned)
		return decide_fragment_outwards(skb, packet, endpoint, translation);
	if (!translatable)
		return masquerade_wanted(packet, endpoint) ? drop(untranslatable) : VERDICT_PASS;
	if (concerned)
		verdict = leave_by_connection(skb, packet, translation);
	if (verdict != VERDICT_PASS)
		return verdict;
	if (destination && kind_inwards(tuple) == FLOW_MAPPING)
		return snat_begin(skb, packet, &destination->owner, false, translation);
	if (!endpoint) {
		direct_confirm(packet);
		return VERDICT_PASS;
	}
	if (skb->ingress_ifindex == 0 && direct_is_refused(packet))
		return VERDICT_PASS;
	if (is_hairpin(packet, endpoint))
		return snat_begin(skb, packet, &endpoint->owner, false, translation);
	if (!masquerade_wanted(packet, endpoint) || translated_on_return(tuple))
		return VERDICT_PASS;
	return snat_begin(skb, packet, &endpoint->owner, true, translation);
}

/* An ICMP error that leaves, about a packet that arrived translated: a container's, a router's
 * behind it, or the host's own, of which only the quoted packet is changed. */
INLINE enum verdict error_decide_outwards(struct packet *packet, struct translation *translation)
{
	const struct endpoint *sender = endpoint_find(packet->sender);
	const struct connection *connection;

	packet->tuple.direction = DIRECTION_OUT;
	connection = connection_confirmed(&packet->tuple, OUTWARDS);
	if (!connection && sender && masquerade_wanted(packet, sender) &&
	    !translated_on_return(&packet->tuple))
		return drop(untranslatable);
	if (!connection)
		return VERDICT_PASS;
	translation_outwards(connection, translation);
	packet->from_endpoint = sender;
	return VERDICT_TRANSLATE;
}

/* No container's (the stack makes packets in a container's name: a RST of the firewall's REJECT,
 * and the pieces into which ip6_fragment() cuts a packet again) but the host's own, which came in
 * nowhere; or what bears the host's address because another NAT has given it. Left alone, at most
 * remembered. */
INLINE bool leave_as_hosts(struct __sk_buff *skb, const struct packet *packet, bool translatable,
			   bool uplink)
{
	if (skb->ingress_ifindex != 0) {
		if (!uplink || !translatable || !host_is_foreign_nat(skb, packet))
			return false;
		host_remember_foreign(packet);
		return true;
	}
	if (translatable && packet->fragment == FIRST_FRAGMENT && direct_confirm(packet))
		return true; /* a client's, cut again */
	if (translatable && host_must_be_remembered(packet))
		host_remember(packet);
	return true;
}

/* A container may give its packets a tc_index; from_container takes that away again, but does not
 * hang at every interface that leads to one. */
INLINE bool entered_by_container(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && (interface->role == ROLE_PORT || interface->role == ROLE_ROUTED);
}

INLINE int handle_egress(struct __sk_buff *skb, __u16 l3_offset, bool uplink)
{
	struct translation translation = {};
	const struct endpoint *endpoint;
	enum packet_kind kind;
	struct packet packet;
	enum verdict verdict;
	__u16 index = skb->tc_index;

	if (index)
		skb->tc_index = 0;
	if (uplink && index == TC_INDEX_SENT && entered_by_container(skb))
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, l3_offset);
	if (kind == PACKET_IGNORED)
		return TC_ACT_UNSPEC;
	if (kind == PACKET_ERROR) {
		verdict = error_decide_outwards(&packet, &translation);
		return apply_verdict(skb, &packet, &translation, verdict);
	}
	packet.tuple.direction = DIRECTION_OUT;
	endpoint = endpoint_find(packet.sender);
	if (!endpoint && leave_as_hosts(skb, &packet, kind == PACKET_TRANSLATABLE, uplink))
		return TC_ACT_UNSPEC;
	verdict =
		decide_outwards(skb, &packet, kind == PACKET_TRANSLATABLE, endpoint, &translation);
	if (index == TC_INDEX_CONFIRM && verdict == VERDICT_PASS)
		offload_saw_leaving(&packet, skb->ingress_ifindex);
	if (uplink && verdict == VERDICT_PASS && endpoint && endpoint->strict &&
	    kind == PACKET_TRANSLATABLE)
		direct_remember_strict(&packet, endpoint);
	verdict = fragment_verdict(&packet, &translation, verdict);
	if (packet.fragment == FIRST_FRAGMENT && (verdict != VERDICT_PASS || endpoint))
		fragment_remember(skb, &packet, &translation, fragment_fate_of(verdict));
	return apply_verdict(skb, &packet, &translation, verdict);
}

#endif

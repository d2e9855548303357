/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* egress.h - packets that leave the IP stack to an uplink or a container: which connection one
 * belongs to, and whether it begins one whose source is translated. */
#pragma once

#include "apply.h"
#include "host.h"
#include "seal.h"

/* Returns whether this packet would be masqueraded if it began a connection. ifindex: where it
 * leaves; 0: not known yet. */
GLOBAL_FUNCTION bool masquerade_wanted(const struct packet *packet, const struct endpoint *endpoint,
				       __u32 ifindex)
{
	if (!packet || !endpoint || !endpoint->masquerade ||
	    (ifindex && network_refuses(&endpoint->owner, ifindex)))
		return false;
	return !address_same_subnet(packet->sender, packet->tuple.destination,
				    endpoint->prefix_length) &&
	       !policy_leaves_source(&endpoint->owner, packet->tuple.destination);
}

INLINE struct connection *connection_confirmed(const struct tuple *tuple, enum way way)
{
	struct connection *connection = connection_of(tuple, way);

	return connection && !(connection->state & STATE_UNCONFIRMED) ? connection : NULL;
}

/* Returns whether the connection's other direction is translated: a container's request through a
 * mapping (the other container is to see its address), or a reply to a masqueraded container. The
 * inside of both is a container or, where clients of a mapping are masqueraded, anyone. */
INLINE bool translated_on_return(const struct tuple *tuple)
{
	const struct connection *back;

	if (!endpoint_is_likely(tuple->destination) && !noticed_has(masquerade_all, 0))
		return false;
	back = connection_confirmed(tuple, INWARDS);
	return back && connection_is_translated(back);
}

INLINE const struct endpoint *masquerading_endpoint(const struct packet *packet)
{
	const struct endpoint *destination;

	if (!noticed_has(masquerade_all, 0))
		return NULL;
	destination = endpoint_find(packet->tuple.destination);
	return destination && policy_masquerades_client(&destination->owner, packet->sender)
		       ? destination
		       : NULL;
}

/* A container reaches itself through a mapping: a reply to its own address would never leave it. */
INLINE bool is_hairpin(const struct packet *packet, const struct endpoint *endpoint)
{
	const struct endpoint *destination = endpoint_find(packet->tuple.destination);

	return destination && owner_equal(&destination->owner, &endpoint->owner) &&
	       !policy_keeps_hairpin_source(&endpoint->owner);
}

/* Routing chose a reply's interface by the container's address; its new source may belong to
 * another uplink. Returns that uplink, or 0. */
INLINE __u32 reply_reroute(const struct flow_context *flow)
{
	struct __sk_buff *skb = flow->skb;
	const struct packet *packet = flow->packet;
	const struct found *found = &flow->found;
	struct connection *connection = found->connection;
	struct address source;
	__u32 out = connection->out_ifindex;

	if (!out || connection->out_asked != (__u16)found->now) {
		address_copy(source.bytes, connection->external_address);
		out = route_by_source(skb, packet, &source);
		if (!found_stands(found))
			return 0;
		connection->out_ifindex = out;
		connection->out_asked = found->now;
		flow->packet->renewed = true;
		offload_heed_stack(skb, packet, connection);
		out = connection->out_ifindex;
	}
	return out == skb->ifindex || !route_fits(skb, packet, out) ? 0 : out;
}

/* Handles an outward packet of a live connection. VERDICT_PASS: the connection has ended. A reply
 * that routing would send by another interface has no memo: whether it is redirected there depends
 * on its size. */
INLINE enum verdict leave_by_connection(struct flow_context *flow)
{
	struct __sk_buff *skb = flow->skb;
	struct packet *packet = flow->packet;
	struct found *found = &flow->found;
	struct connection *connection = found->connection;
	enum verdict verdict;
	bool elsewhere = masquerade_leaves_elsewhere(found->key, connection, skb->ifindex);
	__u32 reroute = 0;

	if (elsewhere)
		reroute = masquerade_reroute(skb, packet, connection->uplink);
	if (connection->kind == FLOW_MASQUERADE && !reroute &&
	    (elsewhere || connection->out_asked != (__u16)found->now)) {
		if (!masquerade_stands(skb, packet, found->key, connection, skb->ifindex)) {
			connection_end(found->key, found->id);
			return VERDICT_PASS;
		}
		packet->renewed = true;
	}
	translation_outwards(connection, flow->translation);
	if (connection->kind == FLOW_MAPPING)
		reroute = reply_reroute(flow);
	else if (!reroute)
		offload_note_way(skb, packet, connection, found->now);
	if (!found_stands(found))
		return VERDICT_TRANSLATE;
	flow->translation->out_ifindex = reroute;
	offload_note_outwards(skb, packet, found->key, connection, found->now);
	if (connection->kind == FLOW_MASQUERADE)
		connection->out_asked = found->now;
	verdict = connection_use(found, packet, skb->len);
	if (verdict == VERDICT_TRANSLATE && connection_leaves_by(connection) == skb->ifindex)
		offload_remember(flow);
	return verdict;
}

/* Returns whether the seal was right before another NAT changed the packet: br_netfilter lets one
 * send it elsewhere than the bridge would have, and any connection gets another port where a
 * translated one has its tuple already. */
GLOBAL_FUNCTION bool sender_sealed_before(struct __sk_buff *skb, const struct packet *packet)
{
	const struct tracked *tracked = &scratch_get()->tracked;
	struct translation asked = {};

	if (!packet || !conntrack_has_changed(skb))
		return false;
	asked.port = packet->tuple.destination_port;
	asked.peer_port = packet->tuple.source_port;
	if (packet_protocol_has_ports(packet->tuple.protocol)) {
		asked.port = bpf_ntohs(tracked->asked_port);
		asked.peer_port = bpf_ntohs(tracked->client_port);
	}
	conntrack_address(packet, tracked->asked, asked.address);
	return seal_is_right(packet, &asked);
}

/* Returns whether a packet with a container's address is from that container, or was made by the
 * host in its name: the latter has no ingress interface. Nor has a fragment that ip6_fragment() has
 * made again of what anyone sent, so that one needs the seal. */
INLINE bool sender_is_verified(struct __sk_buff *skb, const struct packet *packet)
{
	return (!skb->ingress_ifindex && !packet->fragment) || seal_is_right(packet, NULL) ||
	       sender_sealed_before(skb, packet);
}

/* Returns whether a user of this host sends with an address that the host does not have. IPv6 lets
 * anyone do so (IPV6_FREEBIND); root may anyway. The host's firewall answers without a socket. */
INLINE bool sender_is_local_user(struct __sk_buff *skb, const struct packet *packet)
{
	return !skb->ingress_ifindex && !packet->ipv4 && skb->sk && bpf_get_socket_uid(skb);
}

/* Begins a connection whose source is translated, if one of the two containers wants that. A packet
 * that has not come through its sender's veth is a forger's, or the container's own by an interface
 * of another network. */
INLINE enum verdict leave_new(const struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	const struct endpoint *sender = flow->sender, *receiver = flow->receiver;
	const struct connection *back = NULL;
	bool hairpin;

	if (receiver)
		back = connection_confirmed(&packet->tuple, INWARDS);
	if (back && back->kind == FLOW_MAPPING)
		return snat_begin(flow->skb, packet, &receiver->owner, false, flow->translation);
	if (!sender) {
		direct_confirm(packet);
		return VERDICT_PASS;
	}
	hairpin = is_hairpin(packet, sender);
	if (!hairpin && !masquerade_wanted(packet, sender, flow->skb->ifindex))
		return VERDICT_PASS;
	if (!sender_is_verified(flow->skb, packet))
		return masquerade_wanted(packet, sender, flow->skb->ifindex) &&
				       slot_has_veth(sender->owner.slot)
			       ? drop(forged_source)
			       : VERDICT_PASS;
	if (flow->skb->ingress_ifindex == 0 && direct_is_refused(packet))
		return VERDICT_PASS;
	if ((!hairpin && translated_on_return(&packet->tuple)) ||
	    conntrack_has_translated_back(flow->skb))
		return VERDICT_PASS;
	return snat_begin(flow->skb, packet, &sender->owner, !hairpin, flow->translation);
}

/* What cannot be translated must not leave with the address of a container that is masqueraded. A
 * later fragment shares the fate of its first one. */
INLINE enum verdict leave_unrelated(const struct flow_context *flow)
{
	enum fragment_fate fate = FRAGMENT_WAITING;

	if (flow->sender && !owner_live(&flow->sender->owner))
		return masquerade_wanted(flow->packet, flow->sender, flow->skb->ifindex)
			       ? drop(no_attachment)
			       : VERDICT_PASS;
	if (flow->packet->fragment == LATER_FRAGMENT)
		fate = fragment_follow(flow->skb, flow->packet, flow->translation);
	if (fate == FRAGMENT_TRANSLATED)
		return VERDICT_TRANSLATE;
	if (fate == FRAGMENT_DROPPED)
		return VERDICT_DROP;
	return fate != FRAGMENT_PASSED &&
			       masquerade_wanted(flow->packet, flow->sender, flow->skb->ifindex)
		       ? drop(untranslatable)
		       : VERDICT_PASS;
}

/* Decides about an error about a packet that was translated inwards, from a container, a router
 * behind it, or the host. In the host's own only the quoted packet is changed. */
INLINE enum verdict error_decide_outwards(struct flow_context *flow)
{
	struct packet *packet = flow->packet;
	const struct connection *connection = connection_confirmed(&packet->tuple, OUTWARDS);

	if (!connection && flow->sender &&
	    masquerade_wanted(packet, flow->sender, flow->skb->ifindex) &&
	    !translated_on_return(&packet->tuple) && !conntrack_has_translated_back(flow->skb))
		return drop(untranslatable);
	if (!connection)
		return VERDICT_PASS;
	translation_outwards(connection, flow->translation);
	packet->from_endpoint = flow->sender;
	return VERDICT_TRANSLATE;
}

INLINE enum relation relation_outwards(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	bool concerned = flow->sender;

	if (packet->error)
		return RELATION_RELATED;
	if (flow->kind != PACKET_TRANSLATABLE ||
	    (flow->sender && !owner_live(&flow->sender->owner)))
		return RELATION_NONE;
	flow->receiver = masquerading_endpoint(packet);
	barrier_var(concerned); /* or compilers "or" two pointers: clang 19 does */
	concerned = concerned || flow->receiver;
	return concerned && found_outwards(&flow->found, &packet->tuple) &&
			       !(flow->found.connection->state & STATE_UNCONFIRMED)
		       ? RELATION_ESTABLISHED
		       : RELATION_NEW;
}

INLINE enum verdict decide_outwards(struct flow_context *flow)
{
	enum verdict verdict;

	switch (relation_outwards(flow)) {
	case RELATION_RELATED:
		return error_decide_outwards(flow);
	case RELATION_ESTABLISHED:
		verdict = leave_by_connection(flow);
		return verdict != VERDICT_PASS ? verdict : leave_new(flow); /* it has ended */
	case RELATION_NEW:
		return leave_new(flow);
	default:
		return leave_unrelated(flow);
	}
}

/* Handles the host's own packet, which has no ingress interface, or a fragment that ip6_fragment()
 * has made again. It is not changed, unless its connection has got another port. */
INLINE int leave_from_host(struct flow_context *flow)
{
	enum verdict verdict = VERDICT_PASS;

	if (flow->packet->fragment == FIRST_FRAGMENT && direct_confirm(flow->packet))
		return TC_ACT_UNSPEC;
	if (noticed_has(loopback_flows, 0) && endpoint_is_likely(flow->packet->tuple.destination))
		host_ends_loopback(flow->packet);
	if (packet_protocol_is_portless(flow->packet->tuple.protocol))
		host_send_portless(flow->packet);
	else
		verdict = host_remember(flow);
	return apply_verdict(flow->skb, flow->packet, flow->translation, verdict);
}

/* Handles what is forwarded, or made by the host in a container's name. */
INLINE int leave_forwarded(struct flow_context *flow, bool uplink)
{
	struct __sk_buff *skb = flow->skb;
	struct packet *packet = flow->packet;
	const struct endpoint *sender = flow->sender;
	enum verdict verdict = decide_outwards(flow);

	if (verdict == VERDICT_PASS && flow->kind == PACKET_TRANSLATABLE) {
		if (tc_index_has(packet->told, TC_INDEX_CONFIRM) &&
		    (entered_by_uplink(skb) || sender_is_verified(skb, packet)))
			offload_saw_leaving(packet, skb->ingress_ifindex);
		if (uplink && sender && sender->strict && sender_is_verified(skb, packet))
			direct_remember_strict(packet, sender);
	}
	verdict = fragment_verdict(packet, flow->translation, verdict);
	if (packet->fragment == FIRST_FRAGMENT && (verdict != VERDICT_PASS || sender))
		fragment_remember(skb, packet, flow->translation, fragment_fate_of(verdict));
	return apply_verdict(skb, packet, flow->translation, verdict);
}

/* Returns whether a packet to a container came by this bridge, and another NAT has changed the
 * address of the sibling that sent it. */
INLINE bool sibling_is_hidden(struct __sk_buff *skb)
{
	return skb->ingress_ifindex == skb->ifindex && conntrack_ways(conntrack_seen(skb));
}

INLINE int handle_egress(struct __sk_buff *skb, __u16 l3_offset, bool uplink)
{
	struct flow_context flow = flow_of(skb);
	struct packet *packet = flow.packet;
	struct translation *translation = flow.translation;
	__u16 index = skb->tc_index;

	/* Qdiscs that use it themselves (dsmark) set it when they enqueue, behind this hook. */
	if (index)
		skb->tc_index = 0;
	if (uplink && tc_index_has(index, TC_INDEX_SENT) && entered_by_veth(skb))
		return TC_ACT_UNSPEC;
	if (!uplink && tc_index_has(index, TC_INDEX_DONE) && entered_by_uplink(skb))
		return TC_ACT_UNSPEC;
	flow.kind = packet_parse(skb, packet, l3_offset, DIRECTION_OUT);
	if (flow.kind == PACKET_IGNORED)
		return TC_ACT_UNSPEC;
	__builtin_memset(translation, 0, sizeof(*translation));
	packet->leaving = true;
	packet->told = index;
	packet->seal = skb->hash;
	if (skb->ingress_ifindex && endpoint_is_likely(packet->sender) &&
	    memo_use(skb, packet, translation)) {
		seal_take_away(skb);
		return apply_verdict(skb, packet, translation, VERDICT_TRANSLATE);
	}
	flow.sender = endpoint_find(packet->sender);
	if (flow.sender)
		seal_take_away(skb);
	if (flow.sender && sender_is_local_user(skb, packet))
		return shot(forged_source);
	if (packet->error && skb->ingress_ifindex == 0 &&
	    packet_protocol_is_portless(packet->tuple.protocol))
		tunnel_refuse(packet);
	if (!flow.sender && !packet->error && skb->ingress_ifindex == 0)
		return flow.kind == PACKET_TRANSLATABLE ? leave_from_host(&flow) : TC_ACT_UNSPEC;
	if (!flow.sender && !uplink && sibling_is_hidden(skb))
		noticed_mark(hidden_siblings, 0);
	if (!flow.sender && flow.kind == PACKET_TRANSLATABLE &&
	    !tc_index_has(index, TC_INDEX_HOSTS_ADDRESS) &&
	    host_must_remember_foreign(skb, packet)) {
		host_remember_foreign(skb, packet);
		return TC_ACT_UNSPEC;
	}
	return leave_forwarded(&flow, uplink);
}

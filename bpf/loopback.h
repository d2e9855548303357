/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.h - SCTP from processes of this host to a mapped port. No program is called when an SCTP
 * socket connects (bpf/socket.bpf.c), so its packets are translated, at the ingress of lo.
 *
 *   process --> lo -(from_loopback: to the container)-> veth --> container
 *   process <-- lo <-(from_loopback)- lo <-(from_container)---- container
 *
 * A request goes straight into the container, since the socket knows lo's MTU only. A reply would
 * have the host's own address as its source, a martian unless the packet already has its route: so
 * from_container sends it to lo by bpf_redirect_neigh(), which looks one up. For IPv4 it finds
 * 127.0.0.1 only, so that stands for the client's address, which is in skb->priority meanwhile. A
 * client at a loopback address is masqueraded, in a second record.
 */
#pragma once

#include "from_container.h"

/* Returns whether it is a whole SCTP packet. Loopback addresses are not parse_packet()'s. */
GLOBAL_FUNCTION bool loopback_parse(struct __sk_buff *skb, struct packet *packet)
{
	struct ip_payload payload = {.protocol = -1};

	if (!packet)
		return false;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		parse_ipv4(skb, packet, &payload);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		parse_ipv6(skb, packet, &payload);
	if (payload.protocol != PROTOCOL_SCTP || payload.fragment ||
	    address_is_group(packet->tuple.destination))
		return false;
	packet->tuple.protocol = PROTOCOL_SCTP;
	packet->l4_offset = payload.offset;
	address_copy(packet->sender, packet->tuple.source);
	return parse_sctp(skb, packet) == PACKET_TRANSLATABLE;
}

/* Applies a packet to its connection, and translates it. */
INLINE int loopback_apply(struct flow_context *flow)
{
	enum verdict verdict = connection_use(&flow->found, flow->packet, flow->skb->len);

	return apply_verdict(flow->skb, flow->packet, flow->translation, verdict);
}

/* A container's reply gets the address that its client has asked. */
INLINE int loopback_reply(struct flow_context *flow)
{
	struct translation *translation = flow->translation;
	struct packet *packet = flow->packet;
	struct tuple *tuple = &packet->tuple;
	__be32 client = flow->skb->priority;

	if (packet->ipv4 && client) {
		address_from_ipv4(translation->address, client);
		translation->port = tuple->destination_port;
		translation->peer_port = tuple->source_port;
		if (rewrite_packet(flow->skb, packet, translation))
			return shot(rewrite_failed);
		address_copy(tuple->destination, translation->address);
		flow->skb->priority = 0;
	}
	tuple->direction = DIRECTION_OUT;
	if (!found_outwards(&flow->found, tuple) ||
	    flow->found.connection->in_ifindex != LOOPBACK_IFINDEX)
		return TC_ACT_SHOT;
	translation_outwards(flow->found.connection, translation);
	return loopback_apply(flow);
}

/* The container, whose address the packet has got, could not answer a loopback address. */
INLINE int loopback_masquerade(struct flow_context *flow, const struct owner *owner)
{
	struct translation *translation = flow->translation;
	struct tuple *tuple = &flow->packet->tuple;
	enum verdict verdict;

	address_copy(tuple->destination, translation->address);
	tuple->destination_port = translation->port;
	tuple->source_port = translation->peer_port;
	tuple->direction = DIRECTION_OUT;
	if (found_outwards(&flow->found, tuple)) {
		translation_outwards(flow->found.connection, translation);
		return loopback_apply(flow);
	}
	verdict = snat_begin(flow->skb, flow->packet, owner, false, translation);
	return apply_verdict(flow->skb, flow->packet, translation, verdict);
}

INLINE int loopback_request(struct flow_context *flow)
{
	const struct tuple *tuple = &flow->packet->tuple;
	struct translation *translation = flow->translation;
	struct found *found = &flow->found;
	const struct endpoint *endpoint;
	const struct slot *slot;
	struct portmap *mapping;
	enum verdict verdict;
	int action;

	mapping = inwards_find(tuple, found);
	if (found->connection && found->connection->in_ifindex == LOOPBACK_IFINDEX) {
		translation_inwards(found->key, translation);
		action = loopback_apply(flow);
	} else if (mapping && mapping->localhost && slot_has_veth(mapping->owner.slot) &&
		   !portmap_is_excluded(mapping, tuple->destination)) {
		verdict = dnat_begin(flow->skb, flow->packet, mapping, translation);
		action = apply_verdict(flow->skb, flow->packet, translation, verdict);
	} else {
		return TC_ACT_UNSPEC;
	}
	endpoint = endpoint_find(translation->address);
	if (action != TC_ACT_UNSPEC || !endpoint)
		return action;
	if (address_is_loopback(tuple->source))
		action = loopback_masquerade(flow, &endpoint->owner);
	slot = owner_slot(&endpoint->owner);
	return action == TC_ACT_UNSPEC && slot ? bpf_redirect_peer(slot->ifindex, 0) : TC_ACT_SHOT;
}

INLINE int handle_loopback(struct __sk_buff *skb)
{
	struct packet packet = {.tuple.direction = DIRECTION_IN, .l3_offset = ETH_HLEN};
	struct flow_context flow = {
		.skb = skb, .packet = &packet, .translation = &scratch_get()->translation};

	if (!loopback_parse(skb, &packet))
		return TC_ACT_UNSPEC;
	if (endpoint_find(packet.sender))
		return loopback_reply(&flow);
	return portmap_is_published(packet.tuple.destination_port) ? loopback_request(&flow)
								   : TC_ACT_UNSPEC;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loopback.h - what comes to the ingress of lo for a mapped port: packets of this host's processes
 * that no program at sockets has sent to the container (bpf/socket.bpf.c). Those are packets of
 * sockets that are bound to a loopback address; of connected UDP sockets, which stay what they are
 * when a container comes, is replaced and goes; to an address that the host got since the last ADD;
 * of SCTP, MPTCP and raw sockets; and all of them where those programs cannot be attached.
 *
 *   process --> lo -(from_loopback)-> lo again -(from_loopback)-> eth0 in the container
 *   process <-- lo <-(from_loopback)- lo <-(from_container)- veth <-- container
 *
 * A request goes straight into the container, since the socket knows lo's MTU only. Before that it
 * enters lo again, where the kernel takes away the host's route and conntrack's entry: until 6.15
 * bpf_redirect_peer() leaves both with the packet, TCP would look for a socket of the host, and
 * netfilter in the container would take the entry for its own.
 *
 * A reply would have the host's own address as its source, a martian unless the packet already has
 * its route: so from_container sends it to lo by bpf_redirect_neigh(), which looks one up. For IPv4
 * it finds 127.0.0.1 only, so that stands for the client's address, which is in skb->priority
 * meanwhile. A client at a loopback address is masqueraded, in a second record: no other packet
 * leaves lo.
 *
 * Whatever is at lo was sent by this host. The packets of a process that has bound a mapped port,
 * to another process, begin a connection of the host (host.h), whose answers are not taken. With
 * TCP the socket says that.
 */
#pragma once

#include "from_container.h"

/* Returns whether one of the ports was ever mapped; true for ICMP, which may quote such a packet.
 * This is all that packets at lo cost which do not concern us. */
INLINE bool loopback_may_concern(struct __sk_buff *skb)
{
	__u32 offset = ETH_HLEN + sizeof(struct ipv6hdr);
	struct ipv6hdr ipv6 __attribute__((aligned(8)));
	struct iphdr ipv4;
	__be16 ports[2];
	__u8 protocol;

	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		if (!packet_load_header(skb, ETH_HLEN, &ipv4, sizeof(ipv4)))
			return false;
		offset = ETH_HLEN + ipv4.ihl * 4;
		protocol = ipv4.protocol;
	} else {
		if (!packet_load_header(skb, ETH_HLEN, &ipv6, sizeof(ipv6)))
			return false;
		protocol = ipv6.nexthdr;
	}
	if (packet_protocol_is_icmp(protocol))
		return true;
	return packet_load_header(skb, offset, ports, sizeof(ports)) &&
	       (portmap_is_published(bpf_ntohs(ports[1])) ||
		portmap_is_published(bpf_ntohs(ports[0])));
}

/* Returns PACKET_IGNORED also for what is no unicast address of the host. Loopback addresses are
 * not parse_packet()'s. */
GLOBAL_FUNCTION enum packet_kind loopback_parse(struct __sk_buff *skb, struct packet *packet)
{
	struct ip_payload payload = {.protocol = -1};
	enum packet_kind kind = PACKET_TRANSLATABLE;
	const struct tuple *tuple;

	if (!packet)
		return PACKET_IGNORED;
	tuple = &packet->tuple;
	if (skb->protocol == bpf_htons(ETH_P_IP))
		parse_ipv4(skb, packet, &payload);
	else if (skb->protocol == bpf_htons(ETH_P_IPV6))
		parse_ipv6(skb, packet, &payload);
	if (packet->end > skb->len)
		return PACKET_IGNORED;
	/* Of a packet with a loopback address it has read no header behind the first. */
	if (!packet->ipv4 && payload.offset == ETH_HLEN + sizeof(struct ipv6hdr) &&
	    parse_is_skipped(payload.protocol))
		payload.protocol = parse_extension_headers(skb, &payload, payload.protocol);
	if (payload.protocol < 0 || address_is_group(tuple->destination) ||
	    address_is_ipv6_link_local(tuple->source) ||
	    address_is_ipv6_link_local(tuple->destination) ||
	    address_is_ipv4(tuple->source) != packet->ipv4 ||
	    address_is_ipv4(tuple->destination) != packet->ipv4)
		return PACKET_IGNORED;
	packet->l4_offset = payload.offset;
	address_copy(packet->sender, tuple->source);
	if (payload.fragment)
		kind = parse_fragment(packet, &payload);
	return kind == PACKET_TRANSLATABLE ? parse_transport(skb, packet, payload.protocol) : kind;
}

/* Carries out a translation of which nothing but success is good. */
INLINE bool loopback_translates(const struct flow_context *flow, enum verdict verdict)
{
	return verdict == VERDICT_TRANSLATE &&
	       apply_verdict(flow->skb, flow->packet, flow->translation, verdict) == TC_ACT_UNSPEC;
}

/* An error counts for nothing. VERDICT_PASS: the connection has ended. */
INLINE enum verdict loopback_use(struct flow_context *flow)
{
	return flow->packet->error ? VERDICT_TRANSLATE
				   : connection_use(&flow->found, flow->packet, flow->skb->len);
}

/* Gives a reply the client's address again. Until then an ICMP error does not go to whom it quotes.
 */
INLINE bool loopback_restore_client(struct flow_context *flow)
{
	struct __sk_buff *skb = flow->skb;
	struct packet *packet = flow->packet;
	struct address client;

	if (!packet->ipv4 || !skb->priority)
		return true;
	address_from_ipv4(client.bytes, skb->priority);
	skb->priority = 0;
	if (rewrite_destination(skb, packet, &client))
		return false;
	address_copy(packet->tuple.destination, client.bytes);
	if (flow->kind == PACKET_OPAQUE)
		flow->kind = loopback_parse(skb, packet);
	return true;
}

/* Gives a container's reply the address that its client has asked. */
INLINE int loopback_reply(struct flow_context *flow)
{
	struct translation *translation = flow->translation;
	struct packet *packet = flow->packet;
	struct tuple *tuple = &packet->tuple;
	enum verdict verdict = VERDICT_TRANSLATE;

	if (!loopback_restore_client(flow))
		return shot(rewrite_failed);
	if (flow->kind < PACKET_FRAGMENT)
		return TC_ACT_SHOT;
	tuple->direction = DIRECTION_OUT;
	packet->from_endpoint = true;
	if (packet->fragment == LATER_FRAGMENT) {
		if (fragment_follow(flow->skb, packet, translation) != FRAGMENT_LEFT)
			return TC_ACT_SHOT;
	} else {
		if (!found_outwards(&flow->found, tuple) ||
		    flow->found.connection->in_ifindex != LOOPBACK_IFINDEX)
			return TC_ACT_SHOT;
		translation_outwards(flow->found.connection, translation);
		verdict = fragment_verdict(packet, translation, loopback_use(flow));
	}
	if (packet->fragment == FIRST_FRAGMENT && verdict == VERDICT_TRANSLATE)
		fragment_remember(flow->skb, packet, translation, FRAGMENT_LEFT);
	return loopback_translates(flow, verdict) ? TC_ACT_UNSPEC : TC_ACT_SHOT;
}

/* Gives the packet, which has the container's address by now, the host's address towards the
 * container: that could not answer a loopback address. */
INLINE bool loopback_masquerade(struct flow_context *flow, const struct owner *owner)
{
	struct translation *translation = flow->translation;
	struct packet *packet = flow->packet;
	struct tuple *tuple = &packet->tuple;
	enum verdict verdict = VERDICT_PASS;

	address_copy(tuple->destination, translation->address);
	tuple->destination_port = translation->port;
	tuple->source_port = translation->peer_port;
	tuple->direction = DIRECTION_OUT;
	packet->from_endpoint = true;
	if (found_outwards(&flow->found, tuple)) {
		translation_outwards(flow->found.connection, translation);
		verdict = loopback_use(flow);
	}
	if (verdict == VERDICT_PASS && !packet->error)
		verdict = snat_begin(flow->skb, packet, owner, false, translation);
	return !address_is_loopback(translation->address) && loopback_translates(flow, verdict);
}

/* Sends the packet to the container whose address it has got. */
INLINE int loopback_send(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	const struct endpoint *endpoint = endpoint_find(flow->translation->address);

	if (!endpoint)
		return TC_ACT_SHOT;
	if ((address_is_loopback(packet->sender) || address_is_loopback(packet->tuple.source)) &&
	    !loopback_masquerade(flow, &endpoint->owner))
		return TC_ACT_SHOT;
	return enter_again(flow->skb);
}

/* It enters for the second time. */
INLINE int loopback_deliver(struct __sk_buff *skb)
{
	const struct slot *slot = NULL;
	struct address container;

	if (packet_load_destination(skb, ETH_HLEN, skb->protocol == bpf_htons(ETH_P_IP),
				    &container))
		slot = endpoint_slot(container.bytes);
	if (!slot)
		return TC_ACT_SHOT;
	rewrite_for_container(skb);
	if (rewrite_destination_mac(skb, slot->container_mac))
		return shot(rewrite_failed);
	return bpf_redirect_peer(slot->ifindex, 0);
}

/* Returns whether the destination is the host's own. Policy routing may send anything to lo, as for
 * a transparent proxy; routing is asked without the mark that does so. ifindex: an interface that
 * forwards. */
INLINE bool loopback_is_to_host(const struct flow_context *flow, __u32 ifindex)
{
	__u32 out = 0;
	enum route route;

	if (address_is_loopback(flow->packet->tuple.destination))
		return true;
	route = route_of(flow->skb, flow->packet, ifindex, &out);
	return route == ROUTE_LOCAL || route == ROUTE_DISABLED;
}

/* Returns the mapping that serves the packet, or NULL. */
INLINE struct portmap *loopback_find_mapping(const struct flow_context *flow)
{
	const struct tuple *tuple = &flow->packet->tuple;
	struct portmap *mapping =
		portmap_find(tuple->destination, tuple->destination_port, tuple->protocol);

	if (mapping && portmap_before(mapping)->localhost &&
	    dnat_waits(flow->skb, mapping, portmap_before(mapping), tuple->protocol))
		mapping = portmap_before(mapping);
	if (!mapping || !mapping->localhost || portmap_is_excluded(mapping, tuple->destination) ||
	    !loopback_is_to_host(flow, owner_gateway(&mapping->owner)))
		return NULL;
	return mapping;
}

/* Gives a packet that a rule masquerades its process's address and port again. conntrack forgets
 * it: an answer by lo would be translated back before it is routed, and the kernel routes none
 * there from an address of its own. */
GLOBAL_FUNCTION bool loopback_give_source(struct __sk_buff *skb, struct packet *packet)
{
	struct translation *translation = &scratch_get()->translation;
	const struct tracked *tracked = &scratch_get()->tracked;
	struct tuple *tuple;

	if (!packet || !conntrack_forget_masqueraded(skb, packet))
		return false;
	tuple = &packet->tuple;
	conntrack_address(packet, tracked->client, translation->address);
	translation->port = bpf_ntohs(tracked->client_port);
	translation->peer_port = tuple->destination_port;
	tuple->direction = DIRECTION_OUT;
	if (rewrite_packet(skb, packet, translation))
		return false;
	tuple->direction = DIRECTION_IN;
	address_copy(tuple->source, translation->address);
	address_copy(packet->sender, translation->address);
	tuple->source_port = translation->port;
	return true;
}

/* Gives the source again to a packet that asks a container. A TCP connection that a process of the
 * host has accepted stays masqueraded. */
INLINE bool loopback_unmask(struct flow_context *flow)
{
	return loopback_find_mapping(flow) && !dnat_belongs_to_host(flow->skb, flow->packet) &&
	       loopback_give_source(flow->skb, flow->packet);
}

INLINE enum verdict loopback_begin(struct flow_context *flow)
{
	struct portmap *mapping = loopback_find_mapping(flow);
	enum verdict verdict;

	if (!mapping)
		return VERDICT_PASS;
	if (!address_is_loopback(flow->packet->tuple.source))
		noticed_mark(loopback_flows, 0);
	verdict = dnat_begin(flow->skb, flow->packet, mapping, flow->translation);
	if (verdict == VERDICT_TRANSLATE)
		count(local_by_loopback);
	return verdict;
}

/* Decides about a packet of a connection. Only this host sends from its own addresses: what else
 * has made a record of the same tuple has forged it. */
INLINE enum verdict loopback_continue(struct flow_context *flow)
{
	struct found *found = &flow->found;

	translation_inwards(found->key, flow->translation);
	if (found->connection->in_ifindex != LOOPBACK_IFINDEX) {
		connection_stay_in_stack(found->connection, REASON_HOST);
		found->connection->in_ifindex = LOOPBACK_IFINDEX;
	}
	return loopback_use(flow);
}

INLINE enum verdict loopback_decide(struct flow_context *flow)
{
	struct packet *packet = flow->packet;
	struct found *found = &flow->found;
	enum verdict verdict;

	packet->tuple.direction = DIRECTION_IN;
	if (packet->error) {
		found_prepare(found, INWARDS);
		if (!inwards_find_key(&packet->tuple) || !found_look_up(found) ||
		    found->connection->in_ifindex != LOOPBACK_IFINDEX)
			return VERDICT_PASS;
		translation_inwards(found->key, flow->translation);
		return VERDICT_TRANSLATE;
	}
	if (conntrack_masquerades(flow->skb) && !loopback_unmask(flow))
		return VERDICT_PASS;
	inwards_find(&packet->tuple, found);
	if (found->connection && !connection_has_owner(found->connection)) {
		if (!host_has_finished(flow->skb, packet, found->key, found->connection->kind)) {
			connection_use(found, packet, flow->skb->len);
			return VERDICT_PASS; /* an answer to a process of the host */
		}
		connection_end(found->key, found->id);
		found->connection = NULL;
	}
	if (found->connection && found->connection->kind != FLOW_MAPPING)
		return VERDICT_PASS;
	verdict = found->connection ? loopback_continue(flow) : VERDICT_PASS;
	return verdict != VERDICT_PASS ? verdict : loopback_begin(flow);
}

/* Remembers what a process sends whose own port is a mapped one. */
INLINE void loopback_remember(struct flow_context *flow)
{
	struct tuple *tuple = &flow->packet->tuple;

	if (flow->packet->error || tuple->protocol == PROTOCOL_TCP ||
	    !portmap_find(tuple->source, tuple->source_port, tuple->protocol))
		return;
	tuple->direction = DIRECTION_OUT;
	host_remember(flow);
}

INLINE int handle_loopback(struct __sk_buff *skb)
{
	struct flow_context flow = flow_of(skb);
	struct packet *packet = flow.packet;
	__u16 told = skb->tc_index;
	enum verdict verdict = VERDICT_PASS;

	if (told)
		skb->tc_index = 0;
	if (tc_index_has(told, TC_INDEX_ENTERED_AGAIN))
		return loopback_deliver(skb);
	if (!tc_index_has(told, TC_INDEX_REPLY) && !loopback_may_concern(skb))
		return TC_ACT_UNSPEC;
	__builtin_memset(packet, 0, sizeof(*packet));
	packet->tuple.direction = DIRECTION_IN;
	packet->l3_offset = ETH_HLEN;
	flow.kind = loopback_parse(skb, packet);
	if (tc_index_has(told, TC_INDEX_REPLY))
		return flow.kind == PACKET_IGNORED ? TC_ACT_SHOT : loopback_reply(&flow);
	if (flow.kind < PACKET_TRANSLATABLE || packet->fragment ||
	    !packet_protocol_has_ports(packet->tuple.protocol))
		return TC_ACT_UNSPEC;
	if (portmap_is_published(packet->tuple.destination_port))
		verdict = loopback_decide(&flow);
	if (verdict == VERDICT_DROP)
		return TC_ACT_SHOT;
	if (verdict == VERDICT_TRANSLATE)
		return loopback_translates(&flow, verdict) ? loopback_send(&flow) : TC_ACT_SHOT;
	loopback_remember(&flow);
	return TC_ACT_UNSPEC;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.h - decides about a packet on its way into the IP stack: whose flow
 * it is, and whether it begins one through a mapped port.
 */
#ifndef BPF_PORTMAP_MAPPING_H
#define BPF_PORTMAP_MAPPING_H

#include "flow.h"
#include "route.h"

#define MOVED_PORT_TRIES 32
#define MOVED_PORT_FIRST 1024

static __always_inline struct portmap *mapping_find_at(const __u8 *address, __u16 port,
						       enum protocol protocol)
{
	struct portmap_key key = {.protocol = protocol, .host_port = port};
	struct portmap *mapping;

	address_copy(key.host_address, address);
	mapping = bpf_map_lookup_elem(&portmaps, &key);
	return mapping && owner_live(&mapping->owner) ? mapping : NULL;
}

/* The mapping of (address, port): the exact address before any of its family. */
static __always_inline struct portmap *mapping_find(const __u8 *address, __u16 port,
						    enum protocol protocol)
{
	struct portmap *mapping;
	struct address any;

	if (!packet_protocol_has_ports(protocol))
		return NULL;
	mapping = mapping_find_at(address, port, protocol);
	if (mapping)
		return mapping;
	address_any(any.bytes, address_is_ipv4(address));
	return mapping_find_at(any.bytes, port, protocol);
}

/* Writes a destination flow. Where the tuple behind the rewrite is another
 * flow's (the client reached the container another way with the same source
 * port), the source port moves, as netfilter's does. */
static __always_inline enum claim mapping_create_flow(const struct flow_key *key, struct flow *flow)
{
	enum claim claim = CLAIM_TAKEN;

	/* A container that reaches its own port from that very port: the tuple
	 * would be its own reply. */
	if (!address_equal(flow->address, key->source) || flow->port != key->source_port)
		claim = flow_create(key, flow);
	if (claim != CLAIM_TAKEN)
		return claim;
	for (int i = 0; i < MOVED_PORT_TRIES; i++) {
		flow->peer_port =
			MOVED_PORT_FIRST + bpf_get_prandom_u32() % (65536 - MOVED_PORT_FIRST);
		claim = flow_create(key, flow);
		if (claim == CLAIM_TAKEN)
			continue;
		if (claim == CLAIM_OK)
			count(flow_moved_port);
		break;
	}
	return claim;
}

/* No flow, but for a socket of the host's own that is connected to the sender; else
 * TCP in mid-connection is a mapped one that lost its flow. */
static __always_inline bool mapping_belongs_to_host(struct __sk_buff *skb,
						    const struct packet *packet)
{
	return !packet_begins_tcp(packet) && socket_find(skb, &packet->tuple) == SOCKET_CONNECTED;
}

VERIFIED_ONCE enum verdict mapping_decide(struct __sk_buff *skb, const struct packet *packet,
					  const struct portmap *mapping,
					  struct translation *translation)
{
	struct flow flow = {};
	enum verdict verdict;

	if (!packet || !mapping || !translation)
		return VERDICT_PASS;
	if (mapping_belongs_to_host(skb, packet))
		return VERDICT_PASS;
	flow.owner = mapping->owner;
	flow.kind = FLOW_MAPPING;
	address_copy(flow.address, mapping->container_address);
	flow.port = mapping->container_port;
	flow.peer_port = packet->tuple.source_port;
	verdict = flow_begun(mapping_create_flow(&packet->tuple, &flow), &flow, translation);
	if (verdict == VERDICT_TRANSLATE) {
		__sync_fetch_and_add(&((struct portmap *)mapping)->flows, 1);
		count(flow_mapping);
	}
	return verdict;
}

/* Somebody reaches the container by its own address: remembered, so that the
 * replies are not masqueraded. TCP only by its first packet: a late one must
 * not leave an entry that suppresses masquerade. */
VERIFIED_ONCE enum verdict direct_decide(const struct packet *packet,
					 const struct endpoint *endpoint,
					 struct translation *translation)
{
	const struct flow_key *tuple;
	struct flow flow = {};
	enum verdict verdict;

	if (!packet || !endpoint || !translation)
		return VERDICT_PASS;
	tuple = &packet->tuple;
	if (!owner_live(&endpoint->owner) || packet->echo_reply)
		return VERDICT_PASS;
	if (tuple->protocol == PROTOCOL_TCP && !packet_begins_tcp(packet))
		return VERDICT_PASS;
	flow.owner = endpoint->owner;
	flow.kind = FLOW_DIRECT;
	address_copy(flow.address, tuple->destination);
	flow.port = tuple->destination_port;
	flow.peer_port = tuple->source_port;
	verdict = flow_begun(mapping_create_flow(&packet->tuple, &flow), &flow, translation);
	if (verdict == VERDICT_TRANSLATE)
		count(flow_direct);
	return verdict;
}

/* An ICMP error that arrives, about a packet that left translated. It neither
 * begins a flow nor keeps one alive (RFC 5508 4). */
static __always_inline enum verdict decide_error_in(struct packet *packet,
						    struct translation *translation)
{
	struct flow *flow;

	packet->tuple.direction = DIRECTION_IN;
	flow = flow_find(&packet->tuple);
	if (!flow)
		return VERDICT_PASS;
	translation_of(flow, translation);
	return VERDICT_TRANSLATE;
}

/* A packet that arrives at the interface ifindex (the one routing sees: a bridge
 * rather than its port). routed: on its way into the IP stack, not switched. */
static __always_inline enum verdict decide_in(struct __sk_buff *skb, struct packet *packet,
					      __u32 ifindex, bool routed,
					      struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	struct endpoint *endpoint;
	struct portmap *mapping = NULL;
	struct flow *flow;
	enum route route;
	__u32 out;

	tuple->direction = DIRECTION_IN;
	flow = flow_find(tuple);
	if (flow) {
		translation_of(flow, translation);
		if (flow_use(tuple, flow, packet, skb->len))
			return VERDICT_TRANSLATE;
	}
	if (routed)
		mapping =
			mapping_find(tuple->destination, tuple->destination_port, tuple->protocol);
	if (mapping) {
		route = route_of(skb, packet, ifindex, &out);
		if (route == ROUTE_LOCAL)
			return mapping_decide(skb, packet, mapping, translation);
		if (route == ROUTE_DISABLED)
			count(forwarding_disabled);
	}
	endpoint = bpf_map_lookup_elem(&endpoints, tuple->destination);
	if (endpoint)
		return direct_decide(packet, endpoint, translation);
	return VERDICT_PASS;
}

#endif

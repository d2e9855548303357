/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * masquerade.h - decides about a packet on its way out of the IP stack: whose
 * reply it is, and whether it begins a flow that leaves with another source.
 *
 * The port. Free means: the tuple that replies will have was inserted with
 * NOEXIST; the port is not published; no socket of the host would get those
 * replies. The default set keeps clear of the host's own ephemeral ports,
 * because a socket of the host that picks a port later does not ask us.
 */
#ifndef BPF_PORTMAP_MASQUERADE_H
#define BPF_PORTMAP_MASQUERADE_H

#include "flow.h"
#include "mapping.h"
#include "route.h"

#define MASQUERADE_PORT_TRIES 64

static __always_inline const struct meta *masquerade_settings(void)
{
	__u32 only = 0;

	return bpf_map_lookup_elem(&meta, &only);
}

static __always_inline bool masquerade_port_in_set(const struct meta *settings, __u16 port)
{
	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		const struct port_range *range = &settings->masquerade_ports[i];

		if (range->last && port >= range->first && port <= range->last)
			return true;
	}
	return false;
}

/* Any port of the set, each as likely. 0: the set is empty. */
static __always_inline __u16 masquerade_random_port(const struct meta *settings)
{
	__u32 total = 0, nth;

	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		const struct port_range *range = &settings->masquerade_ports[i];

		if (range->last && range->last >= range->first)
			total += range->last - range->first + 1;
	}
	if (total == 0)
		return 0;
	nth = bpf_get_prandom_u32() % total;
	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		const struct port_range *range = &settings->masquerade_ports[i];
		__u32 size;

		if (!range->last || range->last < range->first)
			continue;
		size = range->last - range->first + 1;
		if (nth < size)
			return range->first + nth;
		nth -= size;
	}
	return 0;
}

/* Would a packet back to this address and port be somebody else's? */
VERIFIED_ONCE bool masquerade_port_has_owner(struct __sk_buff *skb, const struct flow_key *key,
					     const struct flow *flow)
{
	struct flow_key reply;

	if (!key || !flow)
		return true;
	flow_other_key(key, flow, &reply);
	if (mapping_find(reply.destination, reply.destination_port, reply.protocol))
		return true;
	return socket_find(skb, &reply) != SOCKET_NONE;
}

VERIFIED_ONCE enum claim masquerade_try_port(struct __sk_buff *skb, const struct flow_key *key,
					     struct flow *flow)
{
	if (!key || !flow)
		return CLAIM_FULL;
	if (masquerade_port_has_owner(skb, key, flow))
		return CLAIM_TAKEN;
	return flow_create(key, flow);
}

/* An echo identifier is no port of the host's: all 65,536 will do. */
static __always_inline __u16 masquerade_next_port(const struct meta *settings,
						  enum protocol protocol)
{
	if (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP)
		return masquerade_random_port(settings);
	return bpf_get_prandom_u32();
}

static __always_inline bool masquerade_may_keep_port(const struct meta *settings,
						     const struct flow_key *key)
{
	return (key->protocol != PROTOCOL_TCP && key->protocol != PROTOCOL_UDP) ||
	       masquerade_port_in_set(settings, key->source_port);
}

/* The container's own port where it may be kept, else a random one. */
VERIFIED_ONCE enum claim masquerade_create_flow(struct __sk_buff *skb, const struct flow_key *key,
						struct flow *flow)
{
	const struct meta *settings = masquerade_settings();
	enum claim claim = CLAIM_TAKEN;

	if (!key || !flow || !settings)
		return CLAIM_FULL;
	flow->port = key->source_port;
	if (masquerade_may_keep_port(settings, key))
		claim = masquerade_try_port(skb, key, flow);
	for (int i = 0; i < MASQUERADE_PORT_TRIES && claim == CLAIM_TAKEN; i++) {
		flow->port = masquerade_next_port(settings, key->protocol);
		claim = masquerade_try_port(skb, key, flow);
	}
	if (claim == CLAIM_OK && flow->port != key->source_port)
		count(flow_moved_port);
	return claim;
}

VERIFIED_ONCE enum verdict masquerade_decide(struct __sk_buff *skb, const struct packet *packet,
					     const struct endpoint *endpoint,
					     struct translation *translation)
{
	struct flow flow = {};
	struct address source;

	if (!packet || !endpoint || !translation)
		return VERDICT_PASS;
	if (packet->echo_reply)
		return drop(untranslatable); /* to a question nobody asked us */
	if (!route_source(skb, packet, &source))
		return drop(no_address);
	address_copy(flow.address, source.bytes);
	flow.owner = endpoint->owner;
	flow.kind = FLOW_MASQUERADE;
	flow.peer_port = packet->tuple.destination_port;
	switch (masquerade_create_flow(skb, &packet->tuple, &flow)) {
	case CLAIM_OK:
		count(flow_masquerade);
		translation_of(&flow, translation);
		return VERDICT_TRANSLATE;
	case CLAIM_TAKEN:
		return drop(no_tuple);
	default:
		return drop(table_full);
	}
}

/* Is this packet to leave with another source, were it to begin a flow? */
static __always_inline bool masquerade_wanted(const struct packet *packet,
					      const struct endpoint *endpoint)
{
	return endpoint->masquerade &&
	       !address_same_subnet(packet->tuple.source, packet->tuple.destination,
				    endpoint->prefix_length);
}

/* Part of a flow that is translated on its way back: the request of a neighbour
 * through a mapping (the container is to see who asked), or the answer to a
 * masqueraded neighbour, already addressed to it. */
static __always_inline bool masquerade_is_settled(const struct flow_key *tuple)
{
	struct flow_key back = *tuple;
	struct flow *flow;

	address_copy(back.source, tuple->destination);
	address_copy(back.destination, tuple->source);
	back.source_port = tuple->destination_port;
	back.destination_port = tuple->source_port;
	flow = flow_find(&back);
	if (!flow)
		return false;
	return flow->kind == FLOW_MAPPING ? flow->reply : flow->kind == FLOW_MASQUERADE;
}

/* To itself, by way of a mapping: with its own address as source it would never answer us. */
static __always_inline bool masquerade_is_hairpin(const struct packet *packet,
						  const struct endpoint *endpoint)
{
	struct endpoint *destination;

	destination = bpf_map_lookup_elem(&endpoints, packet->tuple.destination);
	return destination && owner_equal(&destination->owner, &endpoint->owner);
}

/* A socket of the host's own: where its port is published, its replies must
 * not be taken for requests. The packet itself is left alone in any case. */
VERIFIED_ONCE int host_remember(const struct packet *packet)
{
	struct flow_key key;
	struct flow flow = {};
	struct flow *known;

	if (!packet)
		return 0;
	__builtin_memcpy(&key, &packet->tuple, sizeof(key));
	known = flow_find(&key);
	if (known) {
		flow_use(&key, known, packet, 0);
		return 0;
	}
	flow.kind = FLOW_HOST;
	address_copy(flow.address, key.source);
	flow.port = key.source_port;
	flow.peer_port = key.destination_port;
	if (flow_create(&key, &flow) == CLAIM_OK)
		count(flow_host);
	return 0;
}

static __always_inline bool host_must_be_remembered(const struct packet *packet)
{
	const struct flow_key *tuple = &packet->tuple;

	if (tuple->protocol == PROTOCOL_ICMP || tuple->protocol == PROTOCOL_ICMPV6)
		return !packet->echo_reply;
	return !(packet->tcp_flags & TCP_RST) &&
	       mapping_find(tuple->source, tuple->source_port, tuple->protocol);
}

/* A forwarded packet that leaves the stack. */
static __always_inline enum verdict decide_out(struct __sk_buff *skb, struct packet *packet,
					       bool translatable, struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	struct endpoint *endpoint;
	struct flow *flow;

	endpoint = bpf_map_lookup_elem(&endpoints, tuple->source);
	if (!endpoint)
		return VERDICT_PASS;
	if (!owner_live(&endpoint->owner))
		return masquerade_wanted(packet, endpoint) ? drop(no_attachment) : VERDICT_PASS;
	if (!translatable)
		return masquerade_wanted(packet, endpoint) ? drop(untranslatable) : VERDICT_PASS;
	tuple->direction = DIRECTION_OUT;
	flow = flow_find(tuple);
	if (flow) {
		translation_of(flow, translation);
		flow_use(tuple, flow, packet, skb->len);
		return VERDICT_TRANSLATE;
	}
	if (!masquerade_is_hairpin(packet, endpoint) &&
	    (!masquerade_wanted(packet, endpoint) || masquerade_is_settled(tuple)))
		return VERDICT_PASS;
	return masquerade_decide(skb, packet, endpoint, translation);
}

#endif

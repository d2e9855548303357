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

#include "fragment.h"
#include "mapping.h"
#include "noticed.h"
#include "route.h"

#define MASQUERADE_PORT_TRIES 64

static __always_inline const struct port_range *masquerade_ranges(void)
{
	__u32 only = 0;
	const struct meta *settings = bpf_map_lookup_elem(&meta, &only);

	return settings ? settings->masquerade_ports : NULL;
}

/* How many ports. An unused range is {0, 0}, and port 0 is never in the set. */
static __always_inline __u32 masquerade_range_size(const struct port_range *range)
{
	return range->last && range->first <= range->last ? range->last - range->first + 1 : 0;
}

/* An echo identifier is no port of the host's: all 65,536 will do. */
static __always_inline bool masquerade_any_port(enum protocol protocol)
{
	return !packet_protocol_has_ports(protocol);
}

VERIFIED_ONCE bool masquerade_may_keep_port(enum protocol protocol, __u16 port)
{
	const struct port_range *ranges = masquerade_ranges();

	if (masquerade_any_port(protocol) || !ranges)
		return ranges;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		if (masquerade_range_size(&ranges[i]) && port >= ranges[i].first &&
		    port <= ranges[i].last)
			return true;
	return false;
}

/* Any port of the set, each as likely. 0: the set is empty. */
VERIFIED_ONCE __u16 masquerade_random_port(enum protocol protocol)
{
	const struct port_range *ranges = masquerade_ranges();
	__u32 total = 0, nth = bpf_get_prandom_u32(), size;

	if (masquerade_any_port(protocol) || !ranges)
		return nth;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		total += masquerade_range_size(&ranges[i]);
	if (total == 0)
		return 0;
	nth %= total;
	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		size = masquerade_range_size(&ranges[i]);
		if (nth < size)
			return ranges[i].first + nth;
		nth -= size;
	}
	return 0;
}

/* Would a packet back to this address and port be somebody else's? The port is marked
 * first: a socket that the search does not find yet sends its packets after that. */
VERIFIED_ONCE bool masquerade_port_has_owner(struct __sk_buff *skb, const struct flow_key *key,
					     const struct flow *flow)
{
	struct flow_key reply;

	if (!key || !flow)
		return true;
	flow_other_key(key, flow, &reply);
	noticed_mark_port(reply.destination_port);
	if (mapping_find(reply.destination, reply.destination_port, reply.protocol))
		return true;
	return socket_find(skb, &reply) != SOCKET_NONE;
}

static __always_inline enum claim masquerade_try_port(struct __sk_buff *skb,
						      const struct flow_key *key, struct flow *flow)
{
	return masquerade_port_has_owner(skb, key, flow) ? CLAIM_TAKEN : flow_create(key, flow);
}

/* The container's own port where it may be kept, else a random one. */
static __always_inline enum claim masquerade_create_flow(struct __sk_buff *skb,
							 const struct flow_key *key,
							 struct flow *flow)
{
	enum claim claim = CLAIM_TAKEN;

	flow->port = key->source_port;
	if (masquerade_may_keep_port(key->protocol, flow->port))
		claim = masquerade_try_port(skb, key, flow);
	for (int i = 0; i < MASQUERADE_PORT_TRIES && claim == CLAIM_TAKEN; i++) {
		flow->port = masquerade_random_port(key->protocol);
		if (flow->port == 0 && !masquerade_any_port(key->protocol))
			return CLAIM_TAKEN;
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
	enum verdict verdict;

	if (!packet || !endpoint || !translation)
		return VERDICT_PASS;
	if (packet->echo_reply)
		return drop(untranslatable); /* to a question nobody asked us */
	if (!route_source(skb, packet, (struct address *)flow.address))
		return drop(no_address);
	flow.owner = endpoint->owner;
	flow.kind = FLOW_MASQUERADE;
	flow.peer_port = packet->tuple.destination_port;
	verdict =
		flow_begun(masquerade_create_flow(skb, &packet->tuple, &flow), &flow, translation);
	if (verdict == VERDICT_TRANSLATE)
		count(flow_masquerade);
	return verdict;
}

/* Is this packet to leave with another source, were it to begin a flow? */
static __always_inline bool masquerade_wanted(const struct packet *packet,
					      const struct endpoint *endpoint)
{
	return endpoint->masquerade &&
	       !address_same_subnet(packet->sender, packet->tuple.destination,
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

/* Routing chose the way of a reply by the container's address; the one that it is
 * to have may belong to another uplink. Returns that, or 0. A masqueraded flow has
 * the address of the interface that routing chose, and is left there. */
static __always_inline __u32 reply_reroute(struct __sk_buff *skb, const struct packet *packet,
					   struct flow *flow)
{
	__u32 now = flow_now();

	if (!flow->out_ifindex || flow->out_looked_up != now) {
		flow->out_looked_up = now;
		flow->out_ifindex = route_by_source(skb, packet, (struct address *)flow->address);
	}
	return flow->out_ifindex == skb->ifindex ? 0 : flow->out_ifindex;
}

/* An ICMP error that leaves, about a packet that arrived translated: a
 * container's, a router's behind it, or the host's own, of which only the quoted
 * packet is changed. */
static __always_inline enum verdict decide_error_out(struct packet *packet,
						     struct translation *translation)
{
	struct endpoint *sender = bpf_map_lookup_elem(&endpoints, packet->sender);
	struct flow *flow;

	packet->tuple.direction = DIRECTION_OUT;
	flow = flow_find(&packet->tuple);
	if (!flow && sender && masquerade_wanted(packet, sender) &&
	    !masquerade_is_settled(&packet->tuple))
		return drop(untranslatable);
	if (!flow)
		return VERDICT_PASS;
	translation_of(flow, translation);
	packet->from_endpoint = sender;
	return VERDICT_TRANSLATE;
}

/* A later fragment that leaves takes the way of its first one. Where that is not known,
 * a container's address stays inside. */
static __always_inline enum verdict decide_fragment_out(const struct packet *packet,
							const struct endpoint *endpoint,
							struct translation *translation)
{
	switch (fragment_follow(packet, translation)) {
	case FRAGMENT_TRANSLATED:
		return VERDICT_TRANSLATE;
	case FRAGMENT_PASSED:
		return VERDICT_PASS;
	case FRAGMENT_DROPPED:
		return VERDICT_DROP;
	default:
		return masquerade_wanted(packet, endpoint) ? drop(untranslatable) : VERDICT_PASS;
	}
}

/* A forwarded packet that leaves the stack. */
static __always_inline enum verdict decide_out(struct __sk_buff *skb, struct packet *packet,
					       bool translatable, struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	struct endpoint *endpoint;
	enum verdict verdict;
	struct flow *flow;

	endpoint = bpf_map_lookup_elem(&endpoints, tuple->source);
	if (!endpoint) {
		if (translatable)
			direct_confirm(packet);
		return VERDICT_PASS;
	}
	if (!owner_live(&endpoint->owner))
		return masquerade_wanted(packet, endpoint) ? drop(no_attachment) : VERDICT_PASS;
	tuple->direction = DIRECTION_OUT;
	if (packet->fragment == LATER_FRAGMENT)
		return decide_fragment_out(packet, endpoint, translation);
	if (!translatable)
		return masquerade_wanted(packet, endpoint) ? drop(untranslatable) : VERDICT_PASS;
	flow = flow_find(tuple);
	if (flow) {
		translation_of(flow, translation);
		if (flow->kind == FLOW_MAPPING && flow->reply)
			translation->out_ifindex = reply_reroute(skb, packet, flow);
		verdict = flow_use(tuple, flow, packet, skb->len);
		if (verdict != VERDICT_PASS)
			return verdict;
	}
	if (skb->ingress_ifindex == 0 && direct_is_refused(packet))
		return VERDICT_PASS;
	if (!masquerade_is_hairpin(packet, endpoint) &&
	    (!masquerade_wanted(packet, endpoint) || masquerade_is_settled(tuple)))
		return VERDICT_PASS;
	return masquerade_decide(skb, packet, endpoint, translation);
}

#endif

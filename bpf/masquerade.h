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
#include "policy.h"
#include "port_choice.h"
#include "route.h"

enum port_state {
	PORT_FREE,
	PORT_OURS,  /* this very flow's, which has lost its other half */
	PORT_TAKEN, /* another flow's */
};

/* Closed, and late segments are not to be expected any more, though it would be
 * remembered for some minutes: RFC 5382 REQ-5 means those with ports to spare. */
static __always_inline bool masquerade_has_closed(const struct flow *flow)
{
	return flow->kind == FLOW_MASQUERADE && flow_is_over(flow, flow_now());
}

/* Does a flow have the tuple of packets back to this address and port? evict: a closed
 * one does not count. */
VERIFIED_ONCE enum port_state masquerade_port_state(const struct flow_key *key,
						    const struct flow *flow, bool evict)
{
	struct flow_key reply;
	struct flow *other;

	if (!key || !flow)
		return PORT_TAKEN;
	flow_other_key(key, flow, &reply);
	other = flow_find(&reply);
	if (!other)
		return PORT_FREE;
	if (address_equal(other->address, key->source) && other->port == key->source_port &&
	    other->peer_port == key->destination_port)
		return PORT_OURS;
	if (!evict || !masquerade_has_closed(other))
		return PORT_TAKEN;
	flow_forget(&reply, other);
	count(flow_evicted);
	return PORT_FREE;
}

/* Would they be somebody else's, who is no flow? The port is marked before sockets are
 * looked for: one that is not found yet sends its packets after that. */
VERIFIED_ONCE bool masquerade_port_has_owner(struct __sk_buff *skb, const struct flow_key *key,
					     const struct flow *flow)
{
	struct flow_key reply;

	if (!key || !flow)
		return true;
	if (!packet_protocol_has_ports(key->protocol))
		return false;
	flow_other_key(key, flow, &reply);
	noticed_mark_port(reply.destination_port);
	return mapping_exists(&reply) || socket_find(skb, &reply) != SOCKET_NONE;
}

/* The next port of the order that is this flow's to take, if it is among the next
 * PORT_PLACES_A_ROUND. */
VERIFIED_ONCE bool masquerade_next_port(struct __sk_buff *skb, const struct flow_key *key,
					struct flow *flow, struct port_order *order,
					const struct port_set *set)
{
	enum port_state state;

	if (!key || !flow || !order || !set)
		return false;
	for (int i = 0; i < PORT_PLACES_A_ROUND && order->next < PORT_PLACES; i++) {
		flow->port = port_at(order, set, order->next);
		order->next++;
		state = masquerade_port_state(key, flow, order->next > PORT_PLACES_SCATTERED);
		if (state == PORT_OURS ||
		    (state == PORT_FREE && !masquerade_port_has_owner(skb, key, flow)))
			return true;
	}
	return false;
}

static __always_inline void masquerade_count_tries(__u32 tries)
{
	if (tries == 1)
		count(masquerade_tries_1);
	else if (tries <= 4)
		count(masquerade_tries_2_to_4);
	else if (tries <= 16)
		count(masquerade_tries_5_to_16);
	else if (tries <= 64)
		count(masquerade_tries_17_to_64);
	else
		count(masquerade_tries_65_or_more);
}

/* TCP in mid-connection has had a port: its own is looked for before another is taken. */
VERIFIED_ONCE bool masquerade_find_port(const struct packet *packet, struct flow *flow,
					const struct port_set *set, const struct port_order *order)
{
	if (!packet || !flow || !set || !order)
		return false;
	if (packet->tuple.protocol != PROTOCOL_TCP || packet_begins_tcp(packet))
		return false;
	for (__u32 place = 0; place < PORT_PLACES_TO_FIND; place++) {
		flow->port = port_at(order, set, place);
		if (masquerade_port_state(&packet->tuple, flow, false) == PORT_OURS)
			return true;
	}
	return false;
}

/* A port that another CPU takes at this moment is passed over. */
static __always_inline enum claim masquerade_create_flow(struct __sk_buff *skb,
							 const struct packet *packet,
							 struct flow *flow)
{
	const struct port_set *set = port_set_of(&flow->owner);
	enum claim claim = CLAIM_TAKEN;
	struct port_order order = {};

	if (!set || !port_order_of(&packet->tuple, &flow->owner, set, &order))
		return CLAIM_TAKEN;
	if (masquerade_find_port(packet, flow, set, &order))
		return flow_create(&packet->tuple, flow);
	for (int i = 0; i < PORT_ROUNDS + PORT_RACES && claim == CLAIM_TAKEN; i++)
		if (masquerade_next_port(skb, &packet->tuple, flow, &order, set))
			claim = flow_create(&packet->tuple, flow);
	if (claim != CLAIM_OK)
		return claim;
	masquerade_count_tries(order.next);
	if (flow->port != packet->tuple.source_port)
		count(flow_moved_port);
	return claim;
}

VERIFIED_ONCE bool masquerade_choose_source(struct __sk_buff *skb, const struct packet *packet,
					    bool outward, struct flow *flow)
{
	struct address *chosen = (struct address *)flow->address;

	if (!packet || !flow)
		return false;
	if (outward && policy_source(&flow->owner, packet->tuple.source, chosen))
		return true;
	return route_source(skb, packet, chosen);
}

/* owner: the container's side. outward: the container's own flow, with the host's address;
 * else one to the container by way of a mapping, with the address that the host has there. */
VERIFIED_ONCE enum verdict masquerade_decide(struct __sk_buff *skb, const struct packet *packet,
					     const struct owner *owner, bool outward,
					     struct translation *translation)
{
	struct flow *flow = flow_scratch(SCRATCH_BEGUN);
	enum verdict verdict;

	if (!packet || !owner || !translation || !flow)
		return VERDICT_PASS;
	if (packet->echo_reply)
		return drop(untranslatable); /* to a question nobody asked us */
	flow->owner = *owner;
	flow->kind = FLOW_MASQUERADE;
	flow->peer_port = packet->tuple.destination_port;
	if (outward) { /* its first packet has been through the stack */
		flow->left_stack = flow_now();
		flow->out_ifindex = skb->ifindex;
	}
	if (!masquerade_choose_source(skb, packet, outward, flow))
		return drop(no_address);
	verdict = flow_begun(masquerade_create_flow(skb, packet, flow), flow, translation);
	if (verdict == VERDICT_TRANSLATE)
		count(flow_masquerade);
	return verdict;
}

/* Is this packet to leave with another source, were it to begin a flow? */
VERIFIED_ONCE bool masquerade_wanted(const struct packet *packet, const struct endpoint *endpoint)
{
	if (!packet || !endpoint || !endpoint->masquerade)
		return false;
	return !address_same_subnet(packet->sender, packet->tuple.destination,
				    endpoint->prefix_length) &&
	       !policy_leaves_source(&endpoint->owner, packet->tuple.destination);
}

/* Part of a flow that is translated on its way back: the request of a neighbour
 * through a mapping (the container is to see who asked), or the answer to a
 * masqueraded neighbour, already addressed to it. */
static __always_inline bool masquerade_is_settled(const struct flow_key *tuple)
{
	struct flow *back = flow_find_back(tuple);

	if (!back)
		return false;
	return back->kind == FLOW_MAPPING ? back->reply : back->kind == FLOW_MASQUERADE;
}

/* A container that is to see nobody but the host (masqAll), or NULL. */
static __always_inline const struct endpoint *masquerade_all_endpoint(const struct packet *packet)
{
	const struct endpoint *destination;

	if (!noticed_masquerade_all())
		return NULL;
	destination = bpf_map_lookup_elem(&endpoints, packet->tuple.destination);
	return destination && policy_masquerades_all(&destination->owner) ? destination : NULL;
}

static __always_inline bool masquerade_came_by_mapping(const struct flow_key *tuple)
{
	struct flow *back = flow_find_back(tuple);

	return back && back->kind == FLOW_MAPPING && back->reply;
}

/* To itself, by way of a mapping: with its own address as source it would never answer us. */
static __always_inline bool masquerade_is_hairpin(const struct packet *packet,
						  const struct endpoint *endpoint)
{
	struct endpoint *destination;

	destination = bpf_map_lookup_elem(&endpoints, packet->tuple.destination);
	return destination && owner_equal(&destination->owner, &endpoint->owner) &&
	       !policy_keeps_hairpin_source(&endpoint->owner);
}

/* Routing chose the way of a reply by the container's address; the one that it is
 * to have may belong to another uplink. Returns that, or 0. A masqueraded flow has
 * the address of the interface that routing chose, and is left there. */
static __always_inline __u32 reply_reroute(struct __sk_buff *skb, const struct packet *packet,
					   struct flow *flow, __u32 now)
{
	__u32 out = flow->out_ifindex;

	if (!out || flow->out_looked_up != now || flow->path >= PATH_CONTAINER)
		out = route_by_source(skb, packet, (struct address *)flow->address);
	if (flow->path < PATH_CONTAINER) {
		flow->out_looked_up = now;
		flow->out_ifindex = out;
	}
	return out == skb->ifindex || !route_fits(skb, packet, out) ? 0 : out;
}

/* A later fragment that leaves takes the way of its first one. Where that is not known,
 * a container's address stays inside. */
static __always_inline enum verdict decide_fragment_out(struct __sk_buff *skb,
							const struct packet *packet,
							const struct endpoint *endpoint,
							struct translation *translation)
{
	switch (fragment_follow(skb, packet, translation)) {
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

/* A live flow of this packet on its way out. VERDICT_PASS: there is none. */
static __always_inline enum verdict leave_by_flow(struct __sk_buff *skb, struct packet *packet,
						  struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	__u32 now;
	struct flow *flow = flow_of(tuple, &now);

	if (!flow)
		return VERDICT_PASS;
	translation_of(flow, translation);
	if (flow->kind == FLOW_MAPPING && flow->reply)
		translation->out_ifindex = reply_reroute(skb, packet, flow, now);
	else
		offload_note_way(flow, skb->ifindex, now);
	offload_note(flow, now);
	return flow_use(tuple, flow, packet, skb->len, now);
}

/* A container's packet that no flow has. */
static __always_inline enum verdict decide_out_of_container(struct __sk_buff *skb,
							    struct packet *packet,
							    const struct endpoint *endpoint,
							    struct translation *translation)
{
	if (skb->ingress_ifindex == 0 && direct_is_refused(packet))
		return VERDICT_PASS;
	if (masquerade_is_hairpin(packet, endpoint))
		return masquerade_decide(skb, packet, &endpoint->owner, false, translation);
	if (!masquerade_wanted(packet, endpoint) || masquerade_is_settled(&packet->tuple))
		return VERDICT_PASS;
	return masquerade_decide(skb, packet, &endpoint->owner, true, translation);
}

/* A forwarded packet that leaves the stack. endpoint: its sender's, if that is a container. */
static __always_inline enum verdict decide_out(struct __sk_buff *skb, struct packet *packet,
					       bool translatable, const struct endpoint *endpoint,
					       struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	const struct endpoint *destination;
	bool concerned;
	enum verdict verdict = VERDICT_PASS;

	if (endpoint && !owner_live(&endpoint->owner))
		return masquerade_wanted(packet, endpoint) ? drop(no_attachment) : VERDICT_PASS;
	tuple->direction = DIRECTION_OUT;
	destination = masquerade_all_endpoint(packet);
	concerned = endpoint;
	barrier_var(concerned); /* or compilers "or" the two pointers: clang 19 does */
	concerned = concerned || destination;
	if (packet->fragment == LATER_FRAGMENT && concerned)
		return decide_fragment_out(skb, packet, endpoint, translation);
	if (!translatable)
		return masquerade_wanted(packet, endpoint) ? drop(untranslatable) : VERDICT_PASS;
	if (concerned)
		verdict = leave_by_flow(skb, packet, translation);
	if (verdict != VERDICT_PASS)
		return verdict;
	if (destination && masquerade_came_by_mapping(tuple))
		return masquerade_decide(skb, packet, &destination->owner, false, translation);
	if (endpoint)
		return decide_out_of_container(skb, packet, endpoint, translation);
	direct_confirm(packet);
	return VERDICT_PASS;
}

/* A container's packet of a live flow takes its path past the stack, if it has one. */
VERIFIED_ONCE enum verdict leave_by_path(struct __sk_buff *skb, const struct packet *packet,
					 struct flow *flow, __u32 ifindex,
					 struct translation *translation)
{
	__u32 now = flow_now();

	if (!packet || !flow || !translation)
		return VERDICT_PASS;
	translation_of(flow, translation);
	offload_choose(skb, packet, flow, ifindex, now, translation);
	/* What the stack gets is counted where it leaves; but if it is time to decide about the
	 * flow, that must have moved to flows before. */
	if (packet->error || (!translation->path && flow->state != STATE_NEW))
		return VERDICT_TRANSLATE;
	return flow_use(&packet->tuple, flow, packet, skb->len, now);
}

/* VERDICT_PASS: the packet, of a live flow, is the stack's. ifindex: where that sees it come in. */
static __always_inline enum verdict leave_past_stack(struct __sk_buff *skb, struct packet *packet,
						     struct flow *flow, __u32 ifindex, __u32 now,
						     struct translation *translation)
{
	bool open = offload_is_open(packet, flow, now);
	enum verdict verdict;

	if (!open && flow->path < PATH_CONTAINER)
		return VERDICT_PASS;
	verdict = leave_by_path(skb, packet, flow, ifindex, translation);
	if (open && verdict == VERDICT_TRANSLATE)
		offload_open(skb, packet, ifindex, translation);
	return verdict == VERDICT_TRANSLATE && !translation->path ? VERDICT_PASS : verdict;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * from_container.h - packets that a container sends, at its veth, before a bridge sees them.
 *
 * On one bridge the request to a mapped port is rewritten before the bridge sees it, so that bridge
 * netfilter's conntrack gets the final tuple. The bridge would switch the reply past the hook that
 * must restore the host's address. So the reply is lifted into the IP stack, by giving the frame
 * the bridge's MAC, and leaves through to_container.
 *
 * A container must not use a source address of the host or of another container. An unknown one is
 * allowed: it may have been added to the container later, or belong to a machine behind it, as a
 * container can be a router.
 */
#pragma once

#include "checksum.h"
#include "ingress.h"
#include "seal.h"

INLINE bool sender_is_another(const struct endpoint *endpoint, const struct owner *own)
{
	const struct slot *theirs = owner_slot(&endpoint->owner);

	return theirs && owner_slot(own) && !owners_are_of_one_container(&endpoint->owner, own) &&
	       !endpoint->shared && slot_has_veth(endpoint->owner.slot);
}

/* Returns whether the frame goes into the IP stack: by its bridge's MAC, or its ingress port's. */
INLINE bool sender_asks_stack(struct __sk_buff *skb, const struct interface *interface)
{
	return skb->pkt_type == PACKET_HOST ||
	       (interface->role == ROLE_PORT && packet_is_for_mac(skb, interface->bridge_mac));
}

/* host_addresses may be out of date, and routing does not tell an address of the host from one
 * without a route: so both are asked. For routed IPv6 packets routing alone decides: a source
 * without a route, which would get no answer, is dropped too. A link-local address is the host's if
 * this link's device has it. */
INLINE bool sender_is_host(struct __sk_buff *skb, const struct packet *packet,
			   const struct interface *interface, __u32 ifindex)
{
	struct bpf_fib_lookup query;
	__u32 gateway = ifindex;
	struct endpoint_key key;
	bool known;
	long result;

	barrier_var(gateway); /* or compilers choose between two pointers to load from */
	if (interface->role == ROLE_PORT)
		gateway = interface->bridge_ifindex;
	address_copy(key.address, packet->sender);
	if (address_is_unset(key.address)) /* The entry :: is no address. */
		return false;
	if (address_is_ipv6_link_local(key.address))
		return device_has_sender(skb, packet, gateway);
	known = bpf_map_lookup_elem(&host_addresses, &key);
	if (!known && (packet->ipv4 || !sender_asks_stack(skb, interface)))
		return false;
	route_query(&query, packet, gateway);
	route_query_addresses(&query, key.address, key.address);
	result = bpf_fib_lookup(skb, &query, sizeof(query), 0);
	/* If forwarding is disabled, routing says nothing about the address. */
	return result == BPF_FIB_LKUP_RET_NOT_FWDED ||
	       (known && result == BPF_FIB_LKUP_RET_FWD_DISABLED);
}

/* Returns whether the source is another container's or the host's, and counts such a packet. Seals
 * one whose address several containers of this network share. ifindex: the veth where the packet
 * arrived. */
GLOBAL_FUNCTION bool sender_is_forged(struct __sk_buff *skb, const struct packet *packet,
				      __u32 ifindex)
{
	const struct interface *interface;
	const struct endpoint *endpoint;

	if (!packet)
		return false;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface)
		return false;
	endpoint = endpoint_find(packet->sender);
	if (endpoint ? !owner_equal(&endpoint->owner, &interface->owner) &&
			       sender_is_another(endpoint, &interface->owner)
		     : sender_is_host(skb, packet, interface, ifindex)) {
		count(drop_forged_source);
		return true;
	}
	if (endpoint && owner_gateway(&endpoint->owner) == owner_gateway(&interface->owner))
		seal_set(skb, packet, NULL, sender_asks_stack(skb, interface));
	return false;
}

/* Returns whether a packet by which neighbours learn a MAC names an address of another container or
 * of the host. A container may have another MAC than before, so that is not compared. */
INLINE bool claim_is_forged(struct __sk_buff *skb, struct packet *packet, __u32 veth)
{
	enum claim claim = parse_claim(skb, packet);
	bool forged = claim == CLAIM_HIDDEN;

	if (forged)
		count(drop_forged_source);
	if (claim == CLAIM_READ)
		forged = sender_is_forged(skb, packet, veth);
	address_copy(packet->sender, packet->tuple.source);
	return forged;
}

/* Lifts a packet, and what is held of its datagram. */
INLINE int lift_all(const struct flow_context *flow, const struct interface *port)
{
	if (apply_to_held(flow, FRAGMENT_LIFTED))
		return TC_ACT_SHOT;
	seal_set(flow->skb, flow->packet, NULL, true);
	return lift(flow->skb, port);
}

/* Handles a packet of a connection that the bridge would switch: what is translated is lifted. A
 * masqueraded connection does not come here: its gateway is behind a port, so the bridge must
 * switch its packets. */
INLINE int handle_switched(struct flow_context *flow, const struct interface *port)
{
	struct packet *packet = flow->packet;
	bool lifted;

	translation_outwards(flow->found.connection, flow->translation);
	lifted = translation_changes(flow->translation, &packet->tuple);
	if (!lifted && !packet->error)
		connection_use(&flow->found, packet, flow->skb->len);
	if (lifted)
		return lift_all(flow, port);
	return apply_to_held(flow, FRAGMENT_PASSED) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

/* Returns whether the packet answers a sibling whose address another NAT has changed on its way to
 * this container. br_netfilter would undo that and switch the answer, which must be translated, to
 * the sibling. */
INLINE bool answers_hidden_sibling(const struct flow_context *flow,
				   const struct interface *interface)
{
	return noticed_has(hidden_siblings, 0) && interface->role == ROLE_PORT &&
	       flow->arrival.routed && flow->kind >= PACKET_TRANSLATABLE &&
	       !flow->found.connection && conntrack_hides_client(flow->skb, flow->packet);
}

/* Sends a packet to the process of this host that has asked by way of lo (loopback.h). */
INLINE int answer_process(const struct flow_context *flow)
{
	if (apply_to_held(flow, FRAGMENT_REPLY))
		return TC_ACT_SHOT;
	return send_to_loopback(flow->skb, flow->packet, false);
}

/* Sends a packet past the stack if its connection has a path. VERDICT_PASS: it goes through the
 * stack, and is counted where it leaves. But a connection that is not assured yet counts it here:
 * it must be assured before its path is decided. */
INLINE enum verdict leave_past_stack(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	struct found *found = &flow->found;
	bool candidate = offload_is_candidate(packet, found);
	enum verdict verdict = VERDICT_TRANSLATE;

	if (!candidate && found->connection->path[OUTWARDS] < PATH_CONTAINER)
		return VERDICT_PASS;
	translation_outwards(found->connection, flow->translation);
	offload_use_path(flow);
	if (!found_stands(found))
		return VERDICT_PASS;
	if (!packet->error &&
	    (flow->translation->path || (!(found->connection->state & STATE_ASSURED) &&
					 !(packet->tcp_flags & TCP_RST)))) /* may end it */
		verdict = connection_use(found, packet, flow->skb->len);
	if (verdict != VERDICT_TRANSLATE)
		return verdict;
	if (candidate)
		offload_decide_and_use(flow);
	if (flow->translation->path && found_stands(found))
		offload_remember(flow);
	return flow->translation->path ? VERDICT_TRANSLATE : VERDICT_PASS;
}

/* Returns whether the connection's packets may skip the stack from this veth. On another network of
 * its container none begins to, and what is attached there must see the packets: then both
 * directions go through the stack. Nor may an ICMP error of another container. */
GLOBAL_FUNCTION bool may_skip_from_veth(struct __sk_buff *skb, const struct packet *packet,
					struct connection *connection)
{
	__u32 veth = skb->ingress_ifindex ?: skb->ifindex;
	const struct interface *interface;
	const struct slot *slot;
	__u32 id;

	if (!packet || !connection)
		return false;
	slot = owner_slot(&connection->owner);
	if (slot && slot->ifindex == veth)
		return true;
	if (packet->error)
		return false;
	id = connection->id;
	device_check(skb, veth);
	interface = bpf_map_lookup_elem(&interfaces, &veth);
	slot = interface ? owner_slot(&interface->owner) : NULL;
	if (!slot || connection->id != id)
		return false;
	if (connection->path[OUTWARDS] >= PATH_CONTAINER && slot->fast_path != FAST_PATH_OFF &&
	    offload_gateway(veth))
		return true;
	connection_stay_in_stack(connection);
	return false;
}

/* Handles a packet with its container's own address. interface: the container's veth. */
INLINE int handle_containers_packet(struct flow_context *flow, const struct interface *interface)
{
	const struct connection *connection = flow->found.connection;
	struct packet *packet = flow->packet;
	enum verdict verdict = VERDICT_PASS;
	bool translated = connection && connection_is_translated(connection), changed;

	barrier_var(translated);
	if (connection && connection->in_ifindex == LOOPBACK_IFINDEX)
		return answer_process(flow);
	if (connection && !flow->arrival.routed && connection->kind != FLOW_MASQUERADE)
		return handle_switched(flow, interface);
	if (connection) {
		packet->from_endpoint = true;
		if (flow->arrival.routed &&
		    may_skip_from_veth(flow->skb, packet, flow->found.connection))
			verdict = leave_past_stack(flow);
		if (verdict != VERDICT_PASS)
			return apply_outwards(flow, verdict);
	} else if (flow->kind >= PACKET_TRANSLATABLE) {
		verdict = decide_inwards(flow);
	}
	/* A connection to another container's own address is not changed, and may need masquerade.
	 */
	changed = verdict == VERDICT_TRANSLATE &&
		  translation_changes(flow->translation, &packet->tuple);
	if (verdict != VERDICT_DROP && !changed && flow->arrival.routed &&
	    (translated || masquerade_wanted(packet, flow->sender, 0)) &&
	    leaves_unclassified(flow->skb, packet, flow->arrival.ifindex))
		verdict = drop(unclassified_interface);
	if (verdict != VERDICT_TRANSLATE)
		seal_set(flow->skb, packet, NULL, flow->arrival.routed);
	else if (!flow->translation->path) /* or it would go to another container with the seal */
		seal_set(flow->skb, packet, flow->translation, flow->arrival.routed);
	return apply_inwards(flow, verdict);
}

/* Shortcut for a connection that was seen in this second. Its inside is the owner, who has this
 * veth, so the sender is verified; the packet goes to the gateway. False: take the long way. */
INLINE bool handle_known(struct flow_context *flow, int *action)
{
	struct found *found = &flow->found;
	const struct packet *packet = flow->packet;
	const struct connection *connection = found->connection;
	const struct leave *leave = &connection->leave[OUTWARDS];
	const struct slot *slot = owner_slot(&connection->owner);
	enum verdict verdict;

	if (!slot || slot->ifindex != flow->arrival.veth || !connection_is_of_owner(connection) ||
	    packet->fragment || !packet_is_for_mac(flow->skb, slot->gateway_mac) ||
	    offload_is_candidate(packet, found))
		return false;
	if (connection->path[OUTWARDS] >= PATH_CONTAINER) {
		if (leave->looked_up != (__u16)found->now)
			return false;
		translation_outwards(connection, flow->translation);
		offload_use_path(flow);
		if (flow->translation->path) {
			verdict = connection_use(found, packet, flow->skb->len);
			if (verdict == VERDICT_TRANSLATE)
				offload_remember(flow);
			*action = apply_verdict(flow->skb, packet, flow->translation, verdict);
			return verdict != VERDICT_PASS;
		}
	}
	if (leave->left_stack != found->now)
		return false;
	if (connection_is_translated(connection) &&
	    leaves_unclassified(flow->skb, packet, slot->gateway))
		return false;
	seal_set(flow->skb, packet, NULL, true);
	*action = TC_ACT_UNSPEC; /* the stack's packets are counted where they leave */
	return true;
}

/* Handles a packet the long way. */
INLINE int handle_container(struct flow_context *flow)
{
	struct arrival *arrival = &flow->arrival;
	const struct interface *interface;
	struct __sk_buff *skb = flow->skb;
	__u32 veth = arrival->veth;
	int action = TC_ACT_UNSPEC;

	interface = bpf_map_lookup_elem(&interfaces, &veth);
	if (!interface || !owner_live(&interface->owner))
		return shot(no_attachment); /* between our DEL and the veth's end */
	if (interface->role == ROLE_PORT) {
		arrival->ifindex = interface->bridge_ifindex;
		if (interface->looked_at != clock_second() &&
		    !packet_is_for_mac(skb, interface->bridge_mac))
			device_check(skb, veth); /* the bridge may have another MAC by now */
	}
	if (flow->kind == PACKET_ERROR &&
	    error_is_foreign(flow->packet, &interface->owner, arrival->ifindex))
		return shot(foreign_error);
	flow->sender = endpoint_find(flow->packet->sender);
	/* On two networks a container may use both addresses at both veths. */
	if (!flow->sender || !owners_are_of_one_container(&flow->sender->owner, &interface->owner))
		return sender_is_forged(skb, flow->packet, veth) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	arrival->routed = sender_asks_stack(skb, interface);
	arrival->may_offload = arrival->routed;
	if (arrival->routed)
		arrival->owner = interface->owner;
	if (answers_hidden_sibling(flow, interface))
		return lift_all(flow, interface);
	if (flow->kind == PACKET_FRAGMENT)
		action = apply_later_fragment(flow, interface);
	return action == TC_ACT_UNSPEC ? handle_containers_packet(flow, interface) : action;
}

INLINE int handle_from_container(struct __sk_buff *skb)
{
	/* The veth where it arrived. At a device that limits bandwidth, skb->ifindex differs. */
	__u32 veth = skb->ingress_ifindex ?: skb->ifindex;
	struct packet packet;
	struct flow_context flow = {
		.skb = skb,
		.packet = &packet,
		.arrival = {.ifindex = veth, .veth = veth, .sender_verified = true}};
	int action;

	if (skb->tc_index)
		skb->tc_index = 0; /* the container may have set one of our values */
	flow.kind = packet_parse(skb, &packet, ETH_HLEN, DIRECTION_OUT);
	if (checksum_refuses(skb, &packet, flow.kind))
		return shot(misplaced_checksum);
	if (flow.kind <= PACKET_OPAQUE && claim_is_forged(skb, &packet, veth))
		return TC_ACT_SHOT;
	if (flow.kind == PACKET_IGNORED) {
		if (!address_is_unset(packet.sender) && sender_is_forged(skb, &packet, veth))
			return TC_ACT_SHOT;
		return tags_are_nested(skb) ? shot(nested_tags) : TC_ACT_UNSPEC;
	}
	flow.translation = &scratch_get()->translation;
	if (memo_use(skb, &packet, flow.translation)) {
		if (flow.translation->path)
			return apply_verdict(skb, &packet, flow.translation, VERDICT_TRANSLATE);
		seal_set(skb, &packet, NULL, true);
		return TC_ACT_UNSPEC;
	}
	if (flow.kind >= PACKET_TRANSLATABLE) {
		if (found_outwards(&flow.found, &packet.tuple) &&
		    (flow.found.connection->state & STATE_UNCONFIRMED))
			flow.found.connection = NULL;
		if (flow.found.connection && !packet.error && handle_known(&flow, &action))
			return action;
	}
	return handle_container(&flow);
}

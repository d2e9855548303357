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

/* Where a container's packet goes from its veth. It is chosen once, by way_out_of(). */
enum way_out {
	WAY_NOWHERE,    /* dropped, and counted */
	WAY_UNTOUCHED,  /* on as it is: it has the address of nobody here */
	WAY_STACK,      /* into the IP stack, or across the bridge if nothing translates it */
	WAY_INWARDS,    /* the same, once it is decided about as about what comes by an uplink */
	WAY_PAST_STACK, /* as the translation says, which has a path */
	WAY_BRIDGE,     /* across the bridge, of a connection that is not translated */
	WAY_LIFTED,     /* into the IP stack instead of across the bridge */
	WAY_PROCESS,    /* to a process of this host that has asked by way of lo (loopback.h) */
	WAY_OF_FIRST,   /* after the first fragment of its datagram */
	WAY_UNKNOWN,    /* not decided yet: the sender is who it says */
};

/* Returns whether the packet answers a sibling whose address another NAT has changed on its way to
 * this container. br_netfilter would undo that and switch the answer, which must be translated, to
 * the sibling. */
INLINE bool answers_hidden_sibling(const struct flow_context *flow)
{
	return noticed_has(hidden_siblings, 0) && flow->port->role == ROLE_PORT &&
	       flow->arrival->routed && flow->kind >= PACKET_TRANSLATABLE &&
	       !flow->found.connection && conntrack_hides_client(flow->skb, flow->packet);
}

/* The packet's connection, which a stage before has found. */
INLINE struct found found_outwards_before(struct connection *connection, __u32 id, __u32 now)
{
	return (struct found){.key = &scratch_get()->found,
			      .connection = connection,
			      .id = id,
			      .way = OUTWARDS,
			      .now = now};
}

/* Returns whether the veth's owner has this connection, and a packet of it has been verified in
 * this second: its inside is the owner, so the sender is; the packet goes to the gateway. */
GLOBAL_FUNCTION bool sender_is_known(struct __sk_buff *skb, struct connection *connection,
				     __u32 now)
{
	struct flow_context flow = flow_of(skb);
	const struct slot *slot;

	if (!connection || flow.packet->error || flow.packet->fragment)
		return false;
	flow.found = found_outwards_before(connection, connection->id, now);
	slot = owner_slot(&connection->owner);
	if (!slot || slot->ifindex != flow.arrival->veth || !connection_is_of_owner(connection) ||
	    !packet_is_for_mac(skb, slot->gateway_mac) ||
	    offload_is_candidate(flow.packet, &flow.found) ||
	    (connection->path[OUTWARDS] >= PATH_CONTAINER
		     ? connection->next_hop[OUTWARDS].asked != (__u16)now
		     : connection->left_stack[OUTWARDS] != now))
		return false;
	flow.arrival->ifindex = slot->gateway;
	flow.arrival->routed = true;
	return true;
}

/* Verifies the sender. WAY_UNKNOWN: it is the container at this veth. */
INLINE enum way_out way_of_sender(struct flow_context *flow)
{
	struct arrival *arrival = flow->arrival;
	const struct interface *port;
	struct __sk_buff *skb = flow->skb;
	__u32 veth = arrival->veth;

	arrival->ifindex = veth;
	port = bpf_map_lookup_elem(&interfaces, &veth);
	if (!port || !owner_live(&port->owner)) {
		count(drop_no_attachment); /* between our DEL and the veth's end */
		return WAY_NOWHERE;
	}
	flow->port = port;
	if (port->role == ROLE_PORT) {
		arrival->ifindex = port->bridge_ifindex;
		if (port->looked_at != clock_second() && !packet_is_for_mac(skb, port->bridge_mac))
			device_check(skb, veth); /* the bridge may have another MAC by now */
	}
	if (flow->kind == PACKET_ERROR &&
	    error_is_foreign(flow->packet, &port->owner, arrival->ifindex)) {
		count(drop_foreign_error);
		return WAY_NOWHERE;
	}
	flow->sender = endpoint_find(flow->packet->sender);
	/* On two networks a container may use both addresses at both veths. */
	if (!flow->sender || !owners_are_of_one_container(&flow->sender->owner, &port->owner))
		return sender_is_forged(skb, flow->packet, veth) ? WAY_NOWHERE : WAY_UNTOUCHED;
	arrival->routed = sender_asks_stack(skb, port);
	arrival->may_offload = arrival->routed;
	if (arrival->routed)
		arrival->owner = port->owner;
	return answers_hidden_sibling(flow) ? WAY_LIFTED : WAY_UNKNOWN;
}

/* Returns the way of a packet that the bridge would switch: what is translated is lifted. A
 * masqueraded connection does not come here: its gateway is behind a port, so the bridge must
 * switch its packets. */
INLINE enum way_out way_of_switched(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;

	translation_outwards(flow->found.connection, flow->translation);
	if (translation_changes(flow->translation, &packet->tuple))
		return WAY_LIFTED;
	if (!packet->error)
		connection_use(&flow->found, packet, flow->skb->len);
	return WAY_BRIDGE;
}

/* Returns whether the connection's packets may skip the stack from this veth. On another network of
 * its container none begins to, and what is attached there must see the packets: then both
 * directions go through the stack. Nor may an ICMP error of another container. */
GLOBAL_FUNCTION bool may_skip_from_veth(struct __sk_buff *skb, struct connection *connection)
{
	__u32 veth = packet_arrived_by(skb);
	const struct interface *interface;
	const struct slot *slot;
	__u32 id;

	if (!connection)
		return false;
	slot = owner_slot(&connection->owner);
	if (slot && slot->ifindex == veth)
		return true;
	if (scratch_get()->packet.error)
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
	connection_stay_in_stack(connection, REASON_NETWORK);
	return false;
}

/* Returns the way of a packet that enters the stack unless its connection has a path. Then it is
 * counted where it leaves. But a connection that is not assured yet counts it here: it must be
 * assured before its path is decided. */
INLINE enum way_out way_by_path(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	struct found *found = &flow->found;
	const struct connection *connection = found->connection;
	bool candidate = offload_is_candidate(packet, found);
	enum verdict verdict = VERDICT_TRANSLATE;

	if (!candidate && connection->path[OUTWARDS] < PATH_CONTAINER)
		return WAY_STACK;
	translation_outwards(connection, flow->translation);
	if (!offload_use_path(flow))
		return WAY_STACK;
	if (!packet->error &&
	    (flow->translation->path || (!(connection->state & STATE_ASSURED) &&
					 !(packet->tcp_flags & TCP_RST)))) /* may end it */
		verdict = connection_use(found, packet, flow->skb->len);
	if (verdict != VERDICT_TRANSLATE)
		return verdict == VERDICT_DROP ? WAY_NOWHERE : WAY_STACK;
	if (candidate)
		offload_decide_and_use(flow);
	if (flow->translation->path)
		offload_remember(flow);
	return flow->translation->path ? WAY_PAST_STACK : WAY_STACK;
}

/* Returns the way of a packet of a connection. id, now: of struct found. */
GLOBAL_FUNCTION enum way_out way_of_connection(struct __sk_buff *skb, struct connection *connection,
					       __u32 id, __u32 now)
{
	struct flow_context flow = flow_of(skb);

	if (!connection)
		return WAY_NOWHERE;
	flow.found = found_outwards_before(connection, id, now);
	if (connection->in_ifindex == LOOPBACK_IFINDEX)
		return WAY_PROCESS;
	if (!flow.arrival->routed && connection->kind != FLOW_MASQUERADE)
		return way_of_switched(&flow);
	flow.packet->from_endpoint = true;
	return flow.arrival->routed && may_skip_from_veth(skb, connection) ? way_by_path(&flow)
									   : WAY_STACK;
}

INLINE enum way_out way_out_of(struct flow_context *flow)
{
	struct found *found = &flow->found;
	enum way_out way = WAY_UNKNOWN;

	if (memo_use(flow->skb, flow->packet, flow->translation)) {
		flow->arrival->routed = true;
		return flow->translation->path ? WAY_PAST_STACK : WAY_STACK;
	}
	if (flow->kind >= PACKET_TRANSLATABLE && found_outwards(found, &flow->packet->tuple) &&
	    (found->connection->state & STATE_UNCONFIRMED))
		found->connection = NULL;
	if (!found->connection || !sender_is_known(flow->skb, found->connection, found->now))
		way = way_of_sender(flow);
	if (way != WAY_UNKNOWN)
		return way;
	if (found->connection)
		return way_of_connection(flow->skb, found->connection, found->id, found->now);
	if (flow->kind == PACKET_FRAGMENT)
		return WAY_OF_FIRST;
	return flow->kind >= PACKET_TRANSLATABLE ? WAY_INWARDS : WAY_STACK;
}

/* Returns whether the packet would leave unclassified. Routing is asked once for a connection, and
 * again when device_ways_number() has changed, which is read first, so that a change in between is
 * not missed. What comes from another gateway than the owner's may have another route. */
INLINE bool flow_leaves_unclassified(const struct flow_context *flow)
{
	struct connection *connection = flow->found.connection;
	bool own = connection && flow->arrival->ifindex == owner_gateway(&connection->owner);
	__u32 ways = own ? device_ways_number(flow->skb, flow->packet->ipv4) : 0;

	if (ways && connection->ways == ways && found_stands(&flow->found))
		return false;
	if (leaves_unclassified(flow->skb, flow->packet, flow->arrival->ifindex))
		return true;
	if (ways && found_stands(&flow->found))
		connection->ways = ways;
	return false;
}

/* Returns whether a packet whose source is to be translated where it leaves would leave where
 * nothing does that. A connection to another container's own address is not changed, and may need
 * masquerade. */
INLINE bool leaves_untranslated(const struct flow_context *flow)
{
	const struct connection *connection = flow->found.connection;

	return flow->arrival->routed &&
	       ((connection && connection_is_translated(connection)) ||
		(flow->sender && masquerade_wanted(flow->packet, flow->sender, 0))) &&
	       flow_leaves_unclassified(flow);
}

/* Sends a packet into the stack, with its sender's seal. On a path it would go to another container
 * with that. */
INLINE int enter_stack(const struct flow_context *flow, enum verdict verdict)
{
	const struct translation *translation = NULL;
	bool changed = verdict == VERDICT_TRANSLATE &&
		       translation_changes(flow->translation, &flow->packet->tuple);

	if (verdict != VERDICT_DROP && !changed && leaves_untranslated(flow))
		verdict = drop(unclassified_interface);
	if (verdict == VERDICT_TRANSLATE)
		translation = flow->translation;
	if (!translation || !translation->path)
		seal_set(flow->skb, flow->packet, translation, flow->arrival->routed);
	return apply_inwards(flow, verdict);
}

/* Sends a packet into the stack that the bridge would switch, and what is held of its datagram. */
INLINE int lift_all(const struct flow_context *flow)
{
	if (apply_to_held(flow, FRAGMENT_LIFTED))
		return TC_ACT_SHOT;
	seal_set(flow->skb, flow->packet, NULL, true);
	return lift(flow->skb, flow->port);
}

INLINE int go_way(struct flow_context *flow, enum way_out way)
{
	int action;

	switch (way) {
	case WAY_NOWHERE:
		return TC_ACT_SHOT;
	case WAY_STACK:
		return enter_stack(flow, VERDICT_PASS);
	case WAY_INWARDS:
		return enter_stack(flow, decide_inwards(flow->skb));
	case WAY_PAST_STACK:
		return apply_outwards(flow, VERDICT_TRANSLATE);
	case WAY_BRIDGE:
		return apply_to_held(flow, FRAGMENT_PASSED) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	case WAY_LIFTED:
		return lift_all(flow);
	case WAY_PROCESS:
		return apply_to_held(flow, FRAGMENT_REPLY)
			       ? TC_ACT_SHOT
			       : send_to_loopback(flow->skb, flow->packet, false);
	case WAY_OF_FIRST:
		action = apply_later_fragment(flow);
		return action == TC_ACT_UNSPEC ? enter_stack(flow, VERDICT_PASS) : action;
	default:
		return TC_ACT_UNSPEC;
	}
}

INLINE int handle_from_container(struct __sk_buff *skb)
{
	struct flow_context flow = flow_of(skb);
	struct packet *packet = flow.packet;
	__u32 veth = packet_arrived_by(skb);

	if (skb->tc_index)
		skb->tc_index = 0; /* the container may have set one of our values */
	flow.kind = packet_parse(skb, packet, ETH_HLEN, DIRECTION_OUT);
	if (checksum_refuses(skb, packet, flow.kind))
		return shot(misplaced_checksum);
	if (flow.kind <= PACKET_OPAQUE && claim_is_forged(skb, packet, veth))
		return TC_ACT_SHOT;
	if (flow.kind == PACKET_IGNORED) {
		if (!address_is_unset(packet->sender) && sender_is_forged(skb, packet, veth))
			return TC_ACT_SHOT;
		return tags_are_nested(skb) ? shot(nested_tags) : TC_ACT_UNSPEC;
	}
	*flow.arrival = (struct arrival){.veth = veth, .sender_verified = true};
	return go_way(&flow, way_out_of(&flow));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ingress.h - packets that enter the IP stack from an uplink or a bridge: which connection one
 * belongs to, and whether it begins one. */
#pragma once

#include "icmp_error.h"

/* The kernel removes a VLAN tag before tc ingress, and the frame appears again at the VLAN's
 * device. But VID 0 is a priority and no VLAN: behind tc the kernel removes such a tag and those
 * that follow (__netif_receive_skb_core), and delivers the rest as if it had arrived untagged. */
#define ETHERTYPE_VLAN 0x8100     /* 802.1Q */
#define ETHERTYPE_PROVIDER 0x88a8 /* 802.1ad */
#define TAGS_WALKED 4             /* nobody sends more */

/* What follows a VLAN's ethertype */
struct tag {
	__be16 control;
	__be16 ethertype;
};

INLINE bool tags_begin(__be16 ethertype)
{
	return ethertype == bpf_htons(ETHERTYPE_VLAN) || ethertype == bpf_htons(ETHERTYPE_PROVIDER);
}

/* Returns whether there is a second tag inside a priority tag. */
INLINE bool tags_are_nested(struct __sk_buff *skb)
{
	return tags_begin(skb->protocol) && !(skb->vlan_present && (skb->vlan_tci & VLAN_VID_MASK));
}

/* Returns false if a VLAN's tag follows: then the frame appears again at that device, or at none.
 * The stack must not see an IP packet where the programs saw none. */
GLOBAL_FUNCTION bool tags_hide_packet(struct __sk_buff *skb)
{
	struct tag tag;

	if (!tags_are_nested(skb))
		return false;
	for (int i = 0; i < TAGS_WALKED; i++) {
		if (!packet_load(skb, ETH_HLEN + i * sizeof(tag), &tag, sizeof(tag)))
			return true;
		if (bpf_ntohs(tag.control) & VLAN_VID_MASK)
			return false;
		if (!tags_begin(tag.ethertype))
			return true;
	}
	return true;
}

/* Returns whether to_container would only pass this packet, once it is translated. */
INLINE bool enters_done(const struct flow_context *flow)
{
	return flow->arrival->may_offload && !flow->translation->report &&
	       !flow->packet->fragment && !noticed_has(masquerade_all, 0) &&
	       !endpoint_is_likely(flow->packet->sender);
}

/* Handles an inward packet of a live connection. VERDICT_PASS: the connection has ended. */
INLINE enum verdict enter_by_connection(struct flow_context *flow)
{
	struct found *found = &flow->found;
	enum verdict verdict;
	bool candidate = false;

	translation_inwards(found->key, flow->translation);
	if (flow->arrival->may_offload) {
		if (!offload_use_path(flow))
			return VERDICT_PASS;
		candidate = offload_is_candidate(flow->packet, found);
		flow->translation->report =
			!flow->translation->path && offload_wants_confirmation(found);
	}
	verdict = connection_use(found, flow->packet, flow->skb->len);
	if (verdict != VERDICT_TRANSLATE)
		return verdict;
	if (candidate)
		offload_decide_and_use(flow);
	flow->translation->done = enters_done(flow);
	offload_remember(flow);
	return verdict;
}

/* Handles a packet to a mapped port that begins a connection. */
INLINE enum verdict enter_by_mapping(struct flow_context *flow)
{
	enum verdict verdict =
		dnat_begin(flow->skb, flow->packet, flow->mapping, flow->translation);
	struct connection_key *key = &draft_get()->key;
	enum fast_path mode;

	if (!flow->arrival->may_offload || verdict != VERDICT_TRANSLATE)
		return verdict;
	mode = offload_mode(&flow->mapping->owner);
	flow->translation->report =
		mode == FAST_PATH_ESTABLISHED && flow->packet->tuple.protocol != PROTOCOL_UDP;
	flow->translation->done = enters_done(flow);
	if (mode != FAST_PATH_ALWAYS)
		return verdict;
	flow->found.way = INWARDS;
	flow->found.key = key;
	if (found_look_up(&flow->found) && offload_concerns(key->protocol, flow->found.connection))
		offload_decide_and_use(flow);
	return verdict;
}

/* For IPv6 the sysctl of an interface does not say whether the host forwards what comes in there,
 * but routing asks it before it looks at addresses: where it is off, so that the host takes router
 * advertisements, the question is asked for the container's veth. */
INLINE enum route route_to_mapping(const struct flow_context *flow)
{
	enum route route;
	const struct slot *slot;
	__u32 out = 0;

	route = route_of(flow->skb, flow->packet, flow->arrival->ifindex, &out);
	if (route != ROUTE_DISABLED || flow->packet->ipv4)
		return route;
	slot = owner_slot(&flow->mapping->owner);
	return slot ? route_of(flow->skb, flow->packet, slot->ifindex, &out) : route;
}

/* Returns whether its container is there, and this interface one of its network's uplinks. */
INLINE bool mapping_is_reached(const struct flow_context *flow)
{
	const struct owner *owner = &flow->mapping->owner;

	return slot_has_veth(owner->slot) && !network_refuses(owner, flow->arrival->ifindex);
}

/* The same of the mapping, or of the container before its own, which may get the connection. */
INLINE bool mapping_is_offered(const struct flow_context *flow)
{
	return portmap_has_veth(flow->mapping) &&
	       !network_refuses(&flow->mapping->owner, flow->arrival->ifindex);
}

INLINE bool mapping_applies(const struct flow_context *flow)
{
	const struct tuple *tuple = &flow->packet->tuple;
	enum route route;

	if (!flow->arrival->routed || !mapping_is_reached(flow) ||
	    portmap_is_excluded(flow->mapping, tuple->destination) ||
	    portmap_is_left((const struct address *)tuple->destination, tuple->destination_port,
			    tuple->protocol, NAT_FROM_OUTSIDE))
		return false;
	route = route_to_mapping(flow);
	if (route == ROUTE_DISABLED)
		count(forwarding_disabled);
	return route == ROUTE_LOCAL;
}

/* Returns whether a masqueraded connection that has got no answer, or is idle for hours, gives way
 * to a mapping that was published since: this packet may be one of the mapping's clients. */
INLINE bool gives_way_to_mapping(const struct packet *packet, const struct found *found)
{
	enum protocol protocol = packet->tuple.protocol;

	return found->connection && found->connection->kind == FLOW_MASQUERADE &&
	       (protocol == PROTOCOL_UDP ||
		(protocol == PROTOCOL_TCP && packet_begins_tcp(packet))) &&
	       portmap_is_published(packet->tuple.destination_port) &&
	       (!(found->connection->state & STATE_REPLIED) ||
		connection_idle(found->connection, found->now) >
			connection_spared(found->key, found->connection));
}

/* Returns whether a client begins anew, with a tuple of a closed connection to a container that was
 * replaced. */
INLINE bool gives_way_to_successor(const struct flow_context *flow)
{
	const struct connection *connection = flow->found.connection;

	return flow->mapping && connection && packet_begins_tcp(flow->packet) &&
	       portmap_has_replaced(flow->mapping, &connection->owner) &&
	       state_is_closed(connection->state);
}

/* Finds connection and mapping. A connection that has to give way to this packet ends. */
INLINE enum relation relation_inwards(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	const struct tuple *tuple = &packet->tuple;
	struct found *found = &flow->found;

	if (packet->error)
		return RELATION_RELATED;
	flow->mapping = inwards_find(tuple, found);
	if (gives_way_to_successor(flow)) {
		connection_end(found->key, found->id);
		found->connection = NULL;
	}
	if (gives_way_to_mapping(packet, found)) {
		flow->mapping =
			portmap_find(tuple->destination, tuple->destination_port, tuple->protocol);
		if (flow->mapping && mapping_is_offered(flow)) {
			connection_end(found->key, found->id);
			found->connection = NULL;
		}
	}
	if (found->connection && !connection_has_owner(found->connection)) {
		if (host_has_finished(flow->skb, packet, found->key, found->connection->kind)) {
			connection_end(found->key, found->id);
			found->connection = NULL;
		} else if (found->connection->kind == FLOW_FOREIGN &&
			   tuple->protocol != PROTOCOL_TCP &&
			   portmap_is_published(tuple->destination_port)) {
			return RELATION_NONE; /* maybe a request to a mapping: keeps nothing alive
					       */
		}
	}
	return found->connection && !(found->connection->state & STATE_UNCONFIRMED)
		       ? RELATION_ESTABLISHED
		       : RELATION_NEW;
}

INLINE enum verdict enter_new(struct flow_context *flow)
{
	const struct tuple *tuple = &flow->packet->tuple;
	struct endpoint *endpoint;

	if (flow->mapping && !mapping_is_offered(flow)) /* that of any address */
		flow->mapping = portmap_find_any(address_is_ipv4(tuple->destination),
						 tuple->destination_port, tuple->protocol);
	if (flow->mapping && portmap_before(flow->mapping)->owner.slot &&
	    dnat_waits(flow->skb, flow->mapping, portmap_before(flow->mapping), tuple->protocol))
		flow->mapping = portmap_before(flow->mapping);
	if (flow->mapping && mapping_applies(flow))
		return enter_by_mapping(flow);
	endpoint = endpoint_find(tuple->destination);
	if (!endpoint)
		return VERDICT_PASS;
	if (strict_refuses(endpoint, flow->arrival->ifindex))
		return drop(strict);
	return direct_begin(flow->packet, endpoint, flow->arrival->sender_verified,
			    flow->translation);
}

/* Decides about a packet that enters the IP stack, or would without the fast path. */
GLOBAL_FUNCTION enum verdict decide_inwards(struct __sk_buff *skb)
{
	struct flow_context flow = flow_of(skb);
	enum verdict verdict;

	flow.packet->tuple.direction = DIRECTION_IN;
	switch (relation_inwards(&flow)) {
	case RELATION_RELATED:
		return error_decide_inwards(&flow);
	case RELATION_ESTABLISHED:
		verdict = enter_by_connection(&flow);
		return verdict != VERDICT_PASS ? verdict : enter_new(&flow); /* it has ended */
	case RELATION_NEW:
		return enter_new(&flow);
	default:
		return VERDICT_PASS;
	}
}

/* Remembers what may be a tunnel's of this host. Tells to_uplink that no NAT of this host has given
 * the packet the host's address as its source. The IP stack refuses such an IPv4 packet. */
INLINE int pass_stranger(struct __sk_buff *skb, const struct packet *packet)
{
	if (!packet->ipv4 &&
	    (packet->tuple.protocol != PROTOCOL_TCP || packet_begins_tcp(packet)) &&
	    bpf_map_lookup_elem(&host_addresses, packet->sender))
		tc_index_set(skb, TC_INDEX_HOSTS_ADDRESS);
	if (packet_protocol_is_portless(packet->tuple.protocol) && !packet->error)
		tunnel_receive(packet, skb->ifindex);
	return TC_ACT_UNSPEC;
}

/* What from_uplink and from_bridge do with a parsed packet. */
INLINE int handle_ingress(struct flow_context *flow)
{
	struct __sk_buff *skb = flow->skb;
	struct packet *packet = flow->packet;
	bool may_offload = flow->arrival->may_offload;
	enum verdict verdict = VERDICT_PASS;

	if (flow->kind == PACKET_OPAQUE && strict_refuses_other(skb, packet))
		return shot(strict);
	if (flow->kind < PACKET_TRANSLATABLE && !packet->fragment)
		return TC_ACT_UNSPEC;
	if (flow->kind == PACKET_FRAGMENT)
		return apply_later_fragment(flow);
	if (flow->kind == PACKET_TRANSLATABLE && !packet->fragment &&
	    !inwards_concerns(&packet->tuple))
		return pass_stranger(skb, packet);
	/* Packets that are not ours are spared a cache miss on a memo. */
	if (may_offload &&
	    (portmap_is_published(packet->tuple.destination_port) ||
	     external_port_is_used(packet->tuple.destination_port, packet->tuple.protocol)) &&
	    memo_use(skb, packet, flow->translation))
		verdict = VERDICT_TRANSLATE;
	else if (flow->kind >= PACKET_TRANSLATABLE &&
		 (!flow->arrival->by_bridge || route_leads_back(skb, packet)))
		verdict = decide_inwards(skb);
	if (packet->error && verdict == VERDICT_PASS && strict_refuses_other(skb, packet))
		verdict = drop(strict);
	if (verdict == VERDICT_PASS)
		pass_stranger(skb, packet);
	else if (!may_offload && verdict == VERDICT_TRANSLATE)
		flow->translation->enters_again = conntrack_seen(skb) != 0;
	return apply_inwards(flow, verdict);
}

/* Handles a frame on an uplink or a bridge; only those addressed to this host matter. */
INLINE int handle_frame(struct __sk_buff *skb, bool uplink)
{
	struct flow_context flow = flow_of(skb);
	struct packet *packet = flow.packet;
	bool switched = uplink && skb->tc_index && interface_bridge_behind(skb->ifindex);

	/* A container at the other end of a veth may have set it. */
	if (uplink && skb->tc_index && !switched)
		skb->tc_index = 0;
	if (skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	*flow.arrival = (struct arrival){.ifindex = skb->ifindex,
					 .routed = true,
					 .may_offload = uplink,
					 .by_bridge = !uplink};
	flow.kind = packet_parse(skb, packet, ETH_HLEN, DIRECTION_IN);
	if (flow.kind == PACKET_IGNORED)
		return tags_hide_packet(skb) ? shot(nested_tags) : TC_ACT_UNSPEC;
	if (switched)
		seal_exchange(skb, packet);
	if (!uplink &&
	    (tc_index_has(skb->tc_index, TC_INDEX_ENTERED_AGAIN) || endpoint_slot(packet->sender)))
		return TC_ACT_UNSPEC; /* we have handled it, or from_container has */
	return handle_ingress(&flow);
}

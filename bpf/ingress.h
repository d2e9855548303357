/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ingress.h - packets that enter the IP stack from an uplink or a bridge: which connection one
 * belongs to, and whether it begins one. */
#ifndef BPF_PORTMAP_INGRESS_H
#define BPF_PORTMAP_INGRESS_H

#include "apply.h"
#include "endpoint.h"
#include "host.h"
#include "icmp_error.h"
#include "offload_send.h"
#include "packet.h"
#include "route.h"
#include "tc_index.h"

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

/* Returns the same, except if a VLAN's tag follows: then the frame appears again at that device, or
 * at none. The stack must not see an IP packet where the programs saw none. */
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

/* How a packet has arrived. */
struct arrival {
	__u32 ifindex;        /* the ingress interface for routing: a bridge rather than its port */
	bool routed;          /* goes into the IP stack, not switched */
	bool sender_verified; /* the source address is the sender's own */
	bool may_offload;     /* the packet may skip the stack */
	struct owner owner;   /* of the container whose packet is routed, or {0, 0} */
};

/* Handles an inward packet of a live connection. VERDICT_PASS: the connection has ended. */
INLINE enum verdict enter_by_connection(struct __sk_buff *skb, struct packet *packet,
					struct found *found, const struct arrival *arrival,
					struct translation *translation)
{
	enum verdict verdict;
	bool candidate = false;

	translation_inwards(found->key, translation);
	if (arrival->may_offload) {
		offload_choose(skb, packet, found, arrival->ifindex, translation);
		candidate = offload_is_candidate(packet, found);
		translation->report = !translation->path && offload_wants_confirmation(found);
	}
	if (!found_stands(found))
		return VERDICT_PASS;
	verdict = connection_use(found, packet, skb->len);
	if (candidate && verdict == VERDICT_TRANSLATE)
		offload_try(skb, packet, found, arrival->ifindex, translation);
	return verdict;
}

/* Handles a packet to a mapped port that begins a connection. */
INLINE enum verdict enter_by_mapping(struct __sk_buff *skb, struct packet *packet,
				     struct portmap *mapping, const struct arrival *arrival,
				     struct translation *translation)
{
	enum verdict verdict = dnat_begin(skb, packet, mapping, translation);
	struct found found = {.way = INWARDS};
	struct draft *draft = draft_get();
	enum fast_path mode;

	if (!arrival->may_offload || verdict != VERDICT_TRANSLATE)
		return verdict;
	mode = offload_mode(&mapping->owner);
	translation->report = mode == FAST_PATH_ESTABLISHED;
	if (mode != FAST_PATH_ALWAYS || !draft)
		return verdict;
	found.key = &draft->key;
	if (found_look_up(&found) && offload_concerns(found.key->protocol, found.connection))
		offload_try(skb, packet, &found, arrival->ifindex, translation);
	return verdict;
}

/* Returns where the packet goes. For IPv6 the sysctl of an interface does not say whether the host
 * forwards what comes in there, but routing asks it before it looks at addresses: where it is off,
 * so that the host takes router advertisements, the question is asked for the container's veth. */
INLINE enum route route_to_mapping(struct __sk_buff *skb, const struct packet *packet,
				   const struct portmap *mapping, __u32 ifindex)
{
	enum route route;
	const struct slot *slot;
	__u32 out = 0;

	route = route_of(skb, packet, ifindex, &out);
	if (route != ROUTE_DISABLED || packet->ipv4)
		return route;
	slot = owner_slot(&mapping->owner);
	return slot ? route_of(skb, packet, slot->ifindex, &out) : route;
}

/* Returns whether the mapping applies: its owner's veth exists, and the destination is an address
 * of this host that is not excluded. */
INLINE bool mapping_applies(struct __sk_buff *skb, const struct packet *packet,
			    const struct portmap *mapping, const struct arrival *arrival)
{
	enum route route;

	if (!arrival->routed || !slot_has_veth(mapping->owner.slot) ||
	    portmap_is_excluded(&mapping->owner, packet->tuple.destination))
		return false;
	route = route_to_mapping(skb, packet, mapping, arrival->ifindex);
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

INLINE enum verdict decide_inwards(struct __sk_buff *skb, struct packet *packet,
				   const struct arrival *arrival, struct translation *translation)
{
	struct tuple *tuple = &packet->tuple;
	struct endpoint *endpoint;
	struct portmap *mapping;
	enum verdict verdict;
	struct found found = {};

	if (packet->error)
		return error_decide_inwards(skb, packet, arrival->ifindex, &arrival->owner,
					    translation);
	tuple->direction = DIRECTION_IN;
	mapping = inwards_find(tuple, &found);
	if (gives_way_to_mapping(packet, &found)) {
		mapping =
			portmap_find(tuple->destination, tuple->destination_port, tuple->protocol);
		if (mapping) {
			connection_end(found.key, found.id);
			found.connection = NULL;
		}
	}
	if (found.connection && !connection_has_owner(found.connection)) {
		if (host_has_finished(skb, packet, found.key, found.connection->kind)) {
			connection_end(found.key, found.id);
			found.connection = NULL;
		} else if (host_may_answer_foreign(packet, found.connection)) {
			return VERDICT_PASS;
		}
	}
	if (found.connection && !(found.connection->state & STATE_UNCONFIRMED)) {
		verdict = enter_by_connection(skb, packet, &found, arrival, translation);
		if (verdict != VERDICT_PASS)
			return verdict;
	}
	if (mapping && !slot_has_veth(mapping->owner.slot)) /* try that of any address */
		mapping = portmap_find_any(address_is_ipv4(tuple->destination),
					   tuple->destination_port, tuple->protocol);
	if (mapping && mapping_applies(skb, packet, mapping, arrival))
		return enter_by_mapping(skb, packet, mapping, arrival, translation);
	endpoint = endpoint_find(tuple->destination);
	if (!endpoint)
		return VERDICT_PASS;
	if (strict_refuses(endpoint, arrival->ifindex))
		return drop(strict);
	return direct_begin(packet, endpoint, arrival->sender_verified, translation);
}

/* A packet of no connection that has a host's address as its source: from_uplink and from_bridge
 * tell to_uplink that no NAT of this host has given it that. The IP stack refuses such an IPv4
 * packet. */
INLINE int pass_stranger(struct __sk_buff *skb, const struct packet *packet)
{
	if (!packet->ipv4 &&
	    (packet->tuple.protocol != PROTOCOL_TCP || packet_begins_tcp(packet)) &&
	    bpf_map_lookup_elem(&host_addresses, packet->sender))
		tc_index_set(skb, TC_INDEX_HOSTS_ADDRESS);
	return TC_ACT_UNSPEC;
}

INLINE int handle_ingress(struct __sk_buff *skb, struct packet *packet, enum packet_kind kind,
			  bool may_offload)
{
	const struct arrival arrival = {
		.ifindex = skb->ifindex, .routed = true, .may_offload = may_offload};
	struct translation translation;
	enum verdict verdict = VERDICT_PASS;

	if (kind == PACKET_OPAQUE && strict_refuses_other(skb, packet))
		return shot(strict);
	if (kind < PACKET_TRANSLATABLE && !packet->fragment)
		return TC_ACT_UNSPEC;
	packet->tuple.direction = DIRECTION_IN;
	if (kind == PACKET_FRAGMENT)
		return apply_later_fragment(skb, packet, &translation, NULL);
	if (kind == PACKET_TRANSLATABLE && !packet->fragment && !inwards_concerns(&packet->tuple))
		return pass_stranger(skb, packet);
	if (may_offload && memo_inwards(skb, packet, &translation))
		verdict = VERDICT_TRANSLATE;
	else if (kind >= PACKET_TRANSLATABLE)
		verdict = decide_inwards(skb, packet, &arrival, &translation);
	if (packet->error && verdict == VERDICT_PASS && strict_refuses_other(skb, packet))
		verdict = drop(strict);
	if (verdict == VERDICT_PASS)
		pass_stranger(skb, packet);
	else if (!may_offload && verdict == VERDICT_TRANSLATE)
		translation.enters_again = device_conntrack_has_seen(skb);
	return apply_inwards(skb, packet, &translation, verdict);
}

/* Handles a frame on an uplink or a bridge; only those addressed to this host matter. */
INLINE int handle_frame(struct __sk_buff *skb, bool uplink)
{
	enum packet_kind kind;
	struct packet packet;

	/* A container at the other end of a veth may have set it. */
	if (uplink && skb->tc_index && !interface_leads_to_container(skb->ifindex))
		skb->tc_index = 0;
	if (skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, ETH_HLEN);
	if (kind == PACKET_IGNORED)
		return tags_hide_packet(skb) ? shot(nested_tags) : TC_ACT_UNSPEC;
	if (!uplink &&
	    (tc_index_has(skb->tc_index, TC_INDEX_ENTERED_AGAIN) || endpoint_slot(packet.sender)))
		return TC_ACT_UNSPEC; /* we have handled it, or from_container has */
	return handle_ingress(skb, &packet, kind, uplink);
}

#endif

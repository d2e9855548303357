/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* apply.h - carries out what was decided about a packet and the other fragments of its datagram. */
#pragma once

#include "flow_context.h"
#include "fragment.h"
#include "icmp_error_rewrite.h"
#include "offload_send.h"
#include "parse.h"

/* Lets the packet enter its bridge, or lo, once more. br_netfilter has shown it to conntrack before
 * it was translated, at a bridge's port without a program of ours; conntrack would take the replies
 * for invalid. The kernel forgets that on the way (skb_scrub_packet). At lo: loopback.h. */
INLINE int enter_again(struct __sk_buff *skb)
{
	tc_index_set(skb, TC_INDEX_ENTERED_AGAIN);
	return bpf_redirect(skb->ifindex, BPF_F_INGRESS);
}

/* Sends a reply, or an ICMP error, to a process of this host by way of lo (loopback.h). done: its
 * destination is a loopback address by now. */
GLOBAL_FUNCTION int send_to_loopback(struct __sk_buff *skb, const struct packet *packet, bool done)
{
	struct address stand_in;

	if (!packet)
		return TC_ACT_SHOT;
	skb->priority = 0;
	if (packet->ipv4 && !done) {
		skb->priority = address_to_ipv4(packet->tuple.destination);
		address_from_ipv4(stand_in.bytes, bpf_htonl(0x7f000001));
		if (rewrite_destination(skb, packet, &stand_in))
			return shot(rewrite_failed);
	}
	rewrite_for_container(skb);
	tc_index_set(skb, TC_INDEX_REPLY);
	return bpf_redirect_neigh(LOOPBACK_IFINDEX, NULL, 0, 0);
}

/* Sends a reply by the uplink that routing has chosen for its new source. */
GLOBAL_FUNCTION int apply_reroute(struct __sk_buff *skb, const struct packet *packet,
				  const struct translation *translation)
{
	struct bpf_fib_lookup *query = &scratch_get()->query;

	if (!packet || !translation)
		return TC_ACT_SHOT;
	route_query(query, packet, skb->ingress_ifindex);
	route_query_addresses(query, translation->address, packet->tuple.destination);
	return route_ask_and_redirect(skb, query, translation->out_ifindex);
}

GLOBAL_FUNCTION int apply_verdict(struct __sk_buff *skb, const struct packet *packet,
				  const struct translation *translation, enum verdict verdict)
{
	if (!packet || !translation || verdict == VERDICT_DROP)
		return TC_ACT_SHOT;
	if (verdict == VERDICT_PASS || !translation_changes(translation, &packet->tuple))
		return TC_ACT_UNSPEC;
	if (translation->path && !offload_header_is_right(skb, packet))
		return shot(damaged_header);
	if (packet->error ? rewrite_error(skb, packet, translation)
			  : rewrite_packet(skb, packet, translation))
		return shot(rewrite_failed); /* half rewritten, so of no use */
	if (translation->path && packet->l3_offset)
		return offload_send(skb, packet, translation);
	if (packet->error) {
		count_here(rewritten_error);
		return packet->tuple.direction == DIRECTION_IN &&
				       address_is_loopback(translation->address)
			       ? send_to_loopback(skb, packet, true)
			       : TC_ACT_UNSPEC;
	}
	if (translation->report)
		tc_index_set(skb, TC_INDEX_CONFIRM);
	else if (translation->done)
		tc_index_set(skb, TC_INDEX_DONE);
	if (packet->tuple.direction == DIRECTION_IN) {
		count_here(rewritten_destination);
		if (address_is_loopback(translation->address))
			return send_to_loopback(skb, packet, true);
		return translation->enters_again ? enter_again(skb) : TC_ACT_UNSPEC;
	}
	count_here(rewritten_source);
	if (!translation->out_ifindex)
		return TC_ACT_UNSPEC;
	if (rewrite_make_room_for_link_header(skb, packet))
		return shot(rewrite_failed);
	count(rerouted);
	return apply_reroute(skb, packet, translation);
}

/* Remembers a first fragment's fate for the later ones. True: later ones were held, so the first
 * was sent in again, ahead of them, and the caller drops this copy. */
INLINE bool apply_to_held(const struct flow_context *flow, enum fragment_fate fate)
{
	__u32 newest = 0;

	if (flow->packet->fragment == FIRST_FRAGMENT)
		newest = fragment_remember(flow->skb, flow->packet, flow->translation, fate);
	if (newest)
		held_release_all(flow->skb, flow->packet, newest);
	return newest;
}

/* Applies it to a packet that enters the stack. */
INLINE int apply_inwards(const struct flow_context *flow, enum verdict verdict)
{
	verdict = fragment_verdict(flow->packet, flow->translation, verdict);
	if (apply_to_held(flow, fragment_fate_of(verdict)))
		return TC_ACT_SHOT;
	return apply_verdict(flow->skb, flow->packet, flow->translation, verdict);
}

/* Applies it to a packet of the fast path, whose source is translated at ingress. */
INLINE int apply_outwards(const struct flow_context *flow, enum verdict verdict)
{
	if (verdict == VERDICT_TRANSLATE && apply_to_held(flow, FRAGMENT_LEFT))
		return TC_ACT_SHOT;
	return apply_verdict(flow->skb, flow->packet, flow->translation, verdict);
}

/* Sends a frame into the IP stack that the bridge would switch past to_container. One that is
 * addressed to the bridge already enters the stack behind br_netfilter, which would undo another
 * NAT's translation and switch the frame, too. */
GLOBAL_FUNCTION int lift(struct __sk_buff *skb, const struct interface *port)
{
	if (!port)
		return TC_ACT_SHOT;
	count(lifted_reply);
	if (packet_is_for_mac(skb, port->bridge_mac))
		return bpf_redirect(port->bridge_ifindex, BPF_F_INGRESS);
	return rewrite_destination_mac(skb, port->bridge_mac) ? shot(rewrite_failed)
							      : TC_ACT_UNSPEC;
}

/* Does to a later fragment what was done to the first. If that has not come yet, a fragment that
 * may need translation is held: one to this host, or one that a container sends (ifindex 0). */
GLOBAL_FUNCTION int later_fragment(struct __sk_buff *skb, struct packet *packet,
				   struct translation *translation, __u32 ifindex)
{
	enum fragment_fate fate;
	__u32 out = 0;

	if (!packet || !translation)
		return FRAGMENT_WAITING;
	fate = fragment_follow(skb, packet, translation);
	if (fate != FRAGMENT_WAITING)
		return fate;
	if (ifindex && route_of(skb, packet, ifindex, &out) != ROUTE_LOCAL)
		return FRAGMENT_PASSED;
	if (held_keep(skb, packet))
		return FRAGMENT_DROPPED;
	fate = fragment_follow(skb, packet, translation);
	if (fate == FRAGMENT_WAITING)
		count(fragment_not_held);
	return fate;
}

INLINE int apply_later_fragment(const struct flow_context *flow)
{
	struct packet *packet = flow->packet;
	int fate = later_fragment(flow->skb, packet, flow->translation,
				  flow->port ? 0 : flow->skb->ifindex);

	switch (fate) {
	case FRAGMENT_LEFT:
	case FRAGMENT_TRANSLATED:
		packet->tuple.direction = fate == FRAGMENT_LEFT ? DIRECTION_OUT : DIRECTION_IN;
		return apply_verdict(flow->skb, packet, flow->translation, VERDICT_TRANSLATE);
	case FRAGMENT_DROPPED:
		return TC_ACT_SHOT;
	case FRAGMENT_LIFTED:
		return lift(flow->skb, flow->port);
	case FRAGMENT_REPLY:
		return send_to_loopback(flow->skb, packet, false);
	default:
		return TC_ACT_UNSPEC;
	}
}

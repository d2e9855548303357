/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* egress.h - packets that leave the IP stack by an uplink, or towards a container. */
#ifndef BPF_PORTMAP_EGRESS_H
#define BPF_PORTMAP_EGRESS_H

#include "apply.h"
#include "egress_decide.h"
#include "host.h"
#include "icmp_error.h"

/* No container's (the stack makes packets in a container's name: a RST of the firewall's REJECT,
 * and the pieces into which ip6_fragment() cuts a packet again) but the host's own, which came in
 * nowhere; or what bears the host's address because another NAT has given it. Left alone, at most
 * remembered. */
INLINE bool leave_as_hosts(struct __sk_buff *skb, const struct packet *packet, bool translatable,
			   bool uplink)
{
	if (skb->ingress_ifindex != 0) {
		if (!uplink || !translatable || !host_is_foreign_nat(skb, packet))
			return false;
		host_remember_foreign(packet);
		return true;
	}
	if (translatable && packet->fragment == FIRST_FRAGMENT && direct_confirm(packet))
		return true; /* a client's, cut again */
	if (translatable && host_must_be_remembered(packet))
		host_remember(packet);
	return true;
}

/* A container may give its packets a tc_index; from_container takes that away again, but does not
 * hang at every interface that leads to one. */
INLINE bool entered_by_container(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && (interface->role == ROLE_PORT || interface->role == ROLE_ROUTED);
}

INLINE int handle_egress(struct __sk_buff *skb, __u16 l3_offset, bool uplink)
{
	struct translation translation = {};
	const struct endpoint *endpoint;
	enum packet_kind kind;
	struct packet packet;
	enum verdict verdict;
	__u16 index = skb->tc_index;

	if (index)
		skb->tc_index = 0;
	if (uplink && index == TC_INDEX_SENT && entered_by_container(skb))
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, l3_offset);
	if (kind == PACKET_IGNORED)
		return TC_ACT_UNSPEC;
	if (kind == PACKET_ERROR) {
		verdict = error_decide_outwards(&packet, &translation);
		return apply_verdict(skb, &packet, &translation, verdict);
	}
	packet.tuple.direction = DIRECTION_OUT;
	endpoint = endpoint_find(packet.sender);
	if (!endpoint && leave_as_hosts(skb, &packet, kind == PACKET_TRANSLATABLE, uplink))
		return TC_ACT_UNSPEC;
	verdict =
		decide_outwards(skb, &packet, kind == PACKET_TRANSLATABLE, endpoint, &translation);
	if (index == TC_INDEX_CONFIRM && verdict == VERDICT_PASS)
		offload_saw_leaving(&packet, skb->ingress_ifindex);
	if (uplink && verdict == VERDICT_PASS && endpoint && endpoint->strict &&
	    kind == PACKET_TRANSLATABLE)
		direct_remember_strict(&packet, endpoint);
	verdict = fragment_verdict(&packet, &translation, verdict);
	if (packet.fragment == FIRST_FRAGMENT && (verdict != VERDICT_PASS || endpoint))
		fragment_remember(skb, &packet, &translation, fragment_fate_of(verdict));
	return apply_verdict(skb, &packet, &translation, verdict);
}

#endif

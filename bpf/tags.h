/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tags.h - VLAN tags that the kernel takes off behind the programs.
 *
 * A tag in front of the IP packet is taken off before tc ingress; a frame of a VLAN comes by again
 * at the VLAN's device. But a tag of VID 0 is a priority and no VLAN: behind tc the kernel takes it
 * off, and the next one, and so on (__netif_receive_skb_core), and what is left it delivers as if
 * it had come untagged.
 */
#ifndef BPF_PORTMAP_TAGS_H
#define BPF_PORTMAP_TAGS_H

#include "packet.h"

#define ETHERTYPE_VLAN 0x8100     /* 802.1Q */
#define ETHERTYPE_PROVIDER 0x88a8 /* 802.1ad */
#define TAGS_WALKED 4             /* more: nobody sends that many */

/* What stands behind an ethertype of a VLAN */
struct tag {
	__be16 control;
	__be16 ethertype;
};

static __always_inline bool tags_begin(__be16 ethertype)
{
	return ethertype == bpf_htons(ETHERTYPE_VLAN) || ethertype == bpf_htons(ETHERTYPE_PROVIDER);
}

/* Is there a tag under a priority tag, whatever is in it? */
static __always_inline bool tags_are_nested(struct __sk_buff *skb)
{
	return tags_begin(skb->protocol) && !(skb->vlan_present && (skb->vlan_tci & VLAN_VID_MASK));
}

/* The same, but where a VLAN's tag follows: then it comes by again, or is nobody's. */
VERIFIED_ONCE bool tags_hide_packet(struct __sk_buff *skb)
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

#endif

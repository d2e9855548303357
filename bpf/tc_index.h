/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tc_index.h - what one of our hooks tells the next about a packet.
 *
 * skb->tc_index stays with a packet from hook to hook, through bridge, IP stack and fragmentation.
 * A container's own programs can set it, so from_container clears it; where a packet may have come
 * by an interface without that program, entered_by_container() says whether to trust it.
 */
#pragma once

#include "maps.h"
#include "tc_index_values.h"

INLINE bool tc_index_has(__u16 index, __u16 flag)
{
	return (index & (0xff00 | flag)) == (TC_INDEX_OURS | flag);
}

INLINE void tc_index_set(struct __sk_buff *skb, __u16 flag)
{
	__u16 index = skb->tc_index;

	skb->tc_index = (tc_index_has(index, 0) ? index : TC_INDEX_OURS) | flag;
}

/* Returns whether what comes in by this interface has passed from_container: at a container's veth,
 * its bridge, or a device by which that bridge's frames reach the IP stack (a VLAN's gateway). */
INLINE bool interface_leads_to_container(__u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && (interface->role != ROLE_UPLINK || interface->bridge_ifindex);
}

INLINE bool entered_by_container(struct __sk_buff *skb)
{
	return interface_leads_to_container(skb->ingress_ifindex);
}

/* Returns whether it came by an interface where from_uplink clears what is not ours. */
INLINE bool entered_by_uplink(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && interface->role == ROLE_UPLINK && !interface->bridge_ifindex &&
	       !interface->without_link_header;
}

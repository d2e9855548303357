/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tc_index.h - what one of our hooks tells the next about a packet.
 *
 * skb->tc_index stays with a packet from hook to hook, through bridge, IP stack and fragmentation.
 * A container's own programs can set it, so from_container clears it. Where a packet may have come
 * by an interface without that program, a flag counts only if the packet came by an interface
 * where the program that sets this flag has seen it (entered_by_veth(), entered_by_uplink()), or
 * has its sender's seal (seal.h).
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

/* Returns the bridge whose frames reach the IP stack by this uplink (a VLAN's gateway), or 0. */
INLINE __u32 interface_bridge_behind(__u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && interface->role == ROLE_UPLINK ? interface->bridge_ifindex : 0;
}

/* Returns whether it came straight from a container's veth, where from_container clears what is not
 * ours. */
INLINE bool entered_by_veth(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && (interface->role == ROLE_PORT || interface->role == ROLE_ROUTED);
}

/* Returns whether it came by an interface where from_uplink clears what is not ours. */
INLINE bool entered_by_uplink(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && interface->role == ROLE_UPLINK && !interface->bridge_ifindex &&
	       !interface->without_link_header;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * endpoint.h - which container has an address, and "strict" containers, which uplinks reach only
 * through mapped ports.
 *
 * A packet from an uplink to a strict container's own address is dropped unless it belongs to a
 * connection. Masqueraded connections have a record; those that the container begins with its own
 * address are therefore remembered at the uplink (direct.h).
 */
#pragma once

#include "owner.h"
#include "packet.h"

/* The bitmap's 8 kB stay in the cache. */
GLOBAL_FUNCTION bool endpoint_is_marked(__u64 high, __u64 low)
{
	__u16 bit = address_hash(high, low);

	return BIT_IS_SET(endpoint_addresses, bit);
}

/* Returns false where no container ever had this address. */
INLINE bool endpoint_is_likely(const __u8 *address)
{
	return endpoint_is_marked(address_halves(address)[0], address_halves(address)[1]);
}

INLINE struct endpoint *endpoint_find(const __u8 *address)
{
	struct endpoint_key key;

	if (!endpoint_is_likely(address))
		return NULL;
	address_copy(key.address, address);
	return bpf_map_lookup_elem(&endpoints, &key);
}

INLINE const struct slot *endpoint_slot(const __u8 *address)
{
	const struct endpoint *endpoint = endpoint_find(address);

	return endpoint ? owner_slot(&endpoint->owner) : NULL;
}

/* Returns whether to refuse a packet to this container's own address that has no connection. */
INLINE bool strict_refuses(const struct endpoint *endpoint, __u32 ifindex)
{
	const struct interface *interface;

	if (!endpoint->strict || !owner_live(&endpoint->owner))
		return false;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	return interface && interface->role == ROLE_UPLINK;
}

/* The same where the packet's own destination is not in the tuple, so it is read again. */
GLOBAL_FUNCTION bool strict_refuses_other(struct __sk_buff *skb, const struct packet *packet)
{
	const struct endpoint *endpoint;
	struct address destination;

	if (!packet || !packet_load_destination(skb, packet->l3_offset, packet->ipv4, &destination))
		return false;
	endpoint = endpoint_find(destination.bytes);
	return endpoint && strict_refuses(endpoint, skb->ifindex);
}

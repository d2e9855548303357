/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * replace.h - a container that is replaced by the next one of its workload: which of the two gets a
 * new connection.
 *
 * Engines set the new container's network up before they take the old one's down, and a container
 * that has a network has no process yet. So the old one goes on until somebody serves the port in
 * the new one; but one that serves it no longer, as it is being stopped, gets nothing new.
 */
#pragma once

#include "portmap.h"

/* Returns whether a process in the container takes requests to the mapped port. False where that
 * cannot be told: only TCP and UDP sockets can be looked up; in a virtual machine there are none.
 * Not from a packet's source, so that only sockets that would take any client are found. */
INLINE bool portmap_is_served(void *ctx, const struct portmap *mapping, __u32 protocol)
{
	const struct slot *slot = owner_slot(&mapping->owner);
	struct bpf_sock_tuple query = {};
	__u32 size = sizeof(query.ipv6);
	struct bpf_sock *socket;

	if (!slot || slot->netns_id < 0)
		return false;
	if (address_is_ipv4(mapping->container_address)) {
		size = sizeof(query.ipv4);
		query.ipv4.daddr = address_to_ipv4(mapping->container_address);
		query.ipv4.dport = bpf_htons(mapping->container_port);
	} else {
		__builtin_memcpy(query.ipv6.daddr, mapping->container_address, 16);
		query.ipv6.dport = bpf_htons(mapping->container_port);
	}
	/* Two calls: the verifier allows one pointer type at each. */
	if (protocol == PROTOCOL_TCP) {
		socket = bpf_skc_lookup_tcp(ctx, &query, size, slot->netns_id, 0);
		if (!socket)
			return false;
		bpf_sk_release(socket);
		return true;
	}
	if (protocol != PROTOCOL_UDP)
		return false;
	socket = bpf_sk_lookup_udp(ctx, &query, size, slot->netns_id, 0);
	if (!socket)
		return false;
	bpf_sk_release(socket);
	return true;
}

/* Returns whether a new connection goes to the container before. */
INLINE bool portmap_waits(void *ctx, const struct portmap *mapping, const struct portmap *before,
			  __u32 protocol)
{
	if (!portmap_is_replaced(before))
		return false;
	return !slot_has_veth(mapping->owner.slot) || (!portmap_is_served(ctx, mapping, protocol) &&
						       portmap_is_served(ctx, before, protocol));
}

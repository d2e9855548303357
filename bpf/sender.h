/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sender.h - whether a container may use the source address that its packet bears.
 *
 * Its own addresses are known, and so are the other containers' and the host's, which it may not
 * use. Any other one may have been given to it later, or belong to a machine behind it: a container
 * can be a router.
 */
#ifndef BPF_PORTMAP_SENDER_H
#define BPF_PORTMAP_SENDER_H

#include "endpoint.h"
#include "route.h"

/* An address of another attachment. A container on two networks answers with either's
 * address by whichever veth its routing chooses. */
INLINE bool sender_is_another(const struct endpoint *endpoint, const struct owner *own)
{
	const struct slot *theirs = owner_slot(&endpoint->owner), *ours = owner_slot(own);

	return theirs && ours && theirs->container != ours->container && !endpoint->shared &&
	       owner_has_veth(endpoint->owner.slot);
}

/* A bridge gives the IP stack what is addressed to itself, and to the port by which it came. */
INLINE bool sender_asks_stack(struct __sk_buff *skb, const struct interface *interface)
{
	return skb->pkt_type == PACKET_HOST ||
	       (interface->role == ROLE_PORT && packet_is_for_mac(skb, interface->bridge_mac));
}

/* The record may be behind the truth, and routing does not tell an address of the host from
 * one without a route: so both are asked. What is routed over IPv6 with a source that has no
 * route never gets an answer, and there routing alone decides: the stack does not ask. */
INLINE bool sender_is_host(struct __sk_buff *skb, const struct packet *packet,
			   const struct interface *interface, __u32 ifindex)
{
	struct bpf_fib_lookup query;
	__u32 gateway = ifindex;
	struct endpoint_key key;
	bool known;

	barrier_var(gateway); /* or compilers choose between two pointers to load from */
	if (interface->role == ROLE_PORT)
		gateway = interface->bridge_ifindex;
	address_copy(key.address, packet->sender);
	/* The entry :: is no address. */
	if (address_is_unset(key.address))
		return false;
	known = bpf_map_lookup_elem(&host_addresses, &key);
	if (!known && (packet->ipv4 || !sender_asks_stack(skb, interface)))
		return false;
	route_query(&query, packet, gateway);
	route_query_addresses(&query, key.address, key.address);
	switch (bpf_fib_lookup(skb, &query, sizeof(query), 0)) {
	case BPF_FIB_LKUP_RET_NOT_FWDED:
		return true;
	case BPF_FIB_LKUP_RET_FWD_DISABLED: /* tells nothing about the address */
		return known;
	default:
		return false;
	}
}

/* Drops are counted here. ifindex: the veth at which the packet came in. */
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
	if (endpoint && owner_equal(&endpoint->owner, &interface->owner))
		return false;
	if (endpoint ? sender_is_another(endpoint, &interface->owner)
		     : sender_is_host(skb, packet, interface, ifindex)) {
		count(drop_forged_source);
		return true;
	}
	return false;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_choice.h - which ports a masqueraded connection tries, in which order.
 *
 * The order follows from the connection's source, its owner and a secret. So outsiders cannot
 * predict the next port, and a connection that has lost its record tries its old port first. The
 * destination is left out: one socket has the same port towards every server unless it is taken
 * there (RFC 4787 REQ-1). Peers find each other by the port that a STUN server has seen.
 */
#pragma once

#include "policy.h"
#include "scratch.h"
#include "siphash.h"

struct port_set {
	struct port_range ranges[MASQUERADE_RANGES];
};

/* Places of the order. The first is the container's own port, if that may be kept. The next are
 * scattered, so that a free one is found fast; the rest are consecutive, so that a small set is
 * tried completely. Of a large one so many that a search fails once in 10^28 while the reserved
 * part (snat.h) is free, and in 1 % where a port in 220 is: all of them would take milliseconds. */
#define PORT_PLACES 1024
#define SMALL_SET 256 /* with fewer ports all are tried */
#define PORT_PLACES_SCATTERED 32
#define PORT_PLACES_SPARE 64 /* from then on an owner with no fewer ports must give way */
#define PORT_PLACES_A_ROUND 16
#define PORT_ROUNDS (PORT_PLACES / PORT_PLACES_A_ROUND)

/* Servers may accept only clients whose port a user could not bind (NFS, rsh). Where masqPorts does
 * not say otherwise, such a client is given such a port: its own, or one of netfilter's range. */
#define PRIVILEGED_END 1024
#define PRIVILEGED_FIRST 600

/* An echo identifier cannot collide with a port of the host. Any will do except 0, which would make
 * a request look like a reply. */
#define PORTS_OF_ECHO 65535

INLINE const struct port_set *port_set_of(const struct owner *owner)
{
	const struct policy *policy = policy_of(owner);

	if (policy && policy->masquerade_ports[0].last) {
		/* Before 6.2 no offset may be added to a pointer not yet compared with NULL. */
		barrier_var(policy);
		return (const struct port_set *)policy->masquerade_ports;
	}
	return (const struct port_set *)SINGLE(meta)->masquerade_ports;
}

/* An unused range is {0, 0}; port 0 is never in a set. Branchless, for the verifier. */
INLINE __u32 port_range_size(const struct port_range *range)
{
	__u32 used = (range->last + 0xffffU) >> 16; /* 1, or 0 for no port */

	return range->last - range->first + used;
}

GLOBAL_FUNCTION bool port_set_has(const struct port_set *set, __u16 port)
{
	bool inside = false;

	if (!set)
		return false;
	for (int i = 0; i < MASQUERADE_RANGES && !inside; i++) {
		inside = (__u32)(port - set->ranges[i].first) < port_range_size(&set->ranges[i]);
		barrier_var(inside); /* or compilers compare twice: two values to the verifier */
	}
	return inside;
}

GLOBAL_FUNCTION __u32 port_set_size(const struct port_set *set)
{
	__u32 size = 0;

	if (!set)
		return 0;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		size += port_range_size(&set->ranges[i]);
	return size;
}

GLOBAL_FUNCTION __u16 port_set_nth(const struct port_set *set, __u32 nth)
{
	__u32 size;

	if (!set)
		return 0;
	for (int i = 0; i < MASQUERADE_RANGES; i++) {
		size = port_range_size(&set->ranges[i]);
		if (nth < size)
			return set->ranges[i].first + nth;
		nth -= size;
	}
	return 0;
}

/* A hash of the source and the owner, with the host's secret as the key. */
GLOBAL_FUNCTION __u64 port_order_start(const struct connection_key *key, const struct owner *owner)
{
	struct sip_state state;

	if (!key || !owner)
		return 0;
	state = sip_begin(SINGLE(meta)->port_seed);
	for (int i = 0; i < 2; i++)
		sip_take(&state, address_halves(key->inside)[i]);
	sip_take(&state, (__u64)key->inside_port << 32 | key->protocol);
	sip_take(&state, (__u64)owner->generation << 32 | owner->slot);
	return sip_end(&state);
}

INLINE bool port_is_privileged(__u16 port, const struct owner *owner)
{
	const struct policy *policy;

	if (!port || port >= PRIVILEGED_END)
		return false;
	policy = policy_of(owner);
	return !policy || !policy->masquerade_ports[0].last;
}

/* Returns false where there are no ports. */
GLOBAL_FUNCTION bool port_order_of(const struct tuple *key, const struct owner *owner,
				   const struct port_set *set, struct port_order *order)
{
	if (!key || !owner || !set || !order)
		return false;
	order->own = key->source_port;
	order->next = 0;
	order->number = PORTS_OF_ECHO;
	order->keeps_own = order->own != 0;
	order->privileged = false;
	if (!packet_protocol_has_ports(key->protocol))
		return true;
	order->privileged = port_is_privileged(order->own, owner);
	if (order->privileged) {
		order->number = PRIVILEGED_END - PRIVILEGED_FIRST;
	} else {
		order->number = port_set_size(set);
		order->keeps_own = port_set_has(set, order->own);
	}
	return order->number;
}

GLOBAL_FUNCTION __u16 port_at(const struct port_order *order, const struct port_set *set,
			      __u32 place)
{
	__u32 nth;

	if (!order || !set || order->number == 0)
		return 0;
	nth = order->start + place;
	if (place == 0 && order->keeps_own)
		return order->own;
	if (place < PORT_PLACES_SCATTERED)
		nth = hash_mix(order->start, place);
	if (order->number == PORTS_OF_ECHO)
		return nth % PORTS_OF_ECHO + 1;
	if (order->privileged)
		return PRIVILEGED_FIRST + nth % (PRIVILEGED_END - PRIVILEGED_FIRST);
	return port_set_nth(set, nth % order->number);
}

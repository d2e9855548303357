/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * port_choice.h - which ports a masqueraded flow may have, and in which order it tries
 * them.
 *
 * The order follows from the flow's tuple, its owner and a secret (RFC 6056 3.3.3): no
 * outsider can tell which port comes next, and a flow that has lost the half that knew
 * its port finds the other half by trying again.
 */
#ifndef BPF_PORTMAP_PORT_CHOICE_H
#define BPF_PORTMAP_PORT_CHOICE_H

#include "policy.h"

struct port_set {
	struct port_range ranges[MASQUERADE_RANGES];
};

/* So many places the order has, as many as netfilter tries at most. The first is the
 * container's own port, where that may be kept. Then they are scattered, so that a free one is
 * found fast; the rest go through the set in a row, so that of a small one none is left out. */
#define PORT_PLACES 256
#define PORT_PLACES_SCATTERED 64
/* Tried in rounds: the verifier walks through every turn of a loop, and two short ones, one in
 * a function of its own, are soon walked through. */
#define PORT_PLACES_A_ROUND 16
#define PORT_ROUNDS (PORT_PLACES / PORT_PLACES_A_ROUND)
/* So often another CPU may be faster. */
#define PORT_RACES 8
/* Where a flow is looked for that has lost the half that knew its port. */
#define PORT_PLACES_TO_FIND 64

/* An echo identifier is no port of the host's: all will do, but for 0, which would make a
 * request look like a reply. */
#define PORTS_OF_ECHO 65535

struct port_order {
	__u64 start;         /* what the flow has for itself */
	__u32 number : 31;   /* of ports in the set */
	__u32 keeps_own : 1; /* the container's own port may be kept */
	__u16 own;
	__u16 next; /* place to try */
};

/* NULL: never. */
static __always_inline const struct port_set *port_set_of(const struct owner *owner)
{
	const struct policy *policy = policy_of(owner);
	const struct meta *settings;
	__u32 only = 0;

	if (policy && policy->masquerade_ports[0].last) {
		barrier_var(policy);
		return (const struct port_set *)policy->masquerade_ports;
	}
	settings = bpf_map_lookup_elem(&meta, &only);
	if (!settings)
		return NULL;
	/* Before 6.2 no offset may be added to what has not been compared with NULL. */
	barrier_var(settings);
	return (const struct port_set *)settings->masquerade_ports;
}

/* An unused range is {0, 0}, and port 0 is never in the set. Without branches, for the
 * verifier walks through every turn of the loops below. */
static __always_inline __u32 port_range_size(const struct port_range *range)
{
	__u32 used = (range->last + 0xffffU) >> 16; /* 1, or 0 for no port */

	return range->last - range->first + used;
}

VERIFIED_ONCE bool port_set_has(const struct port_set *set, __u16 port)
{
	bool inside = false;

	if (!set)
		return false;
	for (int i = 0; i < MASQUERADE_RANGES && !inside; i++) {
		inside = (__u32)(port - set->ranges[i].first) < port_range_size(&set->ranges[i]);
		barrier_var(inside); /* or compilers ask twice, and the verifier takes it for two */
	}
	return inside;
}

VERIFIED_ONCE __u32 port_set_size(const struct port_set *set)
{
	__u32 size = 0;

	if (!set)
		return 0;
	for (int i = 0; i < MASQUERADE_RANGES; i++)
		size += port_range_size(&set->ranges[i]);
	return size;
}

VERIFIED_ONCE __u16 port_set_nth(const struct port_set *set, __u32 nth)
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

struct sip_state {
	__u64 a, b, c, d;
};

static __always_inline __u64 rotate_left(__u64 word, int bits)
{
	return word << bits | word >> (64 - bits);
}

static __always_inline void sip_round(struct sip_state *state)
{
	state->a += state->b;
	state->b = rotate_left(state->b, 13) ^ state->a;
	state->a = rotate_left(state->a, 32);
	state->c += state->d;
	state->d = rotate_left(state->d, 16) ^ state->c;
	state->a += state->d;
	state->d = rotate_left(state->d, 21) ^ state->a;
	state->c += state->b;
	state->b = rotate_left(state->b, 17) ^ state->c;
	state->c = rotate_left(state->c, 32);
}

static __always_inline void sip_take(struct sip_state *state, __u64 word)
{
	state->d ^= word;
	sip_round(state);
	state->a ^= word;
}

/* SipHash-1-3 of the flow, with the host's secret as the key. */
VERIFIED_ONCE __u64 port_order_start(const struct flow_key *key, const struct owner *owner)
{
	__u32 only = 0;
	const struct meta *settings = bpf_map_lookup_elem(&meta, &only);
	struct sip_state state;
	__u64 secret;

	if (!key || !owner || !settings)
		return 0;
	secret = settings->port_seed;
	state = (struct sip_state){secret ^ 0x736f6d6570736575ULL, ~secret ^ 0x646f72616e646f6dULL,
				   secret ^ 0x6c7967656e657261ULL, ~secret ^ 0x7465646279746573ULL};
	sip_take(&state, address_halves(key->source)[0]);
	sip_take(&state, address_halves(key->source)[1]);
	sip_take(&state, address_halves(key->destination)[0]);
	sip_take(&state, address_halves(key->destination)[1]);
	sip_take(&state,
		 (__u64)key->source_port << 32 | (__u64)key->destination_port << 8 | key->protocol);
	sip_take(&state, (__u64)owner->generation << 32 | owner->slot);
	state.c ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&state);
	return state.a ^ state.b ^ state.c ^ state.d;
}

/* Every bit of the result depends on every bit of the word. */
static __always_inline __u64 port_scatter(__u64 word)
{
	word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9ULL;
	word = (word ^ word >> 27) * 0x94d049bb133111ebULL;
	return word ^ word >> 31;
}

/* False: there are no ports. */
VERIFIED_ONCE bool port_order_of(const struct flow_key *key, const struct owner *owner,
				 const struct port_set *set, struct port_order *order)
{
	if (!key || !owner || !set || !order)
		return false;
	order->start = port_order_start(key, owner);
	order->own = key->source_port;
	order->next = 0;
	order->number = PORTS_OF_ECHO;
	order->keeps_own = order->own != 0;
	if (packet_protocol_has_ports(key->protocol)) {
		order->number = port_set_size(set);
		order->keeps_own = port_set_has(set, order->own);
	}
	return order->number;
}

VERIFIED_ONCE __u16 port_at(const struct port_order *order, const struct port_set *set, __u32 place)
{
	__u32 nth;

	if (!order || !set || order->number == 0)
		return 0;
	nth = order->start + place;
	if (place == 0 && order->keeps_own)
		return order->own;
	if (place < PORT_PLACES_SCATTERED)
		nth = port_scatter(order->start + place * 0x9e3779b97f4a7c15ULL);
	if (order->number == PORTS_OF_ECHO)
		return nth % PORTS_OF_ECHO + 1;
	return port_set_nth(set, nth % order->number);
}

#endif

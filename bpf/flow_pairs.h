/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_pairs.h - who may have two entries in flows, for how long, and how many.
 *
 * flows evicts nothing, so somebody must take out the dead, and nothing sweeps.
 * Every flow that enters takes one of the pairs; a hand goes round over them, as
 * in the clock algorithm for pages, and the first that is free or whose flow is
 * dead is given to the newcomer. CLOCK_STEPS that live in a row: the table is
 * full, and the newcomer stays half-open. With 95 % of all pairs alive that
 * happens to one newcomer in 700. Only somebody's being refused, for want of room or
 * because his container has as many flows as it may have, sends the hand round by a
 * larger part, once a second: it may be the dead who fill the table, or the count.
 *
 * To be given away a pair is made PAIR_BUSY by compare-and-exchange. What its
 * flow does meanwhile can cost that flow one half at worst, which the other
 * half puts back.
 */
#ifndef BPF_PORTMAP_FLOW_PAIRS_H
#define BPF_PORTMAP_FLOW_PAIRS_H

#include "flow.h"

#define CLOCK_STEPS 128
/* The verifier walks through every turn of a loop: short ones, one inside the other and each
 * in a function of its own, are soon walked through. */
#define CLOCK_STEPS_A_ROUND 16
#define CLOCK_ROUNDS (CLOCK_STEPS / CLOCK_STEPS_A_ROUND)
#define CLOCK_SWEEP 32 /* to the power of three: 32,768 live pairs take about 0.4 ms */

/* How many entries flow_pairs has: the loader says so. The kernel could, but to find where it
 * keeps that libbpf reads the description of all its types, for some 15 ms. */
volatile __u32 pair_numbers SEC(".data") = FLOW_PAIRS(MIN_FLOWS);
/* The pair that was looked at last, less one. Two CPUs may write it at once: then some
 * pairs are looked at twice. */
volatile __u32 clock_hand SEC(".data") = 0;
volatile __u32 clock_swept SEC(".data") = 0; /* the second of the last sweep */

static __always_inline struct flow_pair *pair_of(__u32 number)
{
	return number ? bpf_map_lookup_elem(&flow_pairs, &number) : NULL;
}

/* Seconds that the flow may be idle before another one gets its pair. Connections that come and
 * go by the thousand would else fill the table with closed ones. */
static __always_inline __u32 pair_patience(const struct flow_key *key, const struct flow *flow)
{
	return flow->state == STATE_CLOSING ? CLOSED_SECONDS
					    : flow_timeout(key->protocol, flow->state);
}

/* Remembers how long it must live, so that the hand need not ask the big table again. */
static __always_inline bool pair_lives(__u32 number, struct flow_pair *pair)
{
	struct flow *flow;
	__u32 now;

	if (pair->owner.slot && !owner_live(&pair->owner))
		return false;
	now = flow_now();
	if ((__s32)(pair->alive_before - now) > 0)
		return true;
	flow = bpf_map_lookup_elem(&flows, &pair->key);
	if (!flow || flow->pair != number || !flow_lives(&pair->key, flow, now) ||
	    flow_is_over(flow, now))
		return false;
	pair->alive_before = flow->last_seen + pair_patience(&pair->key, flow);
	return true;
}

/* A flow that closes may be dead sooner than was promised. */
static __always_inline void pair_shorten(__u32 number)
{
	struct flow_pair *pair = pair_of(number);

	if (pair)
		pair->alive_before = 0;
}

/* The owner's slot, while it is that owner's. Of the host: slot 0. */
static __always_inline struct slot *pair_slot(const struct owner *owner)
{
	__u32 number = owner->slot;
	struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return slot && slot->generation == owner->generation ? slot : NULL;
}

static __always_inline void pair_delete_halves(__u32 number, const struct flow_pair *pair)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, &pair->key), *other;
	struct flow_key other_key;

	if (!flow || flow->pair != number)
		return;
	flow_other_key(&pair->key, flow, &other_key);
	other = bpf_map_lookup_elem(&flows, &other_key);
	if (other && other->pair == number)
		bpf_map_delete_elem(&flows, &other_key);
	bpf_map_delete_elem(&flows, &pair->key);
}

/* Makes a pair that is free, or whose flow is dead, PAIR_BUSY and empty. */
VERIFIED_ONCE bool pair_claim(__u32 number)
{
	struct flow_pair *pair = pair_of(number);
	struct slot *slot;
	__u32 state;

	if (!pair)
		return false;
	state = *(volatile __u32 *)&pair->state;
	if (state == PAIR_BUSY || (state == PAIR_TAKEN && pair_lives(number, pair)))
		return false;
	if (__sync_val_compare_and_swap(&pair->state, state, PAIR_BUSY) != state)
		return false;
	if (state == PAIR_FREE)
		return true;
	if (pair_lives(number, pair)) { /* it was another flow's that was dead */
		pair->state = PAIR_TAKEN;
		return false;
	}
	pair_delete_halves(number, pair);
	slot = pair_slot(&pair->owner);
	if (slot)
		__sync_fetch_and_add(&slot->flows, -1);
	return true;
}

VERIFIED_ONCE __u32 pair_claim_some(void)
{
	__u32 numbers = pair_numbers - 1, hand = clock_hand, number;

	for (__u32 i = 1; i <= CLOCK_STEPS_A_ROUND; i++) {
		number = 1 + (hand + i) % numbers;
		if (pair_claim(number)) {
			clock_hand = number - 1;
			return number;
		}
	}
	clock_hand = (hand + CLOCK_STEPS_A_ROUND) % numbers;
	return 0;
}

/* The number of a pair that is PAIR_BUSY and empty; 0: the table is full. */
static __always_inline __u32 pair_claim_any(void)
{
	__u32 number = 0;

	for (int i = 0; i < CLOCK_ROUNDS && !number; i++)
		number = pair_claim_some();
	return number;
}

VERIFIED_ONCE int pair_hold(__u32 number, const struct flow_key *key, const struct owner *owner)
{
	struct flow_pair *pair = pair_of(number);
	struct slot *slot;

	if (!pair || !key || !owner)
		return 0;
	slot = pair_slot(owner);
	__builtin_memcpy(&pair->key, key, sizeof(*key));
	pair->owner = *owner;
	pair->alive_before = 0;
	if (slot)
		__sync_fetch_and_add(&slot->flows, 1);
	__sync_lock_test_and_set(&pair->state, PAIR_TAKEN);
	return 0;
}

VERIFIED_ONCE int pair_free(__u32 number)
{
	struct flow_pair *pair = pair_of(number);

	if (pair)
		__sync_lock_test_and_set(&pair->state, PAIR_FREE);
	return 0;
}

/* Takes a dead entry, and the pair it belongs to, out of the way. False: there is a live one. */
static __always_inline bool pair_make_way(const struct flow_key *key)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, key);
	__u32 number;

	if (!flow)
		return true;
	if (flow_live(key, flow))
		return false;
	number = flow->pair;
	if (pair_claim(number))
		pair_free(number);
	bpf_map_delete_elem(&flows, key); /* if it was nobody's */
	return true;
}

/* Alive, and it is known without a look at its flow. */
static __always_inline bool pair_is_promised(const struct flow_pair *pair, __u32 now)
{
	return (__s32)(pair->alive_before - now) > 0 &&
	       (!pair->owner.slot || owner_live(&pair->owner));
}

/* Frees the pair if what it holds is dead. Returns its number then, else what was freed
 * before it. */
VERIFIED_ONCE __u32 pair_sweep_one(__u32 number, __u32 freed, __u32 now)
{
	struct flow_pair *pair = pair_of(number);

	if (!pair || pair->state != PAIR_TAKEN || pair_is_promised(pair, now) ||
	    !pair_claim(number))
		return freed;
	pair_free(number);
	return number;
}

/* Frees what is dead of the next CLOCK_SWEEP pairs. Returns the last that was, or what was
 * freed before. */
VERIFIED_ONCE __u32 pair_sweep_some(__u32 freed, __u32 now)
{
	__u32 numbers = pair_numbers - 1, hand = clock_hand;

	for (__u32 i = 1; i <= CLOCK_SWEEP; i++)
		freed = pair_sweep_one(1 + (hand + i) % numbers, freed, now);
	clock_hand = (hand + CLOCK_SWEEP) % numbers;
	return freed;
}

VERIFIED_ONCE __u32 pair_sweep_more(__u32 freed, __u32 now)
{
	for (int i = 0; i < CLOCK_SWEEP; i++)
		freed = pair_sweep_some(freed, now);
	return freed;
}

/* Somebody was refused. When he tries again the hand is where there is room. */
VERIFIED_ONCE int pair_sweep(void)
{
	__u32 numbers = pair_numbers - 1, now = flow_now(), room = 0;

	if (clock_swept == now)
		return 0;
	clock_swept = now;
	for (int i = 0; i < CLOCK_SWEEP; i++)
		room = pair_sweep_more(room, now);
	if (room)
		clock_hand = (room - 2 + numbers) % numbers;
	return 0;
}

/* Has the owner as many flows as it may have? Where its policy does not say: half of
 * all, so that nobody can take everything. The count may pass below zero for a moment. */
VERIFIED_ONCE bool pair_limit_reached(__u32 number, __u32 generation)
{
	struct owner owner = {.slot = number, .generation = generation};
	struct slot *slot = pair_slot(&owner);
	__u32 limit = pair_numbers / 2;
	struct policy *policy;

	if (!slot || (__s32)slot->flows <= 0)
		return false;
	policy = bpf_map_lookup_elem(&policies, &number);
	if (policy && owner_equal(&policy->owner, &owner) && policy->max_flows)
		limit = policy->max_flows;
	return slot->flows >= limit;
}

#endif

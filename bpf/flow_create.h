/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_create.h - how a flow begins: half-open, in flows_new. */
#ifndef BPF_PORTMAP_FLOW_CREATE_H
#define BPF_PORTMAP_FLOW_CREATE_H

#include "flow_pairs.h"

enum claim {
	CLAIM_OK,       /* ours now, or was ours already */
	CLAIM_ANSWERED, /* was ours already, in flows: only the other half is lost */
	CLAIM_TAKEN,    /* another live flow has this tuple */
	CLAIM_FULL,     /* the table refused */
	CLAIM_LIMITED,  /* its container has as many flows as it may have */
};

/* Takes a void entry out of flows_new. Of all CPUs that want it one wins: the
 * one that exchanges the owner. */
static __always_inline bool flow_reclaim(const struct flow_key *key, struct flow *flow)
{
	__u64 *owner = (__u64 *)&flow->owner;
	__u64 seen = *(volatile __u64 *)owner; /* before its owner is judged */

	if (flow_live(key, flow))
		return false;
	if (__sync_val_compare_and_swap(owner, seen, ~0ULL) != seen)
		return false;
	return bpf_map_delete_elem(&flows_new, key) == 0;
}

/* The insertion with NOEXIST is the allocation: there is no moment between a
 * check and a write. flows is looked at afterwards, for what was answered.
 * error is an int: before 6.4 a map's functions return one, and as the verifier has
 * calls of them made without the helper between, the upper half of a long is 0. */
static __noinline enum claim flow_claim(const struct flow_key *key, const struct flow *wanted)
{
	struct flow *other;
	int error = bpf_map_update_elem(&flows_new, key, wanted, BPF_NOEXIST);

	if (error == -EEXIST) {
		other = bpf_map_lookup_elem(&flows_new, key);
		if (!other)
			return CLAIM_TAKEN;
		if (flow_live(key, other))
			return flow_translates_alike(other, wanted) ? CLAIM_OK : CLAIM_TAKEN;
		if (!flow_reclaim(key, other))
			return CLAIM_TAKEN;
		error = bpf_map_update_elem(&flows_new, key, wanted, BPF_NOEXIST);
	}
	if (error)
		return error == -EEXIST ? CLAIM_TAKEN : CLAIM_FULL;
	other = flow_find_in(&flows, key);
	if (!other)
		return CLAIM_OK;
	bpf_map_delete_elem(&flows_new, key);
	return flow_translates_alike(other, wanted) ? CLAIM_ANSWERED : CLAIM_TAKEN;
}

/* Room for flows where none is left on the stack. Programs at tc are not interrupted by others
 * of this CPU, so whoever fills one has it to himself until he returns. */
enum scratch {
	SCRATCH_BEGUN, /* a flow to be */
	SCRATCH_HALF,  /* what is written of it: one half after the other */
	SCRATCHES,
};

static __always_inline struct flow *flow_scratch(__u32 which)
{
	struct flow *flow = bpf_map_lookup_elem(&scratch, &which);

	if (flow)
		__builtin_memset(flow, 0, sizeof(*flow));
	return flow;
}

/* Both halves stand or none. A race with another CPU for the same flow is lost
 * to whoever wrote this half first: *flow becomes what that one chose. */
static __always_inline int flow_insert_first(const struct flow_key *key, struct flow *flow)
{
	int error = bpf_map_update_elem(&flows_new, key, flow, BPF_NOEXIST);
	struct flow *faster;

	if (error != -EEXIST)
		return error;
	faster = flow_find_in(&flows_new, key);
	if (!faster)
		return bpf_map_update_elem(&flows_new, key, flow, BPF_ANY);
	if (flow_translates_alike(faster, flow))
		return 0;
	address_copy(flow->address, faster->address);
	flow->port = faster->port;
	flow->peer_port = faster->peer_port;
	return -EEXIST;
}

/* Who has as many flows as it may have keeps those, and gets no new one. */
static __always_inline enum claim flow_claim_within_limit(const struct flow_key *key,
							  const struct flow *flow)
{
	bool limited = flow->kind == FLOW_MAPPING || flow->kind == FLOW_MASQUERADE;
	struct flow *standing;

	if (!limited || !pair_limit_reached(flow->owner.slot, flow->owner.generation))
		return flow_claim(key, flow);
	standing = flow_find_in(&flows, key);
	return standing && flow_translates_alike(standing, flow) ? CLAIM_ANSWERED : CLAIM_LIMITED;
}

/*
 * Creates a flow, both halves. first_key and first are the half its first packet
 * takes. The other half goes first: its tuple is the one that another flow may
 * have, and nothing is translated before it stands.
 *
 * key and *flow are one half after the other: before 6.2 the verifier does not
 * let a map helper read what a global function was passed a pointer to, and
 * the stacks of all that call each other may not exceed 512 bytes.
 */
VERIFIED_ONCE enum claim flow_create(const struct flow_key *first_key, struct flow *first)
{
	struct flow *flow = flow_scratch(SCRATCH_HALF);
	struct flow_key key = {};
	enum claim claim;
	int error;

	if (!first_key || !first || !flow)
		return CLAIM_FULL;
	first->last_seen = flow_now();
	flow_other_half(first_key, first, &key, flow);
	claim = flow_claim_within_limit(&key, flow);
	__builtin_memcpy(&key, first_key, sizeof(key));
	__builtin_memcpy(flow, first, sizeof(*flow));
	if (claim > CLAIM_ANSWERED)
		return claim;
	flow->answered = claim == CLAIM_ANSWERED; /* its next packet takes it back to flows */
	error = flow_insert_first(&key, flow);
	if (!error)
		return CLAIM_OK;
	flow_other_key(first_key, first, &key);
	bpf_map_delete_elem(&flows_new, &key);
	__builtin_memcpy(first, flow, sizeof(*flow));
	return error == -EEXIST ? CLAIM_OK : CLAIM_FULL;
}

/* The verdict about a packet that begins a flow. */
static __always_inline enum verdict flow_begun(enum claim claim, const struct flow *flow,
					       struct translation *translation)
{
	switch (claim) {
	case CLAIM_OK:
		translation_of(flow, translation);
		return VERDICT_TRANSLATE;
	case CLAIM_TAKEN:
		return drop(no_tuple);
	case CLAIM_LIMITED:
		pair_sweep();
		return drop(flow_limit);
	default:
		return drop(table_full);
	}
}

#endif

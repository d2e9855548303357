/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_use.h - what a packet does to the flow that it belongs to: keeps it alive,
 * puts back a half that is lost, moves its state, and moves it to flows once it
 * is answered.
 *
 * Answered is a flow of which three packets were seen: one out, one back, and one
 * more out. One back is not enough: servers answer forged requests too, and who
 * asks once and gets one answer (DNS) needs no place in flows.
 */
#ifndef BPF_PORTMAP_FLOW_USE_H
#define BPF_PORTMAP_FLOW_USE_H

#include "flow_create.h"
#include "flow_tcp.h"

/* Written to flows before it is deleted from flows_new: an entry is always in one. */
static __always_inline bool flow_move_half(const struct flow_key *key, const struct flow *flow)
{
	if (!pair_make_way(key) || bpf_map_update_elem(&flows, key, flow, BPF_NOEXIST))
		return false;
	bpf_map_delete_elem(&flows_new, key);
	return true;
}

static __always_inline enum claim flow_claim_pair(const struct owner *owner, __u32 *pair)
{
	if (pair_limit_reached(owner->slot, owner->generation))
		return CLAIM_LIMITED;
	*pair = pair_claim_any();
	return *pair ? CLAIM_OK : CLAIM_FULL;
}

/* What each half has seen for itself */
static __always_inline void flow_copy_seen(struct flow *to, const struct flow *from)
{
	to->left_stack = from->left_stack;
	to->out_ifindex = from->out_ifindex;
	to->in_ifindex = from->in_ifindex;
	to->sequence_end = from->sequence_end;
	to->acknowledged = from->acknowledged;
	to->sequence_known = from->sequence_known;
	to->acknowledged_known = from->acknowledged_known;
	to->fin = from->fin;
}

/* The half that stands in flows_new at key, if it is the other one of what stands at other_key. */
static __always_inline struct flow *flow_half_open(const struct flow_key *key,
						   const struct flow_key *other_key)
{
	struct flow *half = bpf_map_lookup_elem(&flows_new, key);

	return half && flow_is_other_half(other_key, half) ? half : NULL;
}

/* Both halves into flows, or none: the one at other_key, which `flow` is, first. Who loses
 * the race for that one has nothing left to do. */
static __always_inline bool flow_move_pair(const struct flow_key *key,
					   const struct flow_key *other_key, struct flow *flow)
{
	struct flow *half = flow_half_open(key, other_key), *other;

	if (!half)
		return false;
	other = flow_half_open(other_key, key);
	if (!other && flow_find_in(&flows_new, other_key))
		return false;
	if (other)
		flow_copy_seen(flow, other);
	flow->state = tcp_state_of(half, flow);
	if (!flow_move_half(other_key, flow))
		return false;
	flow_turn_round(other_key, flow);
	flow_copy_seen(flow, half);
	if (flow_move_half(key, flow))
		return true;
	bpf_map_delete_elem(&flows, other_key);
	return false;
}

/* The other half is in flows already: this one joins it. */
static __always_inline void flow_join(const struct flow_key *key, const struct flow_key *other_key,
				      struct flow *flow, const struct flow *joined)
{
	if (!flow_is_other_half(key, joined))
		return;
	flow->pair = joined->pair;
	flow->state = joined->state;
	flow_turn_round(other_key, flow);
	flow_move_half(key, flow);
}

/*
 * Answered: out of the flood's reach. The entry may have been recycled by another CPU
 * since it was found, and the other half's tuple be another flow's by now: only what
 * still stands as it was copied is moved. One half after the other in one place.
 */
VERIFIED_ONCE enum claim flow_promote(const struct flow_key *answered_key,
				      const struct flow *answered)
{
	struct flow *flow = flow_scratch(SCRATCH_HALF), *joined;
	struct flow_key key, other_key = {};
	enum claim claim;
	__u32 pair = 0;

	if (!answered_key || !answered || !flow)
		return CLAIM_OK;
	__builtin_memcpy(&key, answered_key, sizeof(key));
	flow_other_half(&key, answered, &other_key, flow);
	flow->answered = 1;
	joined = flow_find_in(&flows, &other_key);
	if (joined) {
		flow_join(&key, &other_key, flow, joined);
		return CLAIM_OK;
	}
	claim = flow_claim_pair(&flow->owner, &pair);
	if (claim != CLAIM_OK)
		return claim;
	flow->pair = pair;
	if (!flow_move_pair(&key, &other_key, flow)) {
		pair_free(pair);
		return CLAIM_OK;
	}
	pair_hold(pair, &key, &flow->owner);
	count(flow_promoted);
	return CLAIM_OK;
}

enum other_half {
	OTHER_HALF_NEW,
	OTHER_HALF_ANSWERED, /* in flows: where this half belongs too */
	OTHER_HALF_LOST,     /* another flow has its tuple by now, or its container has gone */
};

/* Puts back the lost half, unless its tuple was given away meanwhile. */
static __always_inline enum other_half flow_repair(const struct flow_key *other_key,
						   struct flow *other)
{
	enum claim claim;

	claim = flow_claim(other_key, other);
	if (claim == CLAIM_TAKEN)
		return OTHER_HALF_LOST;
	if (claim == CLAIM_OK && other->state != STATE_NEW)
		flow_move_half(other_key, other);
	count(flow_repaired);
	return OTHER_HALF_NEW;
}

/* A half whose other one is lost ends on the spot: what it sends would come back to
 * somebody else. */
static __always_inline void flow_end(const struct flow_key *key, struct flow *flow, __u32 now)
{
	flow->last_seen = now - TIMEOUT_TCP_ESTABLISHED - 1;
	if (flow->state == STATE_NEW)
		return;
	pair_shorten(flow->pair);
	bpf_map_delete_elem(&flows, key);
}

/* Both halves, wherever they are. */
VERIFIED_ONCE int flow_forget(const struct flow_key *forgotten, const struct flow *flow)
{
	struct flow_key key;

	if (!forgotten || !flow)
		return 0;
	pair_shorten(flow->pair);
	flow_other_key(forgotten, flow, &key);
	bpf_map_delete_elem(&flows, &key);
	bpf_map_delete_elem(&flows_new, &key);
	__builtin_memcpy(&key, forgotten, sizeof(key));
	bpf_map_delete_elem(&flows, &key);
	bpf_map_delete_elem(&flows_new, &key);
	return 0;
}

/* Once a second: the other half must not grow old while packets go one way only,
 * and is put back if it is lost. The flow ends if its container has gone. */
VERIFIED_ONCE int flow_refresh(const struct flow_key *used_key, struct flow *flow, __u32 now)
{
	struct flow_key key = {};
	struct flow other = {}, *found;
	enum other_half half;

	if (!used_key || !flow)
		return OTHER_HALF_NEW;
	if (flow_has_owner(flow) && !owner_has_veth(flow->owner.slot)) {
		flow_forget(used_key, flow);
		return OTHER_HALF_LOST;
	}
	flow->last_seen = now;
	flow_other_half(used_key, flow, &key, &other);
	found = flow_find_in(&flows, &key);
	half = found ? OTHER_HALF_ANSWERED : OTHER_HALF_NEW;
	if (!found)
		found = flow_find_in(&flows_new, &key);
	if (!found) {
		half = flow_repair(&key, &other);
	} else if (flow_translates_alike(found, &other)) {
		found->last_seen = now;
		found->answered |= flow->answered;
	} else {
		half = OTHER_HALF_LOST;
	}
	if (half == OTHER_HALF_LOST) {
		__builtin_memcpy(&key, used_key, sizeof(key));
		flow_end(&key, flow, now);
	}
	return half;
}

/* The first packet back: the half that the next packet out takes is told. */
VERIFIED_ONCE int flow_answer(const struct flow_key *key, struct flow *flow)
{
	struct flow_key other_key;
	struct flow *other;

	if (!key || !flow)
		return 0;
	flow->answered = 1;
	flow_other_key(key, flow, &other_key);
	other = bpf_map_lookup_elem(&flows_new, &other_key);
	if (other && flow_is_other_half(key, other))
		other->answered = 1;
	return 0;
}

/* A forged request is answered too, but who forged it does not know the number that the answer
 * began with, and is not to have an established flow for two hours. Where nothing is known of
 * that (it was begun in mid-connection), anything will do. */
VERIFIED_ONCE bool flow_acknowledges(const struct flow_key *key, const struct flow *flow,
				     const struct packet *packet)
{
	struct flow_key other_key;
	struct flow *other;

	if (!key || !flow || !packet || (packet->tcp_flags & (TCP_SYN | TCP_RST)))
		return true;
	flow_other_key(key, flow, &other_key);
	other = bpf_map_lookup_elem(&flows_new, &other_key);
	if (!other || !flow_is_other_half(key, other) || !other->sequence_known)
		return true;
	return (packet->tcp_flags & TCP_ACK) &&
	       other->sequence_end - packet->tcp_acknowledgment <= SEQUENCE_BEHIND;
}

/* A packet of a half-open flow. Where the flow is answered and cannot be taken into
 * flows, the packet is dropped; not what is left untranslated anyway. */
VERIFIED_ONCE enum verdict flow_use_new(const struct flow_key *key, struct flow *flow,
					const struct packet *packet, enum other_half half)
{
	bool untranslated;
	enum claim claim;

	if (!key || !flow || !packet)
		return VERDICT_PASS;
	untranslated = !flow_has_owner(flow) || flow->kind == FLOW_DIRECT;
	if (key->protocol == PROTOCOL_TCP) {
		if (flow->answered && !flow->reply && half != OTHER_HALF_ANSWERED &&
		    !flow_acknowledges(key, flow, packet))
			return VERDICT_TRANSLATE;
		tcp_track_new(flow, packet);
	}
	if (flow->reply && !flow->answered && !(packet->tcp_flags & TCP_RST))
		flow_answer(key, flow);
	if (half != OTHER_HALF_ANSWERED &&
	    (flow->reply || !flow->answered || (packet->tcp_flags & (TCP_SYN | TCP_RST))))
		return VERDICT_TRANSLATE;
	claim = flow_promote(key, flow);
	if (claim == CLAIM_OK)
		return VERDICT_TRANSLATE;
	pair_sweep();
	if (untranslated)
		return VERDICT_TRANSLATE;
	return claim == CLAIM_LIMITED ? drop(flow_limit) : drop(table_full);
}

/* A packet takes this half: keeps it alive, and moves its state. VERDICT_PASS: the flow
 * has lost its tuple and is no more. flow lies in a map and may move away from under us;
 * nothing is read from it afterwards. */
static __always_inline enum verdict flow_use(const struct flow_key *key, struct flow *flow,
					     const struct packet *packet, __u32 length, __u32 now)
{
	enum other_half half = OTHER_HALF_NEW;

	if (flow->last_seen != now)
		half = flow_refresh(key, flow, now);
	if (half == OTHER_HALF_LOST)
		return VERDICT_PASS;
	if (flow->state == STATE_NEW)
		return flow_use_new(key, flow, packet, half);
	flow->packets++;
	flow->bytes += length;
	if (key->protocol == PROTOCOL_TCP) {
		if (tcp_changes_state(key, flow, packet))
			tcp_follow(key, flow, packet);
		tcp_track(flow, packet);
	}
	return VERDICT_TRANSLATE;
}

#endif

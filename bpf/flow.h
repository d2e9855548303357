/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.h - the two tables of flows: finding, creating, keeping and expiring.
 *
 * A flow is two entries, one for each direction, at the two sides of the IP
 * stack where its packets are seen. Either entry tells what the other one must
 * be (flow_other_half), so a lost one can be put back with the same ports.
 *
 * A new flow lives in flows_new until it is answered and moves to flows then,
 * written there before it is deleted here: an entry is always in at least one.
 *
 * Nothing sweeps. An entry is void when its owner is (the generation has gone,
 * in O(1), at DEL) or when it is past its time-out; a void entry counts as
 * free to whoever collides with it, and the LRU takes the rest.
 */
#ifndef BPF_PORTMAP_FLOW_H
#define BPF_PORTMAP_FLOW_H

#include "packet.h"
#include "verdict.h"

#define NSEC_PER_SEC 1000000000ULL
#define EEXIST 17

/* Seconds a flow may be idle. */
#define TIMEOUT_TCP_ESTABLISHED 7440 /* RFC 5382 REQ-5: at least 2 h 4 min */
#define TIMEOUT_TCP_TRANSITORY 240   /* RFC 5382 REQ-5: at least 4 min */
#define TIMEOUT_UDP_NEW 120          /* RFC 4787 REQ-5: at least 2 min */
#define TIMEOUT_UDP 300              /* RFC 4787 REQ-5: 5 min or more is recommended */
/* Association setup retransmits at most 60 s apart (RFC 9260 16, RTO.Max); heartbeats of an idle
 * one come every 30 s and a retransmission timeout (8.3): two may be lost. netfilter: 210 s. */
#define TIMEOUT_SCTP_NEW 120
#define TIMEOUT_SCTP 300
#define TIMEOUT_ICMP 60 /* RFC 5508 REQ-1: at least 60 s */

/* What to put in place of what the tuple has; see struct flow. */
struct translation {
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	__u32 out_ifindex; /* to leave by this interface instead; 0: no */
} __attribute__((aligned(8)));

static __always_inline void translation_of(const struct flow *flow, struct translation *translation)
{
	address_copy(translation->address, flow->address);
	translation->port = flow->port;
	translation->peer_port = flow->peer_port;
	translation->out_ifindex = 0;
}

/* Has it anything to change? */
static __always_inline bool translation_changes(const struct translation *translation,
						const struct flow_key *tuple)
{
	if (tuple->direction == DIRECTION_IN)
		return translation->port != tuple->destination_port ||
		       translation->peer_port != tuple->source_port ||
		       !address_equal(translation->address, tuple->destination);
	return translation->port != tuple->source_port ||
	       translation->peer_port != tuple->destination_port ||
	       !address_equal(translation->address, tuple->source);
}

enum claim {
	CLAIM_OK,       /* ours now, or was ours already */
	CLAIM_ANSWERED, /* was ours already, in flows: only the other half is lost */
	CLAIM_TAKEN,    /* another live flow has this tuple */
	CLAIM_FULL,     /* the table refused */
};

static __always_inline __u32 flow_now(void)
{
	return bpf_ktime_get_coarse_ns() / NSEC_PER_SEC;
}

static __always_inline bool owner_live(const struct owner *owner)
{
	__u32 number = owner->slot;
	struct slot *slot = bpf_map_lookup_elem(&slots, &number);

	return slot && slot->live && slot->generation == owner->generation;
}

static __always_inline bool owner_equal(const struct owner *a, const struct owner *b)
{
	return a->slot == b->slot && a->generation == b->generation;
}

static __always_inline __u32 flow_timeout(enum protocol protocol, enum flow_state state)
{
	if (protocol == PROTOCOL_TCP)
		return state == STATE_ESTABLISHED || state == STATE_FIN ? TIMEOUT_TCP_ESTABLISHED
									: TIMEOUT_TCP_TRANSITORY;
	if (protocol == PROTOCOL_UDP)
		return state == STATE_NEW ? TIMEOUT_UDP_NEW : TIMEOUT_UDP;
	if (protocol == PROTOCOL_SCTP)
		return state == STATE_NEW ? TIMEOUT_SCTP_NEW : TIMEOUT_SCTP;
	return TIMEOUT_ICMP;
}

static __always_inline bool flow_live(const struct flow_key *key, const struct flow *flow)
{
	__u32 idle = flow_now() - flow->last_seen;

	/* Another CPU's clock may be a tick ahead: a negative idle time is none. */
	if ((__s32)idle > 0 && idle > flow_timeout(key->protocol, flow->state))
		return false;
	return flow->kind == FLOW_HOST || owner_live(&flow->owner);
}

/* NULL: no live flow has this tuple. */
static __always_inline struct flow *flow_find_in(void *table, const struct flow_key *key)
{
	struct flow *flow = bpf_map_lookup_elem(table, key);

	return flow && flow_live(key, flow) ? flow : NULL;
}

static __always_inline struct flow *flow_find(const struct flow_key *key)
{
	struct flow *flow = flow_find_in(&flows, key);

	return flow ?: flow_find_in(&flows_new, key);
}

static __always_inline void flow_other_key(const struct flow_key *key, const struct flow *flow,
					   struct flow_key *other)
{
	__builtin_memset(other, 0, sizeof(*other));
	other->protocol = key->protocol;
	if (key->direction == DIRECTION_IN) {
		other->direction = DIRECTION_OUT;
		address_copy(other->source, flow->address);
		other->source_port = flow->port;
		address_copy(other->destination, key->source);
		other->destination_port = flow->peer_port;
	} else {
		other->direction = DIRECTION_IN;
		address_copy(other->source, key->destination);
		other->source_port = flow->peer_port;
		address_copy(other->destination, flow->address);
		other->destination_port = flow->port;
	}
}

/* The tuple of a packet back, untranslated, where it leaves the stack. */
static __always_inline void flow_way_back(const struct flow_key *key, struct flow_key *back)
{
	__builtin_memset(back, 0, sizeof(*back));
	address_copy(back->source, key->destination);
	address_copy(back->destination, key->source);
	back->source_port = key->destination_port;
	back->destination_port = key->source_port;
	back->protocol = key->protocol;
	back->direction = DIRECTION_OUT;
}

/* The entry that translates packets the other way at the other side. */
static __always_inline void flow_other_half(const struct flow_key *key, const struct flow *flow,
					    struct flow_key *other_key, struct flow *other)
{
	flow_other_key(key, flow, other_key);
	__builtin_memset(other, 0, sizeof(*other));
	other->owner = flow->owner;
	other->kind = flow->kind;
	other->state = flow->state;
	other->reply = !flow->reply;
	other->last_seen = flow->last_seen;
	if (key->direction == DIRECTION_IN) {
		address_copy(other->address, key->destination);
		other->port = key->destination_port;
		other->peer_port = key->source_port;
	} else {
		address_copy(other->address, key->source);
		other->port = key->source_port;
		other->peer_port = key->destination_port;
	}
}

static __always_inline bool flow_translates_alike(const struct flow *a, const struct flow *b)
{
	return address_equal(a->address, b->address) && a->port == b->port &&
	       a->peer_port == b->peer_port;
}

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
 * check and a write. flows is looked at afterwards, for what was answered. */
static __noinline enum claim flow_claim(const struct flow_key *key, const struct flow *wanted)
{
	struct flow *other;
	long error = bpf_map_update_elem(&flows_new, key, wanted, BPF_NOEXIST);

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

/* Both halves stand or none. A race with another CPU for the same flow is lost
 * to whoever wrote this half first: *flow becomes what that one chose. */
static __always_inline long flow_insert_first(const struct flow_key *key, struct flow *flow)
{
	long error = bpf_map_update_elem(&flows_new, key, flow, BPF_NOEXIST);
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

/* Puts back a half that the LRU took from an answered flow. */
static __always_inline enum claim flow_restore(const struct flow_key *key, struct flow *flow)
{
	flow->state = STATE_ESTABLISHED;
	if (bpf_map_update_elem(&flows, key, flow, BPF_ANY))
		return CLAIM_FULL;
	count(flow_repaired);
	return CLAIM_OK;
}

/*
 * Creates a flow, both halves. first_key and first are the half its first packet
 * takes. The other half goes first: its tuple is the one that another flow may
 * have, and nothing is translated before it stands.
 *
 * key and flow are one half after the other: before 6.2 the verifier does not
 * let a map helper read what a global function was passed a pointer to, and
 * the stacks of all that call each other may not exceed 512 bytes.
 */
VERIFIED_ONCE enum claim flow_create(const struct flow_key *first_key, struct flow *first)
{
	struct flow_key key;
	struct flow flow;
	enum claim claim;
	long error;

	if (!first_key || !first)
		return CLAIM_FULL;
	first->last_seen = flow_now();
	first->seen = 1;
	flow_other_half(first_key, first, &key, &flow);
	claim = flow_claim(&key, &flow);
	__builtin_memcpy(&key, first_key, sizeof(key));
	__builtin_memcpy(&flow, first, sizeof(flow));
	if (claim == CLAIM_ANSWERED)
		return flow_restore(&key, &flow);
	if (claim != CLAIM_OK)
		return claim;
	error = flow_insert_first(&key, &flow);
	if (!error)
		return CLAIM_OK;
	flow_other_key(first_key, first, &key);
	bpf_map_delete_elem(&flows_new, &key);
	__builtin_memcpy(first, &flow, sizeof(flow));
	return error == -EEXIST ? CLAIM_OK : CLAIM_FULL;
}

static __always_inline void flow_move_half(const struct flow_key *key, const struct flow *flow)
{
	if (bpf_map_update_elem(&flows, key, flow, BPF_ANY) == 0)
		bpf_map_delete_elem(&flows_new, key);
}

/* Answered: out of the flood's reach. The entry may have been recycled by another
 * CPU since it was found, and the other half's tuple be another flow's by now:
 * only what still stands as it was copied is moved. */
VERIFIED_ONCE int flow_promote(const struct flow_key *answered_key, const struct flow *answered)
{
	struct flow_key key, other_key;
	struct flow flow, other, *standing;

	if (!answered_key || !answered)
		return 0;
	__builtin_memcpy(&key, answered_key, sizeof(key));
	__builtin_memcpy(&flow, answered, sizeof(flow));
	standing = bpf_map_lookup_elem(&flows_new, &key);
	if (!standing || !flow_translates_alike(standing, &flow))
		return 0;
	flow.state = STATE_ESTABLISHED;
	flow_other_half(&key, &flow, &other_key, &other);
	standing = flow_find(&other_key);
	if (standing && !flow_translates_alike(standing, &other))
		return 0;
	other.seen = 1;
	flow_move_half(&other_key, &other);
	flow_move_half(&key, &flow);
	count(flow_promoted);
	return 0;
}

/* TCP: a SYN-ACK answers a SYN, but a flood of forged SYNs gets those too: only
 * the third packet shows that somebody is there. Else any packet back will do. */
static __always_inline bool flow_is_answered(const struct flow_key *key, const struct flow *flow,
					     const struct packet *packet)
{
	struct flow_key other_key;
	struct flow *other;

	if (key->protocol != PROTOCOL_TCP)
		return flow->reply;
	if (flow->reply || (packet->tcp_flags & (TCP_SYN | TCP_RST)))
		return false;
	flow_other_key(key, flow, &other_key);
	other = bpf_map_lookup_elem(&flows_new, &other_key);
	return other && other->seen;
}

enum other_half {
	OTHER_HALF_NEW,
	OTHER_HALF_ANSWERED, /* in flows: where this half belongs too */
	OTHER_HALF_LOST,     /* another flow has its tuple by now */
};

/* Puts back the half that the LRU took, unless its tuple was given away meanwhile. */
static __always_inline enum other_half flow_repair(const struct flow_key *other_key,
						   struct flow *other)
{
	enum claim claim;

	other->seen = other->state != STATE_NEW;
	claim = flow_claim(other_key, other);
	if (claim == CLAIM_TAKEN)
		return OTHER_HALF_LOST;
	if (claim == CLAIM_OK && other->state != STATE_NEW)
		flow_move_half(other_key, other);
	count(flow_repaired);
	return OTHER_HALF_NEW;
}

/* Once a second: the other half must not grow old while packets go one way only,
 * and is put back if the LRU took it. A half whose other one is lost expires on
 * the spot: what it sends would come back to somebody else. */
VERIFIED_ONCE int flow_refresh(const struct flow_key *key, struct flow *flow, __u32 now)
{
	struct flow_key other_key;
	struct flow other, *found;
	enum other_half half;

	if (!key || !flow)
		return OTHER_HALF_NEW;
	flow->last_seen = now;
	flow_other_half(key, flow, &other_key, &other);
	found = flow_find_in(&flows, &other_key);
	half = found ? OTHER_HALF_ANSWERED : OTHER_HALF_NEW;
	if (!found)
		found = flow_find_in(&flows_new, &other_key);
	if (!found)
		half = flow_repair(&other_key, &other);
	else if (flow_translates_alike(found, &other))
		found->last_seen = now;
	else
		half = OTHER_HALF_LOST;
	if (half == OTHER_HALF_LOST)
		flow->last_seen = now - TIMEOUT_TCP_ESTABLISHED - 1;
	return half;
}

/* TCP: both halves learn of FIN, RST and a SYN that opens the tuple again, so
 * that either knows when it has expired. */
VERIFIED_ONCE int flow_follow_tcp(const struct flow_key *key, struct flow *flow, __u8 flags)
{
	struct flow_key other_key;
	struct flow *other;

	if (!key || !flow)
		return 0;
	flow_other_key(key, flow, &other_key);
	other = flow_find_in(&flows, &other_key);
	if (!other)
		return 0;
	if (flags & TCP_SYN) {
		flow->fin = 0;
		other->fin = 0;
		flow->state = STATE_ESTABLISHED;
	} else {
		if (flags & TCP_FIN)
			flow->fin = 1;
		flow->state = (flags & TCP_RST) || other->fin ? STATE_CLOSING : STATE_FIN;
	}
	other->state = flow->state;
	return 0;
}

static __always_inline bool flow_changes_state(const struct flow *flow, const struct packet *packet)
{
	if (packet->tcp_flags & (TCP_FIN | TCP_RST))
		return flow->state != STATE_CLOSING;
	return packet_begins_tcp(packet) && flow->state != STATE_ESTABLISHED;
}

/* A packet takes this half: keeps it alive, and moves its state. False: the flow has
 * lost its tuple and is no more. flow lies in a map and may move away from under
 * us; nothing is read from it afterwards. */
static __always_inline bool flow_use(const struct flow_key *key, struct flow *flow,
				     const struct packet *packet, __u32 length)
{
	enum other_half half = OTHER_HALF_NEW;
	__u32 now = flow_now();

	if (flow->last_seen != now)
		half = flow_refresh(key, flow, now);
	if (half == OTHER_HALF_LOST)
		return false;
	if (flow->state == STATE_NEW) {
		if (!flow->seen)
			flow->seen = 1;
		if (half == OTHER_HALF_ANSWERED || flow_is_answered(key, flow, packet))
			flow_promote(key, flow);
		return true;
	}
	flow->packets++;
	flow->bytes += length;
	if (flow_changes_state(flow, packet))
		flow_follow_tcp(key, flow, packet->tcp_flags);
	return true;
}

/* Both halves, wherever they are. */
VERIFIED_ONCE int flow_forget(const struct flow_key *forgotten, const struct flow *flow)
{
	struct flow_key key;

	if (!forgotten || !flow)
		return 0;
	flow_other_key(forgotten, flow, &key);
	bpf_map_delete_elem(&flows, &key);
	bpf_map_delete_elem(&flows_new, &key);
	__builtin_memcpy(&key, forgotten, sizeof(key));
	bpf_map_delete_elem(&flows, &key);
	bpf_map_delete_elem(&flows_new, &key);
	return 0;
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
	default:
		return drop(table_full);
	}
}

#endif

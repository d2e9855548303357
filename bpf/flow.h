/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow.h - the two tables of flows: what an entry says, and finding it.
 *
 * A flow is two entries, one for each direction, at the two sides of the IP
 * stack where its packets are seen. Either entry tells what the other one must
 * be (flow_other_half), so a lost one can be put back with the same ports.
 *
 * A new flow lives in flows_new until it is answered, and moves to flows then
 * (flow_use.h). flows_new forgets what was used longest ago; flows forgets
 * nothing that is alive (flow_pairs.h).
 *
 * Nothing sweeps. An entry is void when its owner is (the generation has gone,
 * in O(1), at DEL) or when it is past its time-out; a void entry counts as
 * free to whoever collides with it.
 */
#ifndef BPF_PORTMAP_FLOW_H
#define BPF_PORTMAP_FLOW_H

#include "owner.h"
#include "packet.h"
#include "verdict.h"

#define NSEC_PER_SEC 1000000000ULL
#define EEXIST 17

/* Seconds a flow may be idle. */
#define TIMEOUT_TCP_ESTABLISHED 7440 /* RFC 5382 REQ-5: at least 2 h 4 min */
#define TIMEOUT_TCP_TRANSITORY 240   /* RFC 5382 REQ-5: at least 4 min */
#define CLOSED_SECONDS 10            /* netfilter's time-out after RST */
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
	__u32 out_ifindex;   /* to leave by this interface instead; 0: no. On a path: its end */
	enum flow_path path; /* PATH_CONTAINER, PATH_OUT: past the IP stack */
	__u8 report;         /* 1: to be told of where the packet leaves the stack */
	__u8 frame_destination[6]; /* on a path: MACs, as a frame begins; zero: not known */
	__u8 frame_source[6];
	__u8 reserved[2];
} __attribute__((aligned(8)));

static __always_inline void translation_of(const struct flow *flow, struct translation *translation)
{
	address_copy(translation->address, flow->address);
	translation->port = flow->port;
	translation->peer_port = flow->peer_port;
	translation->out_ifindex = 0;
	translation->path = PATH_UNDECIDED;
	translation->report = 0;
	__builtin_memset(translation->frame_destination, 0, ETH_ALEN);
}

/* Is the neighbour's MAC known? */
static __always_inline bool translation_has_frame(const struct translation *translation)
{
	const __u8 *mac = translation->frame_destination;

	return mac[0] | mac[1] | mac[2] | mac[3] | mac[4] | mac[5];
}

static __always_inline bool translation_changes_ports(const struct translation *translation,
						      const struct flow_key *tuple)
{
	if (tuple->direction == DIRECTION_IN)
		return translation->port != tuple->destination_port ||
		       translation->peer_port != tuple->source_port;
	return translation->port != tuple->source_port ||
	       translation->peer_port != tuple->destination_port;
}

/* Has it anything to change? */
static __always_inline bool translation_changes(const struct translation *translation,
						const struct flow_key *tuple)
{
	const __u8 *old = tuple->direction == DIRECTION_IN ? tuple->destination : tuple->source;

	return translation_changes_ports(translation, tuple) ||
	       !address_equal(translation->address, old);
}

static __always_inline __u32 flow_now(void)
{
	return bpf_ktime_get_coarse_ns() / NSEC_PER_SEC;
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

/* Closed, and late segments are not to be expected any more, though it is remembered for some
 * minutes where nobody wants its place. */
static __always_inline bool flow_is_over(const struct flow *flow, __u32 now)
{
	return flow->state == STATE_CLOSING && (__s32)(now - flow->last_seen) > CLOSED_SECONDS;
}

/* The host's own flows and those of others' NAT belong to no container. */
static __always_inline bool flow_has_owner(const struct flow *flow)
{
	return flow->kind != FLOW_HOST && flow->kind != FLOW_FOREIGN;
}

/* The same as flow_live(), for where every packet comes by, or no stack is left for a call. */
static __always_inline bool flow_lives(const struct flow_key *key, const struct flow *flow,
				       __u32 now)
{
	__u32 idle = now - flow->last_seen;

	/* Another CPU's clock may be a tick ahead: a negative idle time is none. */
	if ((__s32)idle > 0 && idle > flow_timeout(key->protocol, flow->state))
		return false;
	return !flow_has_owner(flow) || owner_live(&flow->owner);
}

VERIFIED_ONCE bool flow_live(const struct flow_key *key, const struct flow *flow)
{
	return key && flow && flow_lives(key, flow, flow_now());
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

/* The same, for the tuple of every packet. Where there is one, it is *now. */
static __always_inline struct flow *flow_of(const struct flow_key *tuple, __u32 *now)
{
	struct flow *flow = bpf_map_lookup_elem(&flows, tuple);

	if (flow) {
		*now = flow_now();
		if (flow_lives(tuple, flow, *now))
			return flow;
	}
	flow = bpf_map_lookup_elem(&flows_new, tuple);
	if (!flow)
		return NULL;
	*now = flow_now();
	return flow_lives(tuple, flow, *now) ? flow : NULL;
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

/* The flow that an answer to this packet would leave the stack by; NULL: none. */
static __always_inline struct flow *flow_find_back(const struct flow_key *key)
{
	struct flow_key back;

	flow_way_back(key, &back);
	return flow_find(&back);
}

/* What stands at key becomes what must stand at the other key. */
static __always_inline void flow_turn_round(const struct flow_key *key, struct flow *flow)
{
	if (key->direction == DIRECTION_IN) {
		address_copy(flow->address, key->destination);
		flow->port = key->destination_port;
		flow->peer_port = key->source_port;
	} else {
		address_copy(flow->address, key->source);
		flow->port = key->source_port;
		flow->peer_port = key->destination_port;
	}
	flow->reply = !flow->reply;
}

/* The entry that translates packets the other way at the other side, where all is zero yet. */
VERIFIED_ONCE int flow_other_half(const struct flow_key *key, const struct flow *flow,
				  struct flow_key *other_key, struct flow *other)
{
	if (!key || !flow || !other_key || !other)
		return 0;
	flow_other_key(key, flow, other_key);
	other->owner = flow->owner;
	other->kind = flow->kind;
	other->state = flow->state;
	other->reply = flow->reply;
	other->answered = flow->answered;
	other->last_seen = flow->last_seen;
	other->pair = flow->pair;
	flow_turn_round(key, other);
	return 0;
}

static __always_inline bool flow_translates_alike(const struct flow *a, const struct flow *b)
{
	return address_equal(a->address, b->address) && a->port == b->port &&
	       a->peer_port == b->peer_port;
}

/* Is `other`, found where the other half must be, that half? */
static __always_inline bool flow_is_other_half(const struct flow_key *key, const struct flow *other)
{
	if (key->direction == DIRECTION_IN)
		return address_equal(other->address, key->destination) &&
		       other->port == key->destination_port && other->peer_port == key->source_port;
	return address_equal(other->address, key->source) && other->port == key->source_port &&
	       other->peer_port == key->destination_port;
}

#endif

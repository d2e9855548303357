/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memo.h - memos: what was decided about a packet of UDP or TCP, reused for the next packets of its
 * connection.
 *
 * With many connections, the lookup in the table dominates: neither the record nor the hash bucket
 * is in a CPU cache. So what is done to packets is stored once for all connections that are treated
 * alike (struct treatment), and a connection's memo is small: the peer, the ports, the treatment.
 *
 * A treatment is valid in a second in which a packet has confirmed it, by going the long way: its
 * record was read, its path renewed, and the result was the same. So it would be for all
 * connections that have the treatment: they have its owner, addresses and next hop, whose MAC was
 * seen, and no route of the host has changed since their own were asked for. So their memos last
 * until each one's turn in the IP stack and, where the stack lets that packet through, until the
 * next one. Where one connection cannot speak for others (ports decide about routes, the packet's
 * path was not renewed for it), the treatment ends with the second. What must take effect at once
 * is checked each time: the owner, the interface, and drop-offload.
 *
 * While a connection's packets use a memo, its record's last_seen lags by the seconds between two
 * turns, of TCP and in the stack by up to STACK_SECONDS, which are few beside the minutes that the
 * record lives.
 *
 * Packets of connections that stay in the IP stack have memos, too: the firewall decides about each
 * packet. Those of assured ones last as they do on a path, until a second of each connection's own
 * in STACK_SECONDS, outwards as long as the host's routes, and so its addresses, are those that
 * gave the new source; others for a second. One that was made behind the stack spares
 * from_container the lookup, too.
 *
 * TCP has memos only past the stack, for plain segments. Their sequence numbers are followed in the
 * connection's place in `assured`, as those of packets without a memo are: whether a RST or FIN
 * counts is judged by the numbers of all packets. So a memo names the place, which has the peer.
 * What opens or closes something, or is not what its receiver expects, goes the long way. So do all
 * packets of a connection that has not carried data yet, is closing, or closed: each may change the
 * connection's state, and renews its time-out.
 *
 * Each CPU has its own memos, so none is read while it is written. A memo has one of a few places,
 * by its hash, and keeps it until it ends: if all are taken, a connection goes without.
 */
#pragma once

#include "firewall.h"
#include "flow_context.h"
#include "route.h"

struct treatment_place {
	__u32 second; /* CLOCK_MONOTONIC: when it was confirmed; in that second it is valid */
	__u32 id;     /* its number, and above that the second in which it was made */
	struct treatment treatment;
};

#define TREATMENTS 2048 /* a power of two; the lowest bits of their numbers: enum memo_kind */
/* An id has room for the low bits of the second in which it was given. */
#define TREATMENT_ID_SECONDS (1 << 21)
/* A treatment that is used for longer is given a new id, so that its old memos end: `until`, of 16
 * bits, would seem to be in the future again 2^16 seconds later. */
#define TREATMENT_SECONDS (1 << 14)

#define MEMO_PACKETS 0xff /* then the record counts them; their bytes fit 24 bits, too */

struct memo {
	union {
		__u8 peer[16];
		struct {
			__u64 hash; /* of the sides */
			__u32 place;
			__u32 id; /* of the connection that has it */
		} tcp;
	};
	__u16 peer_port;
	__u16 port;        /* ours, as it is in the packet */
	__u16 new_port;    /* after translation */
	__u16 until;       /* CLOCK_MONOTONIC, seconds: when it has ended */
	__u32 packets : 8; /* that used it since it was made */
	__u32 bytes : 24;
	__u32 treatment; /* its id */
} __attribute__((aligned(8)));

#define MEMO_PLACES 4

struct memo_set {
	struct memo memos[MEMO_PLACES];
};

_Static_assert(sizeof(struct memo_set) == 128, "a set is two cache lines");

/* Mappable memory is page-aligned, so that the first set begins with a cache line. */
MAP_OF(memos, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, __u32, struct memo_set, 4096);
ARRAY_OF(treatments, BPF_MAP_TYPE_PERCPU_ARRAY, struct treatment_place, TREATMENTS);

/* A power of two. The loader sets it and the size of the map. */
volatile __u32 memo_sets_a_cpu SEC(".data") = 1024;
/* By enum way: the second in which the last memo ends: from then on none is valid, and their cache
 * lines are not touched. */
volatile __u32 memos_until[2] SEC(".data") = {};

/* A packet's tuple, seen from us. */
struct sides {
	const __u8 *peer;
	const __u8 *ours;
	__u16 peer_port;
	__u16 port;
	__u8 kind; /* enum memo_kind */
	__u64 hash;
};

/* The lowest bits of the ids of the treatments that its memos have */
enum memo_kind {
	MEMO_OUT = 1, /* from us */
	MEMO_TCP = 2,
	MEMO_KINDS = 4,
};

INLINE __u64 sides_hash(const struct sides *sides)
{
	const __u64 *peer = address_halves(sides->peer), *ours = address_halves(sides->ours);
	__u64 hash = hash_mix(peer[0] ^ ours[0], peer[1]);

	return hash_mix(hash ^ ours[1], (__u32)sides->peer_port << 16 | sides->port);
}

INLINE struct sides sides_of(const struct tuple *tuple)
{
	bool out = tuple->direction == DIRECTION_OUT;
	__u8 kind = (out ? MEMO_OUT : 0) | (tuple->protocol == PROTOCOL_TCP ? MEMO_TCP : 0);
	struct sides sides = {.peer = out ? tuple->destination : tuple->source,
			      .ours = out ? tuple->source : tuple->destination,
			      .peer_port = out ? tuple->destination_port : tuple->source_port,
			      .port = out ? tuple->source_port : tuple->destination_port,
			      .kind = kind};

	sides.hash = sides_hash(&sides);
	return sides;
}

INLINE struct memo_set *memo_set_of(const struct sides *sides)
{
	__u32 place = bpf_get_smp_processor_id() * memo_sets_a_cpu +
		      (sides->hash & (memo_sets_a_cpu - 1));

	return bpf_map_lookup_elem(&memos, &place);
}

/* No memo is made for longer than a period of the stack's turns, so one whose end seems to be
 * further away has ended. */
INLINE bool memo_has_ended(const struct memo *memo, __u32 now)
{
	return (__u16)(memo->until - now - 1) >= MOST_SETTLED_SECONDS;
}

/* Our own address is in the hash, and the treatment has it. TCP's peer is in the hash, and its
 * place has it. */
INLINE bool memo_is_for(const struct memo *memo, const struct sides *sides)
{
	return memo->peer_port == sides->peer_port && memo->port == sides->port &&
	       memo->treatment % MEMO_KINDS == sides->kind &&
	       (sides->kind & MEMO_TCP ? memo->tcp.hash == sides->hash
				       : address_equal(memo->peer, sides->peer));
}

/* Returns the memo of these sides, or NULL. */
INLINE struct memo *memo_of(struct memo_set *set, const struct sides *sides)
{
	for (int i = 0; i < MEMO_PLACES; i++)
		if (memo_is_for(&set->memos[i], sides))
			return &set->memos[i];
	return NULL;
}

/* A GSO packet of TCP saves nothing by a memo, and has another length than the next ones. */
INLINE bool memo_suits(struct __sk_buff *skb, const struct packet *packet)
{
	return (packet->tuple.protocol == PROTOCOL_UDP ||
		(packet->tuple.protocol == PROTOCOL_TCP && packet_is_plain_tcp(packet) &&
		 !packet->leaving && !skb->gso_size)) &&
	       !packet->error && !packet->fragment && packet->hop_limit > 1 &&
	       !packet_has_options(packet);
}

/* Follows a packet of TCP that uses the memo. False: it cannot. */
INLINE bool memo_follow_tcp(const struct memo *memo, const struct sides *sides,
			    const struct packet *packet)
{
	enum way way = sides->kind & MEMO_OUT ? OUTWARDS : INWARDS;
	struct assured *place = assured_at(memo->tcp.place);

	if (!place || place->id != memo->tcp.id || !place->steady ||
	    place->key.outside_port != sides->peer_port ||
	    !address_equal(place->key.outside, sides->peer) ||
	    !tcp_continues(place->tcp, packet, way))
		return false;
	tcp_advance(&place->tcp[way].sequence_end,
		    packet->tcp_sequence + packet->tcp_sequence_length);
	tcp_advance(&place->tcp[way].acknowledged, packet->tcp_acknowledgment);
	return true;
}

INLINE bool treatment_is_done_here(struct __sk_buff *skb, const struct treatment *treatment)
{
	return treatment->ifindex == skb->ifindex;
}

/* Returns whether nothing has come to the veths that a packet on a path would pass. */
INLINE bool treatment_may_skip(struct __sk_buff *skb, const struct packet *packet,
			       const struct treatment *treatment)
{
	bool out = packet->tuple.direction == DIRECTION_OUT;

	return device_lets_skip(&treatment->owner, out ? packet_arrived_by(skb) : 0,
				treatment->translation.path == PATH_CONTAINER
					? treatment->translation.out_ifindex
					: 0);
}

/* Returns whether the host's routes and addresses are those under which routing was asked. */
INLINE bool treatment_has_ways(struct __sk_buff *skb, const struct packet *packet,
			       const struct treatment *treatment)
{
	return treatment->ways && treatment->ways == device_ways_number(skb, packet->ipv4);
}

/* Returns whether a packet may leave the stack here as others did in the seconds before. */
INLINE bool treatment_may_leave(struct __sk_buff *skb, const struct packet *packet,
				const struct treatment *treatment)
{
	return treatment_has_ways(skb, packet, treatment) &&
	       !network_refuses(&treatment->owner, skb->ifindex);
}

/* Returns whether the treatment may still be given to this packet, here or behind the stack. At a
 * container's veth it must come from the owner and go to the gateway. */
INLINE bool treatment_stands(struct __sk_buff *skb, const struct packet *packet,
			     const struct treatment *treatment)
{
	bool here = treatment_is_done_here(skb, treatment);
	const struct slot *slot;

	if (treatment->offload_dropped != SINGLE(meta)->offload_dropped)
		return false;
	slot = owner_slot(&treatment->owner);
	if (!slot)
		return false;
	if (treatment->translation.path &&
	    (slot->fast_path == FAST_PATH_OFF || packet->end - packet->l3_offset > treatment->mtu ||
	     !treatment_may_skip(skb, packet, treatment)))
		return false;
	if (packet->tuple.direction == DIRECTION_IN)
		return here;
	if (packet->leaving)
		return here && (treatment->only_in || treatment_may_leave(skb, packet, treatment));
	if (slot->ifindex != skb->ifindex || !packet_is_for_mac(skb, slot->gateway_mac))
		return false;
	if (treatment->translation.path)
		return here;
	return treatment_has_ways(skb, packet, treatment) ||
	       !leaves_unclassified(skb, packet, slot->gateway);
}

/* Finds the translation of a packet by its memo. False: there is none that is valid. At a
 * container's veth, the translation of a memo without a path is left to the hook that made it,
 * behind the stack. */
GLOBAL_FUNCTION bool memo_use(struct __sk_buff *skb, struct packet *packet,
			      struct translation *translation)
{
	const struct treatment_place *place;
	const struct treatment *treatment;
	__u32 now = clock_second(), number;
	struct memo_set *set;
	struct sides sides;
	struct memo *memo;
	enum way way;

	if (!packet || !translation)
		return false;
	way = packet->tuple.direction == DIRECTION_IN ? INWARDS : OUTWARDS;
	if ((__s32)(memos_until[way] - now) <= 0 || !memo_suits(skb, packet))
		return false;
	sides = sides_of(&packet->tuple);
	set = memo_set_of(&sides);
	memo = set ? memo_of(set, &sides) : NULL;
	if (!memo || memo_has_ended(memo, now))
		return false;
	number = memo->treatment % TREATMENTS;
	place = bpf_map_lookup_elem(&treatments, &number);
	if (!place || place->second != now || place->id != memo->treatment)
		return false;
	treatment = &place->treatment;
	packet->of_many = memo->packets == MEMO_PACKETS;
	if (packet->of_many || !address_equal(treatment->address, sides.ours) ||
	    !treatment_stands(skb, packet, treatment) ||
	    ((sides.kind & MEMO_TCP) && !memo_follow_tcp(memo, &sides, packet)))
		return false;
	__builtin_memcpy(translation, &treatment->translation, sizeof(*translation));
	translation->port = memo->new_port;
	translation->peer_port = memo->peer_port;
	if (treatment->counted && treatment_is_done_here(skb, treatment)) {
		memo->packets++;
		memo->bytes += skb->len;
	}
	return true;
}

/* Returns whether the place may get another treatment. One that has been confirmed in the second
 * before keeps it, for the memos that it has. */
INLINE bool treatment_gives_way(const struct treatment_place *place, __u32 now)
{
	return idle_seconds(now, place->second) >= (place->treatment.only_in ? 1 : 2) ||
	       (now - place->id / TREATMENTS) % TREATMENT_ID_SECONDS > TREATMENT_SECONDS;
}

/* Confirms the treatment in scratch->treatment in this second. Returns its ID, or 0: others have
 * its places. */
GLOBAL_FUNCTION __u32 treatment_confirm(__u8 kind, __u32 now)
{
	const struct treatment *wanted = &scratch_get()->treatment;
	__u64 hash = hash_words(wanted, sizeof(*wanted));
	struct treatment_place *place;
	__u32 number;

	for (int i = 0; i < 2; i++) {
		number = ((hash + i) * MEMO_KINDS + kind) % TREATMENTS;
		place = bpf_map_lookup_elem(&treatments, &number);
		if (!place)
			break;
		if (treatment_gives_way(place, now)) {
			__builtin_memcpy(&place->treatment, wanted, sizeof(*wanted));
			place->id = now * TREATMENTS + number;
		}
		if (words_equal(&place->treatment, wanted, sizeof(*wanted))) {
			place->second = now;
			return place->id;
		}
	}
	return 0;
}

/* Returns the place of these sides' memo, or one whose memo has ended, or NULL. */
INLINE struct memo *memo_place(struct memo_set *set, const struct sides *sides, __u32 second)
{
	struct memo *memo, *unused = NULL;

	for (int i = 0; i < MEMO_PLACES; i++) {
		memo = &set->memos[i];
		if (memo_is_for(memo, sides))
			return memo;
		if (!unused && memo_has_ended(memo, second))
			unused = memo;
	}
	return unused;
}

/* No path has a smaller MTU: of IPv4 by the kernel's default (ip_rt_min_pmtu), IPv6 RFC 8200 5. */
#define LEAST_MTU(ipv4) ((ipv4) ? 552 : 1280)

/* Returns whether all connections with this treatment may go on with it once one confirms it. */
INLINE bool treatment_may_last(const struct packet *packet, enum way way,
			       const struct treatment *treatment)
{
	/* In the stack routes do not matter inwards. Outwards they say whose the new source is. */
	if (!treatment->translation.path)
		return treatment->counted &&
		       (way == INWARDS || (packet->renewed && treatment->ways));
	/* Outwards the MTU may be of the way to this peer, which no change of routes shows. */
	return packet->renewed && treatment->counted && scratch_get()->basis.routes &&
	       (way == INWARDS || packet->end - packet->l3_offset <= LEAST_MTU(packet->ipv4));
}

/* Describes what is done to this packet. The next hop's MAC is the connection's: the packet may be
 * sent without it (offload_use_path()). */
INLINE void treatment_describe(const struct packet *packet, const struct connection *connection,
			       enum way way, const struct translation *translation,
			       struct treatment *treatment)
{
	const struct next_hop *next_hop = &connection->next_hop[way];

	__builtin_memcpy(&treatment->translation, translation, sizeof(*translation));
	treatment->translation.port = 0;
	treatment->translation.peer_port = 0;
	treatment->translation.report = 0;
	if (translation->path)
		__builtin_memcpy(treatment->translation.frame_destination, next_hop->destination,
				 ETH_ALEN);
	treatment->owner = connection->owner;
	treatment->offload_dropped = SINGLE(meta)->offload_dropped;
	treatment->mtu = next_hop->mtu;
	treatment->counted = connection->state & STATE_ASSURED;
	if (!treatment_may_last(packet, way, treatment)) {
		treatment->only_in = connection->last_seen;
		return;
	}
	if (!translation->path)
		return;
	__builtin_memcpy(&treatment->basis, &scratch_get()->basis, sizeof(treatment->basis));
	if (way == OUTWARDS && treatment->mtu > LEAST_MTU(packet->ipv4))
		treatment->mtu = LEAST_MTU(packet->ipv4);
}

/* Each connection's record is looked at in a second of its own, so that those that began together
 * are not looked at together. */
INLINE __u32 memo_stack_end(const struct connection *connection)
{
	__u32 phase = connection->id >> 2; /* the lowest bits are not random */

	return connection->last_seen + STACK_SECONDS -
	       (connection->last_seen + phase) % STACK_SECONDS;
}

/* Returns when a memo ends: with this second, or at the connection's turn in the stack. TCP has no
 * turns; its record is read so often all the same, for its last_seen. */
INLINE __u32 memo_end(const struct packet *packet, const struct connection *connection,
		      enum way way, const struct treatment *treatment)
{
	const struct slot *slot = owner_slot(&connection->owner);
	bool always = slot && slot->fast_path == FAST_PATH_ALWAYS;

	if (treatment->translation.path && !always &&
	    connection->left_stack[way] <= treatment->offload_dropped)
		return connection->last_seen; /* drop-offload ran since the path was used */
	if (treatment->only_in)
		return connection->last_seen + 1;
	if (!treatment->translation.path)
		return memo_stack_end(connection);
	return always || packet->tuple.protocol == PROTOCOL_TCP
		       ? connection->last_seen + STACK_SECONDS
		       : firewall_turn(connection, way, packet->of_many);
}

/* Adds to the record what the memo has counted. */
INLINE void memo_settle(struct memo *memo, struct connection *connection, enum way way)
{
	connection->packets[way] += memo->packets;
	connection->bytes[way] += memo->bytes;
	memo->packets = 0;
	memo->bytes = 0;
}

INLINE void memo_lasts_until(struct memo *memo, enum way way, __u32 end)
{
	memo->until = end;
	if ((__s32)(end - memos_until[way]) > 0)
		memos_until[way] = end;
}

/* The stack has let a packet through at its connection's turn: if there is a memo of the connection
 * yet, it lasts until the next turn, so that no packet goes the long way only to make it again. */
GLOBAL_FUNCTION int memo_go_on(const struct connection_key *key, struct connection *connection,
			       enum way way)
{
	struct memo_set *set;
	struct sides sides;
	struct memo *memo;

	if (!key || !connection || key->protocol != PROTOCOL_UDP)
		return 0;
	way &= 1;
	sides = (struct sides){
		.peer = key->outside,
		.ours = way == INWARDS ? connection->external_address : key->inside,
		.peer_port = way == INWARDS ? connection->peer_port : key->outside_port,
		.port = way == INWARDS ? connection->external_port : key->inside_port,
		.kind = way == OUTWARDS ? MEMO_OUT : 0};
	sides.hash = sides_hash(&sides);
	set = memo_set_of(&sides);
	memo = set ? memo_of(set, &sides) : NULL;
	if (!memo)
		return 0;
	memo_settle(memo, connection, way);
	memo_lasts_until(memo, way, firewall_turn(connection, way, false));
	return 0;
}

/* Stores what is done to this packet for the next ones. */
GLOBAL_FUNCTION int memo_make(struct __sk_buff *skb, const struct packet *packet,
			      struct connection *connection, enum way way,
			      const struct translation *translation)
{
	struct treatment *wanted = &scratch_get()->treatment;
	struct memo_set *set;
	struct memo *memo;
	struct sides sides;
	__u32 id;

	if (!packet || !connection || !translation || !memo_suits(skb, packet))
		return 0;
	way &= 1;
	sides = sides_of(&packet->tuple);
	if (translation->peer_port != sides.peer_port)
		return 0;
	__builtin_memset(wanted, 0, sizeof(*wanted));
	wanted->ifindex = skb->ifindex;
	address_copy(wanted->address, sides.ours);
	if (packet->leaving && connection->ways == device_ways_number(skb, packet->ipv4))
		wanted->ways = connection->ways;
	treatment_describe(packet, connection, way, translation, wanted);
	if (translation->path && !translation_has_frame(&wanted->translation))
		return 0;
	set = memo_set_of(&sides);
	memo = set ? memo_place(set, &sides, connection->last_seen) : NULL;
	if (!memo)
		return 0;
	id = treatment_confirm(sides.kind, connection->last_seen);
	if (!id)
		return 0;
	if (memo_is_for(memo, &sides) &&
	    (!(sides.kind & MEMO_TCP) || memo->tcp.id == connection->id))
		memo_settle(memo, connection, way);
	if (sides.kind & MEMO_TCP) {
		memo->tcp.hash = sides.hash;
		memo->tcp.place = connection->place;
		memo->tcp.id = connection->id;
		tcp_tell_memos(connection);
	} else {
		address_copy(memo->peer, sides.peer);
	}
	memo->peer_port = sides.peer_port;
	memo->port = sides.port;
	memo->new_port = translation->port;
	memo->packets = 0;
	memo->bytes = 0;
	memo->treatment = id;
	memo_lasts_until(memo, way, memo_end(packet, connection, way, wanted));
	return 0;
}

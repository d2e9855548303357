/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memo.h - memos: what was decided about a UDP packet, reused for the next packets of its
 * connection.
 *
 * With many connections, the lookup in the table dominates: neither the record nor the hash bucket
 * is in a CPU cache. So what is done to packets is stored once for all connections that are treated
 * alike (struct treatment), and a connection's memo is small: the peer, the ports, the treatment.
 *
 * A memo is valid for the second in which it was made, so one packet a second goes the long way.
 * What must take effect at once is checked each time: the owner, the interface, and drop-offload.
 * Packets that go through the IP stack have memos, too: the firewall decides about each one. One
 * that was made behind the stack spares from_container the lookup, too. TCP has none, because
 * every packet's sequence numbers are tracked.
 *
 * Each CPU has its own memos, so none is read while it is written. A memo has one of a few places,
 * by its hash, and keeps it until the second ends: if all are taken, a connection goes without.
 */
#pragma once

#include "device.h"
#include "flow_context.h"
#include "route.h"

/* What is done to the packets between one of our addresses and any peer. */
struct treatment {
	__u32 second;     /* CLOCK_MONOTONIC: in which it is valid, and not changed */
	__u32 ifindex;    /* skb->ifindex at the hook that carries it out */
	__u8 address[16]; /* ours: the packet's destination inwards, its source outwards */
	struct owner owner;
	__u16 mtu;    /* of a path */
	bool counted; /* the packets are added to the record */
	__u8 reserved[5];
	struct translation translation; /* without ports */
} __attribute__((aligned(8)));

/* A power of two, which memo_stamp() has bits for */
#define TREATMENTS 1024 /* those outwards have odd numbers */

#define MEMO_PACKETS 0xffff /* then the record counts them; their bytes fit 32 bits, too */

struct memo {
	__u8 peer[16];
	__u16 peer_port;
	__u16 port;     /* ours, as it is in the packet */
	__u16 new_port; /* after translation */
	__u16 packets;  /* that used it since it was made */
	__u32 bytes;
	__u32 stamp; /* the second and the treatment's number */
} __attribute__((aligned(8)));

#define MEMO_PLACES 4

struct memo_set {
	struct memo memos[MEMO_PLACES];
};

_Static_assert(sizeof(struct memo_set) == 128, "a set is two cache lines");

/* Mappable memory is page-aligned, so that the first set begins with a cache line. */
MAP_OF(memos, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, __u32, struct memo_set, 4096);
ARRAY_OF(treatments, BPF_MAP_TYPE_PERCPU_ARRAY, struct treatment, TREATMENTS);

/* A power of two. The loader sets it and the size of the map. */
volatile __u32 memo_sets_a_cpu SEC(".data") = 1024;
/* By enum way: the second in which the last memo was made; in any other second none is valid, and
 * their cache lines are not touched. */
volatile __u32 memos_made[2] SEC(".data") = {};

/* A packet's tuple, seen from us. */
struct sides {
	const __u8 *peer;
	const __u8 *ours;
	__u16 peer_port;
	__u16 port;
	bool out; /* from us */
};

INLINE struct sides sides_of(const struct tuple *tuple)
{
	if (tuple->direction == DIRECTION_OUT)
		return (struct sides){tuple->destination, tuple->source, tuple->destination_port,
				      tuple->source_port, true};
	return (struct sides){tuple->source, tuple->destination, tuple->source_port,
			      tuple->destination_port, false};
}

INLINE struct memo_set *memo_set_of(const struct sides *sides)
{
	const __u64 *peer = address_halves(sides->peer), *ours = address_halves(sides->ours);
	__u64 hash = hash_mix(peer[0] ^ ours[0], peer[1]);
	__u32 place;

	hash = hash_mix(hash ^ ours[1], (__u32)sides->peer_port << 16 | sides->port);
	place = bpf_get_smp_processor_id() * memo_sets_a_cpu + (hash & (memo_sets_a_cpu - 1));
	return bpf_map_lookup_elem(&memos, &place);
}

/* The second is stored without its upper bits, which do not change for 48 days. */
INLINE __u32 memo_stamp(__u32 second, __u32 treatment)
{
	return second * TREATMENTS + treatment;
}

/* Our own address is in the hash, and the treatment has it. */
INLINE bool memo_is_for(const struct memo *memo, const struct sides *sides)
{
	return memo->peer_port == sides->peer_port && memo->port == sides->port &&
	       address_equal(memo->peer, sides->peer) && (memo->stamp & 1) == sides->out;
}

INLINE bool memo_suits(const struct packet *packet)
{
	return packet->tuple.protocol == PROTOCOL_UDP && !packet->error && !packet->fragment &&
	       packet->hop_limit > 1 && !packet_has_options(packet);
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

/* Returns whether the treatment may still be given to this packet, here or behind the stack. At a
 * container's veth it must come from the owner and go to the gateway. */
INLINE bool treatment_stands(struct __sk_buff *skb, const struct packet *packet,
			     const struct treatment *treatment)
{
	bool here = treatment_is_done_here(skb, treatment);
	const struct slot *slot;

	if (treatment->second <= SINGLE(meta)->offload_dropped)
		return false;
	slot = owner_slot(&treatment->owner);
	if (!slot)
		return false;
	if (treatment->translation.path &&
	    (slot->fast_path == FAST_PATH_OFF || packet->end - packet->l3_offset > treatment->mtu ||
	     !treatment_may_skip(skb, packet, treatment)))
		return false;
	if (packet->tuple.direction == DIRECTION_IN || packet->leaving)
		return here;
	return slot->ifindex == skb->ifindex && packet_is_for_mac(skb, slot->gateway_mac) &&
	       (treatment->translation.path ? here
					    : !leaves_unclassified(skb, packet, slot->gateway));
}

/* Finds the translation of a packet by its memo. False: there is none that is valid. At a
 * container's veth, the translation of a memo without a path is left to the hook that made it,
 * behind the stack. */
GLOBAL_FUNCTION bool memo_use(struct __sk_buff *skb, const struct packet *packet,
			      struct translation *translation)
{
	const struct treatment *treatment;
	__u32 now = clock_second(), number;
	struct memo *memo = NULL;
	struct memo_set *set;
	struct sides sides;

	if (!packet || !translation ||
	    memos_made[packet->tuple.direction == DIRECTION_IN ? INWARDS : OUTWARDS] != now ||
	    !memo_suits(packet))
		return false;
	sides = sides_of(&packet->tuple);
	set = memo_set_of(&sides);
	for (int i = 0; set && i < MEMO_PLACES && !memo; i++)
		if (memo_is_for(&set->memos[i], &sides))
			memo = &set->memos[i];
	if (!memo)
		return false;
	number = memo->stamp % TREATMENTS;
	treatment = bpf_map_lookup_elem(&treatments, &number);
	if (!treatment || treatment->second != now || memo->stamp != memo_stamp(now, number) ||
	    !address_equal(treatment->address, sides.ours) || memo->packets == MEMO_PACKETS ||
	    !treatment_stands(skb, packet, treatment))
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

/* Returns the number of the treatment, stored for this second, or TREATMENTS: its places have
 * others. */
INLINE __u32 treatment_number(const struct treatment *wanted, bool out)
{
	/* By the second, too: those that have no room do not meet again in the next one. */
	__u64 hash = hash_words(wanted, sizeof(*wanted));
	struct treatment *known;
	__u32 number;

	for (int i = 0; i < 2; i++) {
		number = ((hash + i) * 2 + out) % TREATMENTS;
		known = bpf_map_lookup_elem(&treatments, &number);
		if (!known)
			break;
		if (known->second != wanted->second)
			__builtin_memcpy(known, wanted, sizeof(*known));
		if (words_equal(known, wanted, sizeof(*known)))
			return number;
	}
	return TREATMENTS;
}

/* Returns the place of these sides' memo, or one that no memo of this second has, or NULL. */
INLINE struct memo *memo_place(struct memo_set *set, const struct sides *sides, __u32 second)
{
	struct memo *memo, *unused = NULL;

	for (int i = 0; i < MEMO_PLACES; i++) {
		memo = &set->memos[i];
		if (memo_is_for(memo, sides))
			return memo;
		if (!unused && memo->stamp / TREATMENTS != memo_stamp(second, 0) / TREATMENTS)
			unused = memo;
	}
	return unused;
}

/* Stores what is done to this packet for the next ones in this second. The next hop's MAC is the
 * connection's: this packet may be sent without it (offload_use_path()). */
GLOBAL_FUNCTION int memo_make(struct __sk_buff *skb, const struct packet *packet,
			      struct connection *connection, enum way way,
			      const struct translation *translation)
{
	struct treatment wanted = {};
	struct memo_set *set;
	struct memo *memo;
	struct sides sides;
	__u32 number;

	if (!packet || !connection || !translation || !memo_suits(packet))
		return 0;
	way &= 1;
	sides = sides_of(&packet->tuple);
	if (translation->peer_port != sides.peer_port)
		return 0;
	__builtin_memcpy(&wanted.translation, translation, sizeof(*translation));
	wanted.translation.port = 0;
	wanted.translation.peer_port = 0;
	wanted.translation.report = 0;
	if (translation->path)
		__builtin_memcpy(wanted.translation.frame_destination,
				 connection->leave[way].destination, ETH_ALEN);
	if (translation->path && !translation_has_frame(&wanted.translation))
		return 0;
	wanted.second = connection->last_seen;
	wanted.ifindex = skb->ifindex;
	address_copy(wanted.address, sides.ours);
	wanted.owner = connection->owner;
	wanted.mtu = connection->leave[way].mtu;
	wanted.counted = connection->state & STATE_ASSURED;
	set = memo_set_of(&sides);
	memo = set ? memo_place(set, &sides, wanted.second) : NULL;
	if (!memo)
		return 0;
	number = treatment_number(&wanted, sides.out);
	if (number == TREATMENTS)
		return 0;
	if (memo_is_for(memo, &sides)) {
		connection->packets[way] += memo->packets;
		connection->bytes[way] += memo->bytes;
	}
	address_copy(memo->peer, sides.peer);
	memo->peer_port = sides.peer_port;
	memo->port = sides.port;
	memo->new_port = translation->port;
	memo->packets = 0;
	memo->bytes = 0;
	memo->stamp = memo_stamp(wanted.second, number);
	if (memos_made[way] != wanted.second)
		memos_made[way] = wanted.second;
	return 0;
}

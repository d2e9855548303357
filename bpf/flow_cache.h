/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_cache.h - memos: the fast path's decision about a UDP packet, reused for the next packets of
 * its connection.
 *
 * With many connections, the lookup in the table dominates: neither the record nor the hash bucket
 * is in a CPU cache. A memo is found by the tuple's hash, has all that is needed, and is valid for
 * the second in which it was made, so one packet a second goes the long way. What must take effect
 * at once is checked each time: the owner, and drop-offload. TCP has no memos, because
 * every packet's sequence numbers are tracked.
 *
 * Each CPU has its own memos, so none is read while it is written. Connections whose hashes collide
 * overwrite each other's memos.
 */
#ifndef BPF_PORTMAP_FLOW_CACHE_H
#define BPF_PORTMAP_FLOW_CACHE_H

#include "flow_context.h"
#include "noticed.h"
#include "portmap.h"

/* Two cache lines; all members that are compared are in the first. */
struct memo {
	struct tuple key;
	__u32 second; /* CLOCK_MONOTONIC */
	__u32 reserved3;
	struct owner owner;
	__u32 in_ifindex;
	__u16 mtu;
	__u16 reserved;
	struct translation translation;
	__u32 packets; /* that used it since it was made */
	__u32 reserved2;
	__u64 bytes;
	__u64 reserved4;
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct memo) == 128, "memos do not share cache lines");

/* Mappable memory is page-aligned, so that the first memo begins with a cache line. */
MAP_OF(memos, BPF_MAP_TYPE_ARRAY, BPF_F_MMAPABLE, __u32, struct memo, 4096);

/* A power of two. The loader sets it and the size of the map. */
volatile __u32 memos_a_cpu SEC(".data") = 1024;
/* The second in which the last memo was made; in any other second none is valid. */
volatile __u32 memos_made SEC(".data") = 0;

INLINE struct memo *memo_at(const struct tuple *tuple)
{
	const __u64 *words = (const __u64 *)tuple;
	__u64 hash = hash_mix(words[4], words[1]);
	__u32 place;

	hash = hash_mix(hash ^ words[0], words[3] ^ words[2]);
	place = bpf_get_smp_processor_id() * memos_a_cpu + (hash & (memos_a_cpu - 1));
	return bpf_map_lookup_elem(&memos, &place);
}

INLINE bool memo_is_for(const struct memo *memo, const struct tuple *tuple)
{
	const __u64 *a = (const __u64 *)&memo->key, *b = (const __u64 *)tuple;

	return a[4] == b[4] && a[3] == b[3] && a[1] == b[1] && a[0] == b[0] && a[2] == b[2];
}

INLINE bool memo_was_dropped(const struct memo *memo)
{
	const struct meta *settings = SINGLE(meta);

	return !settings || memo->second <= settings->offload_dropped;
}

/* Returns whether the packet needs nothing that only the long way does. */
INLINE bool memo_suits(const struct packet *packet)
{
	return packet->tuple.protocol == PROTOCOL_UDP && !packet->error && !packet->fragment &&
	       packet->hop_limit > 1 && !packet_has_options(packet);
}

/* Returns NULL where there is no valid memo for this packet. */
INLINE struct memo *memo_find(const struct packet *packet, const struct slot **slot)
{
	struct memo *memo;
	__u32 now;

	if (!memo_suits(packet))
		return NULL;
	now = clock_second();
	if (memos_made != now)
		return NULL;
	memo = memo_at(&packet->tuple);
	if (!memo || !memo_is_for(memo, &packet->tuple) || memo->second != now ||
	    memo_was_dropped(memo) || packet->end - packet->l3_offset > memo->mtu)
		return NULL;
	*slot = owner_slot(&memo->owner);
	return *slot && (*slot)->fast_path != FAST_PATH_OFF ? memo : NULL;
}

INLINE void memo_take(struct memo *memo, __u32 length, struct translation *translation)
{
	__builtin_memcpy(translation, &memo->translation, sizeof(*translation));
	memo->packets++;
	memo->bytes += length;
}

/* Finds the translation of a packet that arrives on an uplink. Returns false without a memo. */
INLINE bool memo_inwards(const struct flow_context *flow)
{
	__u16 port = flow->packet->tuple.destination_port;
	struct memo *memo;
	const struct slot *slot;

	/* Packets that are not ours are spared a cache miss on the memo. */
	if (!portmap_is_published(port) && !noticed_has(external_ports, port))
		return false;
	memo = memo_find(flow->packet, &slot);
	if (!memo || memo->in_ifindex != flow->skb->ifindex)
		return false;
	memo_take(memo, flow->skb->len, flow->translation);
	return true;
}

/* Does the same for a container's packet: it must come from the owner's veth and go to the
 * gateway. */
INLINE bool memo_outwards(const struct flow_context *flow)
{
	const struct slot *slot;
	struct memo *memo = memo_find(flow->packet, &slot);

	if (!memo || slot->ifindex != flow->skb->ifindex ||
	    !packet_is_for_mac(flow->skb, slot->gateway_mac))
		return false;
	memo_take(memo, flow->skb->len, flow->translation);
	return true;
}

/* Stores the translation of this packet for the next ones in this second. */
GLOBAL_FUNCTION int memo_make(const struct packet *packet, struct connection *connection,
			      enum way way, const struct translation *translation, __u32 in_ifindex)
{
	struct memo *memo;

	if (!packet || !connection || !translation || !memo_suits(packet))
		return 0;
	way &= 1;
	memo = memo_at(&packet->tuple);
	if (!memo)
		return 0;
	if (memo_is_for(memo, &packet->tuple)) {
		connection->packets[way] += memo->packets;
		connection->bytes[way] += memo->bytes;
	}
	__builtin_memcpy(&memo->key, &packet->tuple, sizeof(memo->key));
	memo->second = connection->last_seen;
	memo->owner = connection->owner;
	memo->in_ifindex = in_ifindex;
	memo->mtu = connection->leave[way].mtu;
	__builtin_memcpy(&memo->translation, translation, sizeof(memo->translation));
	memo->packets = 0;
	memo->bytes = 0;
	if (memos_made != connection->last_seen)
		memos_made = connection->last_seen;
	return 0;
}

#endif

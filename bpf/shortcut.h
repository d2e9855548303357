/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shortcut.h - what the fast path has decided about a packet, to be done to the next one of its
 * flow without asking again.
 *
 * Among many flows, finding one in the table of flows is what costs: it is not in any cache, and
 * where it lies is told by what is not in any cache either. A shortcut lies where the tuple
 * says, has all that is needed, and is good for the second in which it was made: once a
 * second a packet goes the long way, where everything is done that has to be done then.
 * What must work at once is asked each time: whose it is (owner), drop-offload, and
 * shortcuts_era. TCP has none, for its numbers are followed from packet to packet.
 *
 * Each CPU has its own, so nobody reads what is being written. Two flows that want one place
 * take it from each other.
 */
#ifndef BPF_PORTMAP_SHORTCUT_H
#define BPF_PORTMAP_SHORTCUT_H

#include "flow.h"
#include "noticed.h"
#include "portmap.h"

/* Two cache lines; what is compared is in the first one. */
struct shortcut {
	struct flow_key key;
	__u32 second; /* CLOCK_MONOTONIC */
	__u32 era;
	struct owner owner;
	__u32 out_ifindex;
	__u16 mtu;
	enum flow_path path;
	__u8 reserved;
	__u8 address[16];
	__u16 port;
	__u16 peer_port;
	__u8 frame_destination[6];
	__u8 frame_source[6];
	__u32 packets; /* that took it since it was made */
	__u64 bytes;
	__u32 in_ifindex;
	__u8 reserved2[12];
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct shortcut) == 128, "shortcuts do not share cache lines");

/* Not pinned: nobody else needs it. Memory that can be mapped begins with a page, and so the
 * first one with a cache line. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 4096);
	__type(key, __u32);
	__type(value, struct shortcut);
} shortcuts SEC(".maps");

/* A power of two; the loader sets it, and the size of the map. */
volatile __u32 shortcuts_a_cpu SEC(".data") = 1024;
/* The second in which one was made last. Where there is none, nobody need look for one. */
volatile __u32 shortcuts_made SEC(".data") = 0;
/* Those of another era are void. */
__u32 shortcuts_era SEC(".data") = 0;

/* A product's high bits depend on all bits of the factor below them. */
static __always_inline __u64 shortcut_mix(__u64 hash, __u64 word)
{
	hash = (hash ^ word ^ word >> 32) * 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 32;
}

static __always_inline __u32 shortcut_place(const struct flow_key *tuple)
{
	const __u64 *words = (const __u64 *)tuple;
	__u64 hash = words[4];

	hash = shortcut_mix(hash, words[1]);
	hash = shortcut_mix(hash ^ words[0], words[3] ^ words[2]);
	return bpf_get_smp_processor_id() * shortcuts_a_cpu + (hash & (shortcuts_a_cpu - 1));
}

static __always_inline struct shortcut *shortcut_at(const struct flow_key *tuple)
{
	__u32 place = shortcut_place(tuple);

	return bpf_map_lookup_elem(&shortcuts, &place);
}

static __always_inline bool shortcut_is_for(const struct shortcut *shortcut,
					    const struct flow_key *tuple)
{
	const __u64 *a = (const __u64 *)&shortcut->key, *b = (const __u64 *)tuple;

	return a[4] == b[4] && a[3] == b[3] && a[1] == b[1] && a[0] == b[0] && a[2] == b[2];
}

static __always_inline bool shortcut_was_dropped(const struct shortcut *shortcut)
{
	const struct meta *settings;
	__u32 only = 0;

	settings = bpf_map_lookup_elem(&meta, &only);
	return !settings || shortcut->second <= settings->offload_dropped ||
	       shortcut->era != *(volatile __u32 *)&shortcuts_era;
}

/* What only the long way does has nothing to do with it. */
static __always_inline bool shortcut_suits(const struct packet *packet)
{
	return packet->tuple.protocol == PROTOCOL_UDP && !packet->error && !packet->fragment &&
	       packet->hop_limit > 1 && !packet_has_options(packet);
}

/* NULL: this packet has none. */
static __always_inline struct shortcut *shortcut_find(const struct packet *packet,
						      const struct slot **slot)
{
	struct shortcut *shortcut;
	__u32 now;

	if (!shortcut_suits(packet))
		return NULL;
	now = flow_now();
	if (shortcuts_made != now)
		return NULL;
	shortcut = shortcut_at(&packet->tuple);
	if (!shortcut || !shortcut_is_for(shortcut, &packet->tuple) || shortcut->second != now ||
	    shortcut_was_dropped(shortcut) || packet->end - packet->l3_offset > shortcut->mtu)
		return NULL;
	*slot = owner_slot(&shortcut->owner);
	return *slot && (*slot)->fast_path != FAST_PATH_OFF ? shortcut : NULL;
}

static __always_inline void shortcut_take(struct shortcut *shortcut, __u32 length,
					  struct translation *translation)
{
	address_copy(translation->address, shortcut->address);
	translation->port = shortcut->port;
	translation->peer_port = shortcut->peer_port;
	translation->out_ifindex = shortcut->out_ifindex;
	translation->path = shortcut->path;
	translation->report = 0;
	__builtin_memcpy(translation->frame_destination, shortcut->frame_destination, ETH_ALEN);
	__builtin_memcpy(translation->frame_source, shortcut->frame_source, ETH_ALEN);
	shortcut->packets++;
	shortcut->bytes += length;
}

/* Of a packet that enters the host by an uplink. */
static __always_inline bool shortcut_inwards(struct __sk_buff *skb, const struct packet *packet,
					     struct translation *translation)
{
	__u16 port = packet->tuple.destination_port;
	struct shortcut *shortcut;
	const struct slot *slot;

	/* What is none of ours need not wait for memory that says so. */
	if (!portmap_is_published(port) && !noticed_port(port))
		return false;
	shortcut = shortcut_find(packet, &slot);
	if (!shortcut || shortcut->in_ifindex != skb->ifindex)
		return false;
	shortcut_take(shortcut, skb->len, translation);
	return true;
}

/* Of a container's packet: it must be that container's, and on its way to the gateway. */
static __always_inline bool shortcut_outwards(struct __sk_buff *skb, const struct packet *packet,
					      struct translation *translation)
{
	const struct slot *slot;
	struct shortcut *shortcut = shortcut_find(packet, &slot);

	if (!shortcut || slot->ifindex != skb->ifindex ||
	    !packet_is_for_mac(skb, slot->gateway_mac))
		return false;
	shortcut_take(shortcut, skb->len, translation);
	return true;
}

/* What the flow makes of this packet it will make of the next one, up to the end of this second. */
VERIFIED_ONCE int shortcut_make(const struct packet *packet, struct flow *flow,
				const struct translation *translation, __u32 in_ifindex)
{
	struct shortcut *shortcut;

	if (!packet || !flow || !translation || !shortcut_suits(packet))
		return 0;
	shortcut = shortcut_at(&packet->tuple);
	if (!shortcut)
		return 0;
	if (shortcut_is_for(shortcut, &packet->tuple)) {
		flow->packets += shortcut->packets;
		flow->bytes += shortcut->bytes;
	}
	__builtin_memcpy(&shortcut->key, &packet->tuple, sizeof(shortcut->key));
	shortcut->second = flow->last_seen;
	shortcut->era = shortcuts_era;
	shortcut->owner = flow->owner;
	shortcut->in_ifindex = in_ifindex;
	shortcut->out_ifindex = translation->out_ifindex;
	shortcut->mtu = flow->path_mtu;
	shortcut->path = translation->path;
	address_copy(shortcut->address, translation->address);
	shortcut->port = translation->port;
	shortcut->peer_port = translation->peer_port;
	__builtin_memcpy(shortcut->frame_destination, translation->frame_destination, ETH_ALEN);
	__builtin_memcpy(shortcut->frame_source, translation->frame_source, ETH_ALEN);
	shortcut->packets = 0;
	shortcut->bytes = 0;
	if (shortcuts_made != flow->last_seen)
		shortcuts_made = flow->last_seen;
	return 0;
}

#endif

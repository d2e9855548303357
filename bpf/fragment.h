/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment.h - datagrams in fragments: what is done to the first fragment, which has
 * the ports, is remembered and done to the others, at every hook for itself.
 *
 * The first fragment's checksum covers the whole datagram, and the update that is
 * right for the whole is made there; of a later one only the address is changed.
 *
 * What comes before the first one is held (held.h) where a datagram enters; so where
 * it leaves, the first one is the first. Netfilter, which needs whole datagrams,
 * puts them together in between and cuts them anew, or is not there at all: both work.
 */
#ifndef BPF_PORTMAP_FRAGMENT_H
#define BPF_PORTMAP_FRAGMENT_H

#include "connection.h"
#include "packet.h"
#include "verdict.h"

/* How long a record is good without another fragment, and how long one is held. The
 * receiver waits for 30 or 60 s, but an IPv4 identification may be used again sooner. */
#define FRAGMENT_SECONDS 5

/* A later fragment has nothing but addresses and an identification, which anybody can write: it
 * belongs to a first one that came by the same interface. */
INLINE void fragment_key_of(struct __sk_buff *skb, const struct packet *packet,
			    struct fragment_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	address_copy(key->source, packet->tuple.source);
	address_copy(key->destination, packet->tuple.destination);
	key->identification = packet->identification;
	key->protocol = packet->ipv4 ? packet->tuple.protocol : 0;
	key->direction = packet->tuple.direction;
	key->ifindex = key->direction == DIRECTION_IN ? skb->ifindex : 0;
}

INLINE bool fragment_is_recent(__u32 since)
{
	/* Another CPU's clock may be a tick ahead. */
	return (__s32)(clock_second() - since) <= FRAGMENT_SECONDS;
}

/* NULL: nothing is known of the datagram. */
INLINE struct fragment *fragment_find(const struct fragment_key *key)
{
	struct fragment *fragment = bpf_map_lookup_elem(&fragments, key);

	return fragment && fragment_is_recent(fragment->last_seen) ? fragment : NULL;
}

/* The record of the datagram, made if there is none. NULL: there is no room. */
INLINE struct fragment *fragment_open(const struct fragment_key *key)
{
	struct fragment fresh = {.last_seen = clock_second()};
	struct fragment *fragment = bpf_map_lookup_elem(&fragments, key);

	if (!fragment) {
		bpf_map_update_elem(&fragments, key, &fresh, BPF_NOEXIST);
		return bpf_map_lookup_elem(&fragments, key);
	}
	if (!fragment_is_recent(fragment->last_seen)) {
		fragment->fate = FRAGMENT_WAITING;
		fragment->newest = 0;
		fragment->held = 0;
		fragment->last_seen = fresh.last_seen;
	}
	return fragment;
}

INLINE void fragment_keep_translation(struct fragment *fragment,
				      const struct translation *translation)
{
	address_copy(fragment->address, translation->address);
	fragment->out_ifindex = translation->out_ifindex;
	fragment->path = translation->path;
	__builtin_memcpy(fragment->path_destination, translation->frame_destination, ETH_ALEN);
	__builtin_memcpy(fragment->path_source, translation->frame_source, ETH_ALEN);
}

INLINE void fragment_translation(const struct fragment *fragment, struct translation *translation)
{
	__builtin_memset(translation, 0, sizeof(*translation));
	address_copy(translation->address, fragment->address);
	translation->out_ifindex = fragment->out_ifindex;
	translation->path = fragment->path;
	__builtin_memcpy(translation->frame_destination, fragment->path_destination, ETH_ALEN);
	__builtin_memcpy(translation->frame_source, fragment->path_source, ETH_ALEN);
}

/* Remembers what is done to a first fragment. Returns the ticket of the newest of
 * those held, which are the caller's to release now; 0: there are none. */
GLOBAL_FUNCTION __u32 fragment_remember(struct __sk_buff *skb, const struct packet *packet,
					const struct translation *translation,
					enum fragment_fate fate)
{
	struct fragment *fragment;
	struct fragment_key key;

	if (!packet || !translation)
		return 0;
	fragment_key_of(skb, packet, &key);
	fragment = fragment_open(&key);
	if (!fragment)
		return 0;
	if (fate == FRAGMENT_TRANSLATED || fate == FRAGMENT_LEFT)
		fragment_keep_translation(fragment, translation);
	fragment->last_seen = clock_second();
	*(volatile enum fragment_fate *)&fragment->fate = fate;
	if (fate == FRAGMENT_DROPPED)
		return 0;
	/* After the fate is told: whoever holds one looks at that afterwards. */
	return __sync_lock_test_and_set(&fragment->newest, 0);
}

/* What is to be done to a later fragment. FRAGMENT_WAITING: nobody knows. */
GLOBAL_FUNCTION enum fragment_fate fragment_follow(struct __sk_buff *skb,
						   const struct packet *packet,
						   struct translation *translation)
{
	struct fragment *fragment;
	struct fragment_key key;
	__u32 now = clock_second();

	if (!packet || !translation)
		return FRAGMENT_WAITING;
	fragment_key_of(skb, packet, &key);
	fragment = fragment_find(&key);
	if (!fragment)
		return FRAGMENT_WAITING;
	if (fragment->last_seen != now)
		fragment->last_seen = now;
	if (fragment->fate == FRAGMENT_TRANSLATED || fragment->fate == FRAGMENT_LEFT)
		fragment_translation(fragment, translation);
	return fragment->fate;
}

/* How SCTP's checksum changes with the ports depends on the length of the whole, which only
 * the last fragment tells; with ports that stay it does not change. */
INLINE enum verdict fragment_verdict(const struct packet *packet,
				     const struct translation *translation, enum verdict verdict)
{
	if (packet->fragment != FIRST_FRAGMENT || packet->tuple.protocol != PROTOCOL_SCTP)
		return verdict;
	if (verdict != VERDICT_TRANSLATE || !translation_changes_ports(translation, &packet->tuple))
		return verdict;
	return drop(sctp_fragment);
}

INLINE enum fragment_fate fragment_fate_of(enum verdict verdict)
{
	switch (verdict) {
	case VERDICT_TRANSLATE:
		return FRAGMENT_TRANSLATED;
	case VERDICT_DROP:
		return FRAGMENT_DROPPED;
	default:
		return FRAGMENT_PASSED;
	}
}

#endif

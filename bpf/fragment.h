/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment.h - datagrams in fragments: what is done to the first fragment, which has the ports, is
 * remembered and done to the others, at every hook for itself.
 *
 * The first fragment's checksum covers the whole datagram, and the update that is right for the
 * whole is made there; of a later one only the address is changed.
 *
 * What comes before the first one is held where a datagram enters; so where it leaves, the first
 * one is the first. (Netfilter, where it needs whole datagrams, puts them together in between and
 * cuts them anew.) A program cannot keep a packet, only a copy of its bytes. When the first
 * fragment comes, it is sent in once more, and its datagram's others behind it, each in a clone
 * that gets their bytes: they wait in the CPU's backlog until the first one has been all the way
 * through the stack, and find what was done to it.
 *
 * A copy is given up after FRAGMENT_SECONDS; a fragment that finds no free place, or is one too
 * many of its datagram, goes on as it is. A flood of fragments keeps others from being held, no
 * more.
 */
#ifndef BPF_PORTMAP_FRAGMENT_H
#define BPF_PORTMAP_FRAGMENT_H

#include "connection.h"
#include "rewrite.h"

/* How long a record is good without another fragment, and how long one is held. The receiver waits
 * for 30 or 60 s, but an IPv4 identification may be used again sooner. */
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

/* The record of the datagram, made if there is none. NULL: there is no room. */
INLINE struct fragment *fragment_open(const struct fragment_key *key)
{
	struct fragment fresh = {.last_seen = clock_second()};
	struct fragment *fragment = bpf_map_lookup_elem(&fragments, key);

	if (fragment && fragment_is_recent(fragment->last_seen))
		return fragment;
	bpf_map_update_elem(&fragments, key, &fresh, fragment ? BPF_EXIST : BPF_NOEXIST);
	return bpf_map_lookup_elem(&fragments, key);
}

/* Remembers what is done to a first fragment. Returns the ticket of the newest of those held, which
 * are the caller's to release now; 0: there are none. */
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
	if (fate == FRAGMENT_TRANSLATED || fate == FRAGMENT_LEFT) {
		fragment->translation = *translation;
		fragment->translation.port = 0; /* the others have none */
		fragment->translation.peer_port = 0;
		fragment->translation.report = 0;
	}
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
	fragment = bpf_map_lookup_elem(&fragments, &key);
	if (!fragment || !fragment_is_recent(fragment->last_seen))
		return FRAGMENT_WAITING;
	if (fragment->last_seen != now)
		fragment->last_seen = now;
	*translation = fragment->translation;
	return fragment->fate;
}

/* How SCTP's checksum changes with the ports depends on the length of the whole, which only
 * the last fragment tells; with ports that stay it does not change. */
INLINE enum verdict fragment_verdict(const struct packet *packet,
				     const struct translation *translation, enum verdict verdict)
{
	if (packet->fragment == FIRST_FRAGMENT && packet->tuple.protocol == PROTOCOL_SCTP &&
	    verdict == VERDICT_TRANSLATE && translation_changes_ports(translation, &packet->tuple))
		return drop(sctp_fragment);
	return verdict;
}

INLINE enum fragment_fate fragment_fate_of(enum verdict verdict)
{
	if (verdict == VERDICT_TRANSLATE)
		return FRAGMENT_TRANSLATED;
	return verdict == VERDICT_DROP ? FRAGMENT_DROPPED : FRAGMENT_PASSED;
}

#define BPF_F_INGRESS 1
#define MAX_HELD_EACH 64 /* 64 kB over IPv6's smallest MTU are 54 */
#define HELD_PLACES_TRIED 8
#define HELD_CHAIN_TRIES 4
#define TICKET_FREE 0
#define TICKET_WRITING 1
#define TICKET_VALID 0x80000000

INLINE struct held_fragment *held_at(__u32 ticket)
{
	__u32 index = ticket % MAX_HELD;

	return bpf_map_lookup_elem(&held, &index);
}

/* Two comparisons, which the compiler may not make into one that the verifier cannot follow. */
#define HELD_LENGTH_FITS(length) \
	({ \
		bool fits = (length) <= HELD_SIZE; \
		barrier_var(length); \
		fits && (length) >= sizeof(struct iphdr); \
	})

/* Takes a place that nobody has, or has no more use for. */
INLINE bool held_take(struct held_fragment *place)
{
	__u32 seen = *(volatile __u32 *)&place->ticket;

	if (seen == TICKET_WRITING || (seen != TICKET_FREE && fragment_is_recent(place->since)))
		return false;
	return __sync_val_compare_and_swap(&place->ticket, seen, TICKET_WRITING) == seen;
}

INLINE bool held_give_up(struct held_fragment *place, __u32 ticket)
{
	return __sync_val_compare_and_swap(&place->ticket, ticket, TICKET_FREE) == ticket;
}

/* Copies the IP packet. Returns its ticket, or 0: there is no room for it. */
GLOBAL_FUNCTION __u32 held_store(struct __sk_buff *skb, const struct packet *packet)
{
	struct held_fragment *place;
	__u32 length, ticket;

	if (!packet)
		return 0;
	length = packet->end - packet->l3_offset;
	if (!HELD_LENGTH_FITS(length))
		return 0;
	for (int i = 0; i < HELD_PLACES_TRIED; i++) {
		ticket = bpf_get_prandom_u32() | TICKET_VALID;
		place = held_at(ticket);
		if (!place)
			return 0;
		if (!held_take(place))
			continue;
		place->since = clock_second();
		place->length = length;
		place->ifindex = skb->ifindex;
		if (!packet_load(skb, packet->l3_offset, place->bytes, length))
			ticket = 0;
		*(volatile __u32 *)&place->ticket = ticket;
		return ticket;
	}
	return 0;
}

/* Puts it at the head of its datagram's chain. */
INLINE bool held_chain(struct fragment *fragment, struct held_fragment *place, __u32 ticket)
{
	__u32 newest;

	for (int i = 0; i < HELD_CHAIN_TRIES; i++) {
		newest = *(volatile __u32 *)&fragment->newest;
		place->previous = newest;
		if (__sync_val_compare_and_swap(&fragment->newest, newest, ticket) == newest)
			return true;
	}
	return false;
}

/* False: the fragment goes on, as its first one did if that has come meanwhile. */
GLOBAL_FUNCTION bool held_keep(struct __sk_buff *skb, const struct packet *packet)
{
	struct held_fragment *place;
	struct fragment *fragment;
	struct fragment_key key;
	__u32 ticket;

	if (!packet)
		return false;
	fragment_key_of(skb, packet, &key);
	fragment = fragment_open(&key);
	if (!fragment || fragment->held >= MAX_HELD_EACH)
		return false;
	ticket = held_store(skb, packet);
	place = held_at(ticket);
	if (!ticket || !place)
		return false;
	__sync_fetch_and_add(&fragment->held, 1);
	if (!held_chain(fragment, place, ticket))
		return !held_give_up(place, ticket);
	/* Whoever brings the first one tells its fate before it takes the chain. */
	if (*(volatile enum fragment_fate *)&fragment->fate != FRAGMENT_WAITING)
		return !held_give_up(place, ticket);
	count(fragment_held);
	return true;
}

/* Sends one in, in a clone of skb. Returns the ticket of the one held before it, 0: none. */
GLOBAL_FUNCTION __u32 held_release(struct __sk_buff *skb, const struct packet *packet, __u32 ticket)
{
	struct held_fragment *place = held_at(ticket);
	__u32 previous, length;
	long error;

	if (!packet || !place || place->ticket != ticket)
		return 0;
	previous = place->previous;
	length = place->length;
	if (!HELD_LENGTH_FITS(length))
		return 0;
	error = rewrite_whole(skb, packet->l3_offset, place->bytes, length);
	if (!fragment_is_recent(place->since) || place->ifindex != skb->ifindex)
		error = -1;
	if (!held_give_up(place, ticket))
		return 0; /* another one's by now, and so may the bytes be */
	if (!error && !bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		count(fragment_released);
	return previous;
}

/* The first fragment, as it came, and the others behind it. skb is of no use afterwards. */
GLOBAL_FUNCTION int held_release_all(struct __sk_buff *skb, const struct packet *packet,
				     __u32 newest)
{
	__u32 ticket = newest;

	if (!packet || bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		return 0;
	for (int i = 0; i < MAX_HELD_EACH && ticket; i++)
		ticket = held_release(skb, packet, ticket);
	return 0;
}

#endif

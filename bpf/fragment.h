/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * fragment.h - fragmented datagrams: each hook remembers what it did to the first fragment, which
 * has the ports, and does the same to the others.
 *
 * The checksum in the first fragment covers the whole datagram and is updated there; in later
 * fragments only the address changes.
 *
 * Later fragments that arrive before the first one are held at ingress, so at egress the first one
 * always comes first. A program cannot keep a packet, only a copy of its bytes. When the first
 * fragment arrives, it is sent in again, followed by the held ones, each in a clone that gets their
 * bytes. They wait in the CPU's backlog until the first one has passed the whole stack, and then
 * find its fate.
 *
 * A copy is dropped after FRAGMENT_SECONDS. A fragment for which there is no room, or that exceeds
 * its datagram's limit, goes on unchanged: that is all that a flood can do to others.
 */
#pragma once

#include "connection.h"
#include "endpoint.h"
#include "rewrite.h"

/* How long a record is valid without another fragment, and how long a fragment is held. A receiver
 * waits for 30 or 60 s, but an IPv4 identification may be reused sooner. */
#define FRAGMENT_SECONDS 5

/* Addresses and identification, all that a later fragment has, are easily forged: its first
 * fragment must have arrived on the same interface. */
INLINE void fragment_key_of(struct __sk_buff *skb, const struct packet *packet,
			    struct fragment_key *key)
{
	__builtin_memset(key, 0, sizeof(*key));
	address_copy(key->source, packet->tuple.source);
	address_copy(key->destination, packet->tuple.destination);
	key->identification = packet->identification;
	key->protocol = packet->ipv4 ? packet->tuple.protocol : 0;
	key->direction = packet->leaving ? DIRECTION_OUT : DIRECTION_IN;
	key->ifindex = packet->leaving ? 0 : skb->ifindex;
}

INLINE bool fragment_is_recent(__u32 since)
{
	/* Another CPU's clock may be a tick ahead. */
	return (__s32)(clock_second() - since) <= FRAGMENT_SECONDS;
}

/* Returns NULL where there is no room. */
INLINE struct fragment *fragment_open(const struct fragment_key *key)
{
	struct fragment fresh = {.last_seen = clock_second()};
	struct fragment *fragment = bpf_map_lookup_elem(&fragments, key);

	if (fragment && fragment_is_recent(fragment->last_seen))
		return fragment;
	bpf_map_update_elem(&fragments, key, &fresh, fragment ? BPF_EXIST : BPF_NOEXIST);
	return bpf_map_lookup_elem(&fragments, key);
}

INLINE bool fragment_is_translated(enum fragment_fate fate)
{
	return fate == FRAGMENT_TRANSLATED || fate == FRAGMENT_LEFT;
}

/* Returns whose packets the translation is about, or {0, 0}: of one that enters, the container that
 * gets it; of one that leaves, its sender or, with masqAll, its receiver. */
INLINE struct owner fragment_owner(const struct packet *packet,
				   const struct translation *translation, bool left)
{
	const struct tuple *tuple = &packet->tuple;
	const struct endpoint *endpoint;
	struct owner nobody = {};

	if (!left && !packet->leaving) {
		endpoint = endpoint_find(translation->address);
	} else {
		endpoint = endpoint_find(tuple->source);
		if (!endpoint)
			endpoint = endpoint_find(tuple->destination);
	}
	return endpoint && owner_live(&endpoint->owner) ? endpoint->owner : nobody;
}

/* Another CPU may have the same datagram's first fragment: then that one writes. */
INLINE void fragment_write(struct fragment *fragment, const struct packet *packet,
			   const struct translation *translation, bool left)
{
	__u32 version = *(volatile __u32 *)&fragment->version;

	if ((version & 1) ||
	    __sync_val_compare_and_swap(&fragment->version, version, version + 1) != version)
		return;
	fragment->translation = *translation;
	fragment->translation.port = 0; /* later fragments have none */
	fragment->translation.peer_port = 0;
	fragment->translation.report = 0;
	fragment->owner = fragment_owner(packet, translation, left);
	__sync_fetch_and_add(&fragment->version, 1);
}

/* Copies the translation. False: it is being written, or its container has gone. */
INLINE bool fragment_read(struct fragment *fragment, const struct packet *packet, bool left,
			  struct translation *translation)
{
	__u32 version = *(volatile __u32 *)&fragment->version;
	struct owner now, then;

	__builtin_memcpy(translation, &fragment->translation, sizeof(*translation));
	then = fragment->owner;
	if ((version & 1) || __sync_fetch_and_add(&fragment->version, 0) != version)
		return false;
	now = fragment_owner(packet, translation, left);
	return owner_equal(&now, &then);
}

/* Remembers a first fragment's fate. Returns the ticket of the newest fragment held, which the
 * caller must release with those before it; 0: none are held. */
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
	if (fragment_is_translated(fate))
		fragment_write(fragment, packet, translation, fate == FRAGMENT_LEFT);
	fragment->source_port = packet->tuple.source_port;
	fragment->last_seen = clock_second();
	*(volatile enum fragment_fate *)&fragment->fate = fate;
	if (fate == FRAGMENT_DROPPED)
		return 0;
	/* After the fate is set: held_keep() checks that after it has chained a fragment. */
	return __sync_lock_test_and_set(&fragment->newest, 0);
}

/* Finds a later fragment's fate. One that is passed gets the first one's source port, for its seal:
 * where a route has several next hops, all of a datagram must leave by the same one. */
GLOBAL_FUNCTION enum fragment_fate fragment_follow(struct __sk_buff *skb, struct packet *packet,
						   struct translation *translation)
{
	struct fragment *fragment;
	enum fragment_fate fate;
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
	fate = *(volatile enum fragment_fate *)&fragment->fate;
	if (fragment_is_translated(fate) &&
	    !fragment_read(fragment, packet, fate == FRAGMENT_LEFT, translation))
		return FRAGMENT_WAITING;
	if (fate == FRAGMENT_PASSED)
		packet->tuple.source_port = fragment->source_port;
	return fate;
}

/* When ports change, the new SCTP checksum depends on the length of the whole datagram, which only
 * the last fragment tells. If they stay, it does not change. */
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

#define MAX_HELD_EACH 64 /* 64 kB make 54 at IPv6's minimum MTU */
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

/* barrier_var(), because the verifier cannot follow the two comparisons merged into one. */
#define HELD_LENGTH_FITS(length) \
	({ \
		bool fits = (length) <= HELD_SIZE; \
		barrier_var(length); \
		fits && (length) >= sizeof(struct iphdr); \
	})

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

/* Copies the IP packet. Returns its ticket; 0: there is no room. */
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

/* Returns false where it is not held; the first fragment may have come meanwhile. */
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
	/* fragment_remember() sets the fate before it takes the chain. */
	if (*(volatile enum fragment_fate *)&fragment->fate != FRAGMENT_WAITING)
		return !held_give_up(place, ticket);
	count(fragment_held);
	return true;
}

/* Sends a held fragment in, in a clone of skb. Returns the ticket of the previous one; 0: none. */
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
		return 0; /* reused by another fragment, maybe its bytes too */
	if (!error && !bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		count(fragment_released);
	return previous;
}

/* Sends in the first fragment as it came, then the held ones. skb is useless afterwards. */
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

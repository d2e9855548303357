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
 * its datagram's limit, goes on unchanged.
 *
 * A datagram has one of the FRAGMENT_PLACES places of a row, which a secret hash chooses. So has a
 * copy, of a row that is drawn. Where all are taken, the account that has most of them, counting
 * the newcomer's, gives up the one that was silent for longest. The account is the container that
 * the datagram is sent to or by where that is known, else the interface where it arrived. So a
 * flood takes from its target's datagrams alone, and fragments that nobody has asked for take from
 * those that have come by the same way and are of no container.
 */
#pragma once

#include "connection.h"
#include "endpoint.h"
#include "rewrite.h"
#include "siphash.h"

/* How long a record is valid without another fragment, and how long a fragment is held. A receiver
 * waits for 30 or 60 s, but an IPv4 identification may be reused sooner. */
#define FRAGMENT_SECONDS 5

/* Another CPU's clock may be a tick ahead. Without a branch, at each of which the verifier would go
 * two ways, and this eight times in a row. */
INLINE __u64 fragment_age(__u64 now, __u64 since)
{
	__s64 age = now - since, ahead = age >> 63;

	barrier_var(ahead);
	return age & ~ahead;
}

INLINE bool fragment_is_recent(__u64 now, __u64 since)
{
	return fragment_age(now, since) <= FRAGMENT_SECONDS * NSEC_PER_SEC;
}

/* Without a branch, too */
INLINE __u32 accounts_equal(__u32 one, __u32 other)
{
	__u32 difference = one ^ other;

	return (~difference & (difference - 1)) >> 31;
}

INLINE void contest_enter(struct contest *contest, __u32 i, __u32 account, __u64 age)
{
	contest->accounts[i] = account;
	contest->over[i] = (FRAGMENT_SECONDS * NSEC_PER_SEC - age) >> 63;
	contest->ages[i] = age >> 20;
}

/* Returns which place gives way to a newcomer of this account. A rank has, from the highest bit on,
 * whether the place's time is over, how many its account has, its age, and its number. The greatest
 * is found without a branch, around which the compiler would arrange the loop so that its end runs
 * into its beginning: Linux 6.1 accepts only a jump there. */
INLINE __u32 contest_loser(const struct contest *contest, __u32 newcomer)
{
	__s64 most = 0, rank, less, mask;

	for (__u32 i = 0; i < FRAGMENT_PLACES; i++) {
		rank = accounts_equal(contest->accounts[i], newcomer);
		for (__u32 j = 0; j < FRAGMENT_PLACES; j++)
			rank += accounts_equal(contest->accounts[i], contest->accounts[j]);
		rank = contest->over[i] << 62 | rank << 40 | (__u64)contest->ages[i] << 4 | i;
		less = most - rank;
		mask = less >> 63;
		barrier_var(mask); /* or the compiler makes a branch of it */
		most -= less & mask;
	}
	return most & (FRAGMENT_PLACES - 1);
}

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

/* Writes the packet's key to scratch. Returns the number of its row. */
GLOBAL_FUNCTION __u32 fragment_row_number(struct __sk_buff *skb, const struct packet *packet)
{
	struct fragment_key *key = &scratch_get()->datagram;
	struct sip_state state = sip_begin(SINGLE(meta)->port_seed);

	if (!packet)
		return 0;
	fragment_key_of(skb, packet, key);
	for (__u32 i = 0; i < sizeof(*key) / sizeof(__u64); i++)
		sip_take(&state, ((const __u64 *)key)[i]);
	return sip_end(&state) % FRAGMENT_ROWS;
}

INLINE struct fragment_row *fragment_row_of(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 number = fragment_row_number(skb, packet);

	return bpf_map_lookup_elem(&fragments, &number);
}

/* Of a datagram that is of no container, as far as is known. Slots are smaller. */
INLINE __u32 fragment_account_unknown(const struct fragment_key *key)
{
	return ~key->ifindex;
}

/* What a container sends does not pay for what others send to it. */
INLINE __u32 fragment_account(const struct fragment_key *key, const struct owner *owner)
{
	return owner->slot ? owner->slot << 1 | (key->direction == DIRECTION_OUT)
			   : fragment_account_unknown(key);
}

/* Under the row's lock, where nothing can be called. NULL: the datagram has no place. */
INLINE struct fragment *fragment_find(struct fragment_row *row, const struct fragment_key *key,
				      __u64 now)
{
	for (__u32 i = 0; i < FRAGMENT_PLACES; i++)
		if (words_equal(&row->places[i].key, key, sizeof(*key)) &&
		    fragment_is_recent(now, row->places[i].last_seen))
			return &row->places[i];
	return NULL;
}

/* Under the row's lock. Returns the datagram's place; a new one is not translated yet. */
INLINE struct fragment *fragment_open(struct fragment_row *row, struct scratch *scratch,
				      __u32 account, __u64 now)
{
	struct fragment *place = fragment_find(row, &scratch->datagram, now);

	if (place)
		return place;
	for (__u32 i = 0; i < FRAGMENT_PLACES; i++)
		contest_enter(&scratch->contest, i, row->places[i].account,
			      fragment_age(now, row->places[i].last_seen));
	place = &row->places[contest_loser(&scratch->contest, account)];
	__builtin_memset(place, 0, sizeof(*place));
	__builtin_memcpy(&place->key, &scratch->datagram, sizeof(place->key));
	place->account = account;
	place->last_seen = now;
	return place;
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

/* Remembers a first fragment's fate. Returns the ticket of the newest fragment held, which the
 * caller must release with those before it; 0: none are held. */
GLOBAL_FUNCTION __u32 fragment_remember(struct __sk_buff *skb, const struct packet *packet,
					const struct translation *translation,
					enum fragment_fate fate)
{
	struct scratch *scratch = scratch_get();
	__u64 now = bpf_ktime_get_coarse_ns();
	struct fragment_row *row;
	struct fragment *place;
	struct owner owner = {};
	__u32 account, newest;

	if (!packet || !translation)
		return 0;
	row = fragment_row_of(skb, packet);
	if (!row)
		return 0;
	if (fragment_is_translated(fate))
		owner = fragment_owner(packet, translation, fate == FRAGMENT_LEFT);
	account = fragment_account(&scratch->datagram, &owner);
	bpf_spin_lock(&row->lock);
	place = fragment_open(row, scratch, account, now);
	if (fragment_is_translated(fate)) {
		place->translation = *translation;
		place->translation.port = 0; /* later fragments have none */
		place->translation.peer_port = 0;
		place->translation.report = 0;
	}
	place->owner = owner;
	place->account = account;
	place->source_port = packet->tuple.source_port;
	place->last_seen = now;
	place->fate = fate;
	newest = fate == FRAGMENT_DROPPED ? 0 : place->newest;
	place->newest = 0;
	bpf_spin_unlock(&row->lock);
	return newest;
}

/* Finds a later fragment's fate. One that is passed gets the first one's source port, for its seal:
 * where a route has several next hops, all of a datagram must leave by the same one. */
GLOBAL_FUNCTION enum fragment_fate fragment_follow(struct __sk_buff *skb, struct packet *packet,
						   struct translation *translation)
{
	const struct fragment_key *key = &scratch_get()->datagram;
	enum fragment_fate fate = FRAGMENT_WAITING;
	__u64 now = bpf_ktime_get_coarse_ns();
	struct owner owner, then = {};
	struct fragment_row *row;
	struct fragment *place;

	if (!packet || !translation)
		return FRAGMENT_WAITING;
	row = fragment_row_of(skb, packet);
	if (!row)
		return FRAGMENT_WAITING;
	bpf_spin_lock(&row->lock);
	place = fragment_find(row, key, now);
	if (place) {
		fate = place->fate;
		then = place->owner;
		place->last_seen = now;
		if (fragment_is_translated(fate))
			*translation = place->translation;
		else if (fate == FRAGMENT_PASSED)
			packet->tuple.source_port = place->source_port;
	}
	bpf_spin_unlock(&row->lock);
	if (!fragment_is_translated(fate))
		return fate;
	owner = fragment_owner(packet, translation, fate == FRAGMENT_LEFT);
	return owner_equal(&owner, &then) ? fate : FRAGMENT_WAITING; /* it has gone */
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

#define MAX_HELD_EACH 64  /* 64 kB make 54 at IPv6's minimum MTU */
#define HELD_ROWS_TRIED 2 /* another CPU may take the place that was chosen */
/* Its first fragment has at least this time, nanoseconds, to arrive. What finds no place meanwhile
 * goes on, which is right for what is the host's own. */
#define HELD_LEAST (20 * 1000 * 1000)
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

/* Returns the ticket of a place in the row with this number, which is the caller's to write. 0:
 * there is none. */
GLOBAL_FUNCTION __u32 held_take(__u32 row, __u32 account)
{
	struct contest *contest = &scratch_get()->contest;
	__u64 now = bpf_ktime_get_coarse_ns();
	struct held_fragment *place;
	__u32 seen;

	row = TICKET_VALID | (row & ~(FRAGMENT_PLACES - 1));
	for (__u32 i = 0; i < FRAGMENT_PLACES; i++) {
		place = held_at(row + i);
		if (!place)
			return 0;
		contest_enter(contest, i, place->account,
			      place->ticket == TICKET_FREE ? now : fragment_age(now, place->since));
	}
	row += contest_loser(contest, account);
	place = held_at(row);
	if (!place)
		return 0;
	seen = *(volatile __u32 *)&place->ticket;
	if (seen == TICKET_WRITING ||
	    (seen != TICKET_FREE && fragment_age(now, place->since) < HELD_LEAST) ||
	    __sync_val_compare_and_swap(&place->ticket, seen, TICKET_WRITING) != seen)
		return 0;
	place->since = now;
	place->account = account;
	return row;
}

INLINE bool held_give_up(struct held_fragment *place, __u32 ticket)
{
	return __sync_val_compare_and_swap(&place->ticket, ticket, TICKET_FREE) == ticket;
}

/* Copies the IP packet. Returns its ticket; 0: there is no room. */
GLOBAL_FUNCTION __u32 held_store(struct __sk_buff *skb, const struct packet *packet)
{
	struct held_fragment *place;
	__u32 length, ticket = 0;

	if (!packet)
		return 0;
	length = packet->end - packet->l3_offset;
	if (!HELD_LENGTH_FITS(length))
		return 0;
	for (int i = 0; i < HELD_ROWS_TRIED && !ticket; i++)
		ticket = held_take(bpf_get_prandom_u32(),
				   fragment_account_unknown(&scratch_get()->datagram));
	place = held_at(ticket);
	if (!ticket || !place)
		return 0;
	place->length = length;
	place->ifindex = skb->ifindex;
	if (!packet_load(skb, packet->l3_offset, place->bytes, length))
		ticket = 0;
	*(volatile __u32 *)&place->ticket = ticket;
	return ticket;
}

/* Before a fragment is stored (ticket 0): counts it. Afterwards: chains it behind those of its
 * datagram. False: there are too many, or the first one has come. */
GLOBAL_FUNCTION bool held_admit(struct __sk_buff *skb, const struct packet *packet, __u32 ticket)
{
	struct held_fragment *held_place = held_at(ticket);
	struct scratch *scratch = scratch_get();
	__u64 now = bpf_ktime_get_coarse_ns();
	struct fragment_row *row;
	struct fragment *place;
	bool admitted;

	if (!packet || !held_place)
		return false;
	row = fragment_row_of(skb, packet);
	if (!row)
		return false;
	bpf_spin_lock(&row->lock);
	place = fragment_open(row, scratch, fragment_account_unknown(&scratch->datagram), now);
	admitted = place->fate == FRAGMENT_WAITING;
	if (ticket && admitted) {
		held_place->previous = place->newest;
		place->newest = ticket;
	} else if (admitted) {
		admitted = place->held < MAX_HELD_EACH;
		place->held += admitted;
	}
	bpf_spin_unlock(&row->lock);
	return admitted;
}

/* Returns false where it is not held; the first fragment may have come meanwhile. */
GLOBAL_FUNCTION bool held_keep(struct __sk_buff *skb, const struct packet *packet)
{
	struct held_fragment *place;
	__u32 ticket;

	if (!packet || !held_admit(skb, packet, 0))
		return false;
	ticket = held_store(skb, packet);
	place = held_at(ticket);
	if (!ticket || !place)
		return false;
	if (!held_admit(skb, packet, ticket)) {
		held_give_up(place, ticket);
		return false;
	}
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
	if (!fragment_is_recent(bpf_ktime_get_coarse_ns(), place->since) ||
	    place->ifindex != skb->ifindex)
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

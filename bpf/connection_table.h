/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection_table.h - how a connection begins, and how it ends. Assured ones: assured.h.
 *
 *              left the stack       reply       TCP: third packet       FINs, RST
 *   unconfirmed ---------> half-open ---> replied ---------> assured <-----------> closed
 *   (direct.h)                |              |    or 2 seconds  |   both go on       |
 *        |                    +--- evicted --+                  |                    |
 *        |                    |              |                  |                    |
 *        +--------------------+--------------+-- DEL, time-out -+--- the hand -------+--> id 0
 *
 *   place:    in the ring `half_open`                           in `assured`
 *   `state`:  UNCONFIRMED           REPLIED                     ASSURED, COUNTED     no COUNTED
 *
 * A half-open connection takes one of the next RING_STEPS places of a ring: a free one, one whose
 * owner has gone, or the one whose account has most, and evicts the connection there. If the
 * newcomer's own account has more, it tries places elsewhere, as a flood may have left many of one
 * account in a row, and is refused after RING_TRIES. So a flood cannot evict connections of an
 * account that has fewer (shares.h). A ring of 32,768 places turns in 0.1 s at 300,000 SYN a
 * second: a client of the flooded container must answer within that time, as with netfilter before
 * its table is full.
 *
 * Places, records and aliases have an `id`, and whoever exchanges it for another may change them:
 * so a record is counted and deleted once. Free memory has id 0, so nobody mistakes it, or what has
 * reused it, for what was there before; a record with id 0 is dead. A program that gives a
 * connection something (a count, a place, an alias) looks at the id afterwards, and takes back what
 * the one that ended it may not have found.
 */
#pragma once

#include "alias.h"

#define PLACE_FREE 0
#define PLACE_BUSY 1
#define RING_STEPS 4
#define RING_TRIES 8 /* another CPU was faster, or all places belong to owners with fewer */

const volatile __u32 half_open_places = MIN_HALF_OPEN; /* without place 0; set by the loader */

/* Whether a connection could begin, or become assured. */
enum admission {
	ADMISSION_OK,      /* it did, or had before */
	ADMISSION_TAKEN,   /* another live connection has this tuple */
	ADMISSION_FULL,    /* there is no room */
	ADMISSION_LIMITED, /* its owner or client has reached its limit */
};

INLINE void draft_track(struct connection *connection, const struct packet *packet, enum way way)
{
	struct tcp_numbers *sent = &connection->tcp[way];

	if (packet->tuple.protocol != PROTOCOL_TCP || packet_tcp_is_odd(packet) ||
	    (packet->tcp_flags & TCP_RST))
		return;
	sent->sequence_end = packet->tcp_sequence + packet->tcp_sequence_length;
	connection->state |= SENDER(STATE_SEQUENCE, way);
	if (!(packet->tcp_flags & TCP_ACK))
		return;
	sent->acknowledged = packet->tcp_acknowledgment;
	connection->state |= SENDER(STATE_ACKNOWLEDGED, way);
}

/* Starts the draft of a connection that this packet begins; untranslated so far. */
INLINE struct draft *draft_begin(const struct packet *packet, enum way way,
				 const struct owner *owner, enum flow_kind kind, __u32 state)
{
	struct draft *draft = draft_get();
	struct connection *connection = &draft->connection;

	connection_key_of(&packet->tuple, way, &draft->key);
	__builtin_memset(connection, 0, sizeof(*connection));
	connection->owner = *owner;
	connection->id = owner->generation << 16 | 2 | (bpf_get_prandom_u32() & 0xffff);
	connection->state = state;
	address_copy(connection->external_address, draft->key.inside);
	connection->external_port = draft->key.inside_port;
	connection->peer_port = draft->key.outside_port;
	connection->kind = kind;
	connection->begun_inside = way == OUTWARDS;
	draft_track(connection, packet, way);
	return draft;
}

INLINE struct half_open *half_open_at(__u32 number)
{
	return number ? bpf_map_lookup_elem(&half_open, &number) : NULL;
}

INLINE struct assured *assured_at(__u32 number)
{
	return number ? bpf_map_lookup_elem(&assured, &number) : NULL;
}

/* False: the connection with this id had left the place already. */
INLINE bool half_open_leave(struct half_open *place, __u32 id, __u32 to)
{
	__u32 slot = place->slot, out = place->charged_out & 1, counted = place->counted;
	struct share *share;

	if (__sync_val_compare_and_swap(&place->id, id, to) != id)
		return false;
	if (id == PLACE_FREE || !counted)
		return true;
	share = bpf_map_lookup_elem(&shares, &slot);
	if (share && (__u16)share->generation == id >> 16)
		__sync_fetch_and_add(&share->half_open[out], -1);
	return true;
}

INLINE void place_leave(const struct connection *connection, __u32 id)
{
	struct half_open *ring;
	struct assured *place;

	if (connection->state & STATE_ASSURED) {
		place = assured_at(connection->place);
		if (place)
			__sync_val_compare_and_swap(&place->id, id, PLACE_FREE);
		return;
	}
	ring = half_open_at(connection->place);
	if (ring)
		half_open_leave(ring, id, PLACE_FREE);
}

/* Ends the connection if its id is still this one: removes counts, place, alias and record. */
GLOBAL_FUNCTION bool connection_end(const struct connection_key *ended, __u32 id)
{
	struct scratch *scratch = scratch_get();
	struct connection_key *key = &scratch->ended;
	struct connection *connection;

	if (!ended || !id)
		return false;
	__builtin_memcpy(key, ended, sizeof(*key));
	connection = bpf_map_lookup_elem(&connections, key);
	if (!connection || __sync_val_compare_and_swap(&connection->id, id, 0) != id)
		return false;
	share_uncount(key, connection);
	place_leave(connection, id);
	if (connection_has_alias(key, connection)) {
		connection_external_key(key, connection, &scratch->ended_external);
		alias_delete(&scratch->ended_external, id);
	}
	if (!TABLE_DELETE(connections, key))
		return true;
	/* Whoever meets it next ends it. */
	__sync_val_compare_and_swap(&connection->id, 0, id);
	return false;
}

INLINE __u8 connection_account(const struct connection *connection)
{
	return (connection->state & STATE_CHARGED_OUT) != 0;
}

/* Returns whether the inside is the owner. It is not where the owner's mapping has its clients
 * masqueraded, nor in an untranslated connection that one container has begun to another. */
INLINE bool connection_is_of_owner(const struct connection *connection)
{
	return connection_account(connection) == connection->begun_inside;
}

/* Returns 0 if the count is of a predecessor in the slot. */
INLINE __s32 half_open_count(__u32 slot, __u32 id, __u8 account)
{
	struct share *share = bpf_map_lookup_elem(&shares, &slot);

	return share && (__u16)share->generation == id >> 16 ? share->half_open[account & 1] : 0;
}

/* Returns, of RING_STEPS places from the hand on, the first that is free or whose owner has gone,
 * else the one whose account has most, if no fewer than the newcomer's. 0: there is none. */
INLINE __u32 half_open_choose(__u32 hand, const struct connection *newcomer)
{
	__s32 count, most, own;
	__u32 number, best = 0, slot;
	struct half_open *place;

	own = half_open_count(newcomer->owner.slot, newcomer->id, connection_account(newcomer));
	most = own;
	for (int i = 0; i < RING_STEPS; i++) {
		number = 1 + (hand + i) % half_open_places;
		place = half_open_at(number);
		if (!place || place->id == PLACE_BUSY)
			continue;
		slot = place->slot;
		if (place->id == PLACE_FREE || !owner_of_id_live(slot, place->id))
			return number;
		count = half_open_count(slot, place->id, place->charged_out);
		if (count > most || (count == own && !best)) {
			most = count;
			best = number;
		}
	}
	return best;
}

/* Takes a ring place for the draft, among the next ones or `anywhere`, and leaves it busy. False:
 * none, or another CPU got it. */
GLOBAL_FUNCTION bool draft_take_place(bool anywhere)
{
	struct draft *draft = draft_get();
	struct usage *all = SINGLE(usage);
	struct half_open *place;
	__u32 hand, seen;

	hand = anywhere ? bpf_get_prandom_u32() : __sync_fetch_and_add(&all->half_open_hand, 1);
	draft->connection.place = half_open_choose(hand, &draft->connection);
	if (!anywhere) /* it counts from 0 and points behind the place */
		all->half_open_hand = draft->connection.place ?: hand + RING_STEPS;
	place = half_open_at(draft->connection.place);
	if (!place)
		return false;
	seen = *(volatile __u32 *)&place->id;
	if (seen == PLACE_BUSY || !half_open_leave(place, seen, PLACE_BUSY))
		return false;
	if (seen != PLACE_FREE && connection_end(&place->key, seen))
		count(flow_pushed_out);
	return true;
}

INLINE void draft_settle(struct half_open *place, const struct draft *draft)
{
	struct share *share = share_of(&draft->connection.owner);

	__builtin_memcpy(&place->key, &draft->key, sizeof(place->key));
	place->slot = draft->connection.owner.slot;
	place->charged_out = connection_account(&draft->connection);
	place->counted = share != NULL; /* not while another CPU resets it */
	if (share)
		__sync_fetch_and_add(&share->half_open[place->charged_out & 1], 1);
	__sync_lock_test_and_set(&place->id, draft->connection.id);
}

/* A dead or unconfirmed connection is replaced by the new one. */
INLINE int draft_insert_record(const struct draft *draft)
{
	const struct connection_key *key = &draft->key;
	int error = bpf_map_update_elem(&connections, key, &draft->connection, BPF_NOEXIST);
	const struct connection *other;
	__u32 id;

	if (error != -EEXIST)
		return error;
	other = bpf_map_lookup_elem(&connections, key);
	if (!other)
		return error;
	id = *(volatile __u32 *)&other->id; /* before it is judged */
	if (!(other->state & STATE_UNCONFIRMED) &&
	    connection_lives(key, other, draft->connection.last_seen))
		return error;
	connection_end(key, id);
	return bpf_map_update_elem(&connections, key, &draft->connection, BPF_NOEXIST);
}

/* Begins the draft's connection, half-open. It gets its place first: whoever ends it finds that. If
 * it is evicted meanwhile, its record has not been found. */
GLOBAL_FUNCTION enum admission draft_admit(void)
{
	struct draft *draft = draft_get();
	struct half_open *place;
	bool taken = false;
	int error;

	draft->connection.last_seen = clock_second();
	if (draft->key.protocol != PROTOCOL_TCP)
		draft->connection.begun = draft->connection.last_seen;
	for (int i = 0; i < RING_TRIES && !taken; i++)
		taken = draft_take_place(i > 0);
	place = half_open_at(draft->connection.place);
	if (!taken || !place)
		return ADMISSION_FULL;
	draft_settle(place, draft);
	error = draft_insert_record(draft);
	if (!error) {
		if (*(volatile __u32 *)&place->id != draft->connection.id)
			connection_end(&draft->key, draft->connection.id);
		return ADMISSION_OK;
	}
	half_open_leave(place, draft->connection.id, PLACE_FREE);
	/* The next connection takes this place instead of evicting another. */
	SINGLE(usage)->half_open_hand = draft->connection.place - 1;
	return error == -EEXIST ? ADMISSION_TAKEN : ADMISSION_FULL;
}

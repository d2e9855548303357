/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection_table.h - how a connection begins, becomes assured, and ends.
 *
 * A half-open connection takes one of the next RING_STEPS places of a ring: a free one, one whose
 * owner has gone, or the one whose account has most, and evicts the connection there. Connections
 * that others begin to a container and those that it begins itself are two accounts. If the
 * newcomer's own account has more, it tries places elsewhere, as a flood may have left many of one
 * account in a row, and is refused after RING_TRIES. So a flood cannot evict connections of an
 * account that has fewer. A ring of 32,768 places turns in 0.1 s at 300,000 SYN a second: a client
 * of the flooded container must answer within that time, as with netfilter before its table is
 * full; clients of other containers, and what the container itself begins, are not affected.
 *
 * An assured connection is never evicted alive. A hand goes round over the places, as in the clock
 * algorithm for pages, and stops at the first that is free, or whose connection is dead or closed.
 * Closed connections are spared at first, for late segments, and taken if the next few places have
 * nothing else. Those that are idle for hours are spared while the table has room.
 * `protected_until` saves the lookup of the record.
 *
 * Places, records and aliases have an `id`, and whoever exchanges it for another may change them:
 * so a record is counted and deleted once. Memory that is free has id 0, so nobody can mistake it,
 * or what has reused it, for what was there before. Until a record with id 0 is deleted, other
 * programs see a dead one. A program that gives an ended connection something (a count, a place, an
 * alias) looks at the id afterwards, and takes back what the one that ended it may not have found.
 */
#ifndef BPF_PORTMAP_CONNECTION_TABLE_H
#define BPF_PORTMAP_CONNECTION_TABLE_H

#include "alias.h"

#define PLACE_FREE 0
#define PLACE_BUSY 1
#define RING_STEPS 4
#define RING_TRIES 8 /* another CPU was faster, or all places belong to owners with fewer */
#define HAND_STEPS 16
#define HAND_ROUNDS 8 /* of HAND_STEPS: places that a newcomer checks */
/* The same where the count of connections shows room. If all these places have live ones, it takes
 * about 0.1 ms. */
#define FAR_STEPS 128
#define FAR_ROUNDS 128
/* A search for dead ones, a few microseconds long, once a millisecond at most: so many rounds of so
 * many places, until CLEAN_LOOKS connections had to be looked at. */
#define CLEAN_STEPS 32
#define CLEAN_ROUNDS 32
#define CLEAN_LOOKS 48
#define FEW_PART 64             /* few places are free: less than a 64th */
#define PRESSURE_PART 4         /* pressure: less than a quarter is free */
#define PRESSURE_TICK 2         /* seconds until pressure is checked again */
#define PRESSURE_SECONDS_TCP 60 /* TCP that has never carried data */

const volatile __u32 half_open_places = MIN_HALF_OPEN; /* without place 0; set by the loader */

/* Whether a connection could begin, or become assured. */
enum admission {
	ADMISSION_OK,      /* it did, or had before */
	ADMISSION_TAKEN,   /* another live connection has this tuple */
	ADMISSION_FULL,    /* there is no room */
	ADMISSION_LIMITED, /* its owner or client has reached its limit */
};

/* Remembers the sequence numbers of the packet that begins a TCP connection. */
INLINE void draft_track(struct connection *connection, const struct packet *packet, enum way way)
{
	struct tcp_numbers *sent = &connection->tcp[way];

	if (packet->tuple.protocol != PROTOCOL_TCP || packet_tcp_is_odd(packet) ||
	    (packet->tcp_flags & TCP_RST))
		return;
	sent->sequence_end = packet->tcp_sequence + packet->tcp_sequence_length;
	connection->state |= SENDER(STATE_SEQUENCE_INSIDE, way);
	if (!(packet->tcp_flags & TCP_ACK))
		return;
	sent->acknowledged = packet->tcp_acknowledgment;
	connection->state |= SENDER(STATE_ACKNOWLEDGED_INSIDE, way);
}

/* Starts the draft of a connection, begun by a packet of this direction; untranslated so far. */
INLINE struct draft *draft_begin(const struct packet *packet, enum way way,
				 const struct owner *owner, enum flow_kind kind, __u32 state)
{
	struct draft *draft = draft_get();
	struct connection *connection;

	if (!draft)
		return NULL;
	connection = &draft->connection;
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

/* Takes a ring place from the connection with this id. False: it had left it already. */
INLINE bool half_open_leave(struct half_open *place, __u32 id, __u32 to)
{
	__u32 slot = place->slot, out = place->charged_out & 1;
	struct share *share;

	if (__sync_val_compare_and_swap(&place->id, id, to) != id)
		return false;
	if (id == PLACE_FREE)
		return true;
	share = bpf_map_lookup_elem(&shares, &slot);
	if (share && (__u16)share->generation == id >> 16)
		__sync_fetch_and_add(&share->half_open[out], -1);
	return true;
}

/* Frees the place of a connection that had this id. */
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
	struct connection *connection;
	struct connection_key *key;

	if (!ended || !scratch || !id)
		return false;
	key = &scratch->ended;
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

/* Returns how many half-open connections this account of this id's owner has; 0 if the count is a
 * predecessor's in its slot. */
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
GLOBAL_FUNCTION bool half_open_take(bool anywhere)
{
	struct draft *draft = draft_get();
	struct usage *all = SINGLE(usage);
	struct half_open *place;
	__u32 hand, seen;

	if (!draft || !all)
		return false;
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

/* Gives the place to the connection. */
INLINE void half_open_settle(struct half_open *place, const struct draft *draft)
{
	struct share *share = share_of(&draft->connection.owner);

	__builtin_memcpy(&place->key, &draft->key, sizeof(place->key));
	place->slot = draft->connection.owner.slot;
	place->charged_out = connection_account(&draft->connection);
	if (share)
		__sync_fetch_and_add(&share->half_open[place->charged_out & 1], 1);
	__sync_lock_test_and_set(&place->id, draft->connection.id);
}

/* A dead or unconfirmed connection is replaced by the new one. */
INLINE int draft_insert(const struct draft *draft)
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

/* Begins the connection of the draft, half-open. It gets its place first: whoever ends it finds
 * that. If another connection has evicted it meanwhile, that has not found the record. */
GLOBAL_FUNCTION enum admission connection_create(void)
{
	struct draft *draft = draft_get();
	struct half_open *place;
	struct usage *all;
	bool taken = false;
	int error;

	if (!draft)
		return ADMISSION_FULL;
	draft->connection.last_seen = clock_second();
	if (draft->key.protocol == PROTOCOL_UDP)
		draft->connection.begun = draft->connection.last_seen;
	for (int i = 0; i < RING_TRIES && !taken; i++)
		taken = half_open_take(i > 0);
	place = half_open_at(draft->connection.place);
	if (!taken || !place)
		return ADMISSION_FULL;
	half_open_settle(place, draft);
	error = draft_insert(draft);
	if (!error) {
		if (*(volatile __u32 *)&place->id != draft->connection.id)
			connection_end(&draft->key, draft->connection.id);
		return ADMISSION_OK;
	}
	half_open_leave(place, draft->connection.id, PLACE_FREE);
	/* The next connection takes this place instead of evicting another. */
	all = SINGLE(usage);
	if (all)
		all->half_open_hand = draft->connection.place - 1;
	return error == -EEXIST ? ADMISSION_TAKEN : ADMISSION_FULL;
}

INLINE bool table_is_pressed(void)
{
	struct usage *all = SINGLE(usage);

	return all && all->assured > assured_places - assured_places / PRESSURE_PART;
}

/* Which live connections give up their places: those idle for hours always do under pressure. */
#define TAKES_CLOSED 1
#define TAKES_IDLE 2

/* Returns the idle seconds after which the hand may take its place. */
INLINE __u32 connection_patience(const struct connection_key *key,
				 const struct connection *connection, bool pressed)
{
	if (key->protocol == PROTOCOL_TCP && pressed && !(connection->state & STATE_DATA))
		return PRESSURE_SECONDS_TCP;
	return connection_spared(key, connection);
}

/* Returns whether the place's connection is dead; if not, protects it anew. TCP without data is
 * checked again after its time-out under pressure, as pressure may come. */
INLINE bool assured_is_dead(struct assured *place, __u32 now, __u32 takes)
{
	const struct connection_key *key = &place->key;
	struct connection *connection = bpf_map_lookup_elem(&connections, key);
	bool pressed = table_is_pressed();
	__u32 idle, patience;

	if (!connection || connection->id != place->id || !connection_lives(key, connection, now))
		return true;
	idle = connection_idle(connection, now);
	if (state_is_closed(connection->state))
		return (takes & TAKES_CLOSED) || idle > CLOSED_SECONDS;
	patience = connection_patience(key, connection, pressed);
	if (idle > patience && (pressed || (takes & TAKES_IDLE)))
		return true;
	patience = connection_patience(key, connection, true);
	place->protected_until = now + (patience > idle ? patience - idle : PRESSURE_TICK);
	return false;
}

/* Marks a place busy if it is free or its connection is dead. */
GLOBAL_FUNCTION bool assured_claim(__u32 number, __u32 takes)
{
	struct assured *place = assured_at(number);
	__u32 seen, now;

	if (!place)
		return false;
	seen = *(volatile __u32 *)&place->id;
	if (seen == PLACE_FREE)
		return __sync_val_compare_and_swap(&place->id, seen, PLACE_BUSY) == seen;
	if (seen == PLACE_BUSY)
		return false;
	now = clock_second();
	if ((__s32)(place->protected_until - now) > 0 && owner_of_id_live(place->slot, seen))
		return false;
	if (!assured_is_dead(place, now, takes) ||
	    __sync_val_compare_and_swap(&place->id, seen, PLACE_BUSY) != seen)
		return false;
	connection_end(&place->key, seen);
	return true;
}

INLINE void assured_free(__u32 number)
{
	struct assured *place = assured_at(number);

	if (place)
		__sync_lock_test_and_set(&place->id, PLACE_FREE);
}

/* Returns true if the time, in any unit, has changed since the last call, for only one of all
 * callers. */
INLINE bool usage_tick(__u32 *last, __u32 now)
{
	__u32 before = *last;

	return before != now && __sync_val_compare_and_swap(last, before, now) == before;
}

/* Moves the hand, FAR_STEPS at most. Returns a place that it has made busy, or 0. */
GLOBAL_FUNCTION __u32 assured_seek(__u32 steps, __u32 takes)
{
	struct usage *all = SINGLE(usage);
	__u32 hand, number;

	if (!all)
		return 0;
	hand = all->assured_hand;
	for (__u32 i = 0; i < FAR_STEPS && i < steps; i++) {
		number = 1 + (hand + i) % assured_places;
		if (assured_claim(number, takes)) {
			all->assured_hand = number;
			return number;
		}
	}
	all->assured_hand = (hand + steps) % assured_places;
	return 0;
}

/* Returns a place for a connection; 0: the table is full. Connections that began together are in
 * adjacent places: if the count shows room, the hand goes on until it has passed them. */
INLINE __u32 assured_claim_any(void)
{
	struct usage *all = SINGLE(usage);
	__u32 number = 0;

	for (int i = 0; i < HAND_ROUNDS && !number; i++)
		number = assured_seek(HAND_STEPS, i >= HAND_ROUNDS / 2 ? TAKES_CLOSED : 0);
	if (number || !all || (__s32)(assured_places - all->assured) <= 0)
		return number;
	/* If few places are free, the long search is limited for all callers together. */
	if (assured_places - all->assured <= assured_places / FEW_PART &&
	    !usage_tick(&all->searched, bpf_ktime_get_coarse_ns() / (NSEC_PER_SEC / 10)))
		return 0;
	for (int i = 0; i < FAR_ROUNDS && !number; i++)
		number = assured_seek(FAR_STEPS, TAKES_CLOSED | TAKES_IDLE);
	return number;
}

/* Frees the place to which a hand points if its connection is dead; the next newcomer begins to
 * search there. Returns 1 if the connection had to be looked at, else 0. */
GLOBAL_FUNCTION int assured_clean_place(__u32 hand, __u32 now)
{
	__u32 number = 1 + hand % assured_places;
	struct assured *place = assured_at(number);
	struct usage *all = SINGLE(usage);
	bool protected;

	if (!all || !place || place->id <= PLACE_BUSY)
		return 0;
	protected = (__s32)(place->protected_until - now) > 0;
	if (!assured_claim(number, TAKES_IDLE))
		return !protected;
	assured_free(number);
	all->assured_hand = number - 1;
	return 1;
}

/* Moves the other hand by CLEAN_STEPS. Returns how many connections had to be looked at. */
GLOBAL_FUNCTION int assured_clean_some(void)
{
	struct usage *all = SINGLE(usage);
	__u32 hand, now = clock_second();
	int looks = 0;

	if (!all)
		return 0;
	hand = all->clean_hand;
	for (__u32 i = 0; i < CLEAN_STEPS; i++)
		looks += assured_clean_place(hand + i, now);
	all->clean_hand = (hand + CLEAN_STEPS) % assured_places;
	return looks;
}

/* Called after a refusal: dead connections may fill the table or the share. Frees some, and moves
 * the hand to free places for the next attempt; further refusals search on. */
GLOBAL_FUNCTION int assured_clean(void)
{
	struct usage *all = SINGLE(usage);
	int looks = 0;

	if (!all || !usage_tick(&all->cleaned, bpf_ktime_get_ns() >> 20))
		return 0;
	for (int i = 0; i < CLEAN_ROUNDS && looks < CLEAN_LOOKS; i++)
		looks += assured_clean_some();
	return 0;
}

INLINE void assured_fill(struct assured *place, const struct connection_key *key,
			 const struct connection *connection, __u32 id)
{
	__builtin_memcpy(&place->key, key, sizeof(*key));
	place->slot = connection->owner.slot;
	place->protected_until = connection->last_seen + connection_patience(key, connection, true);
	__sync_lock_test_and_set(&place->id, id);
}

/* Shortens the protection: the connection's time-out has become shorter. */
INLINE void assured_expose(const struct connection *connection, __u32 until)
{
	struct assured *place = assured_at(connection->place);

	if (place && place->id == connection->id && (__s32)(place->protected_until - until) > 0)
		place->protected_until = until;
}

/* A closed connection is no longer counted, and the hand may take its place. */
INLINE void connection_close(const struct connection_key *key, struct connection *connection,
			     __u32 now)
{
	share_uncount(key, connection);
	assured_expose(connection, now);
	if (!state_is_closed(connection->state)) /* another CPU has reopened it */
		share_count(key, connection);
}

/* Moves a connection from the ring to `assured`, where a flood cannot evict it. */
GLOBAL_FUNCTION enum admission connection_assure(const struct connection_key *key,
						 struct connection *connection)
{
	struct assured *place;
	struct half_open *ring;
	__u32 id, number, state;

	if (!key || !connection)
		return ADMISSION_OK;
	id = connection->id;
	if (!share_left_to(key, connection))
		return ADMISSION_LIMITED;
	number = assured_claim_any();
	place = assured_at(number);
	if (!place)
		return ADMISSION_FULL;
	/* Only one program gets the connection's ring place: to end it, or to assure it. */
	ring = half_open_at(connection->place);
	if (connection->id != id || !ring || !half_open_leave(ring, id, PLACE_FREE)) {
		assured_free(number);
		return ADMISSION_OK;
	}
	connection->place = number;
	assured_fill(place, key, connection, id);
	state = __sync_fetch_and_or(&connection->state, STATE_ASSURED | STATE_COUNTED);
	share_add(key, connection, 1);
	count(flow_promoted);
	if (*(volatile __u32 *)&connection->id != id) {
		share_uncount(key, connection);
		__sync_val_compare_and_swap(&place->id, id, PLACE_FREE);
	} else if (state_is_closed(state)) {
		connection_close(key, connection, clock_second());
	}
	return ADMISSION_OK;
}

#endif

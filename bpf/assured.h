/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * assured.h - the places of assured connections, which are not evicted alive.
 *
 * A hand goes round over the places, as in the clock algorithm for pages, and stops at the first
 * that is free, or whose connection is dead. Closed connections are spared at first, for late
 * segments, and taken if the next few places have nothing else. Those that are idle for hours are
 * spared while the table has room, half-closed ones while their account and their client may have
 * more. `protected_until` saves the lookup of the record.
 */
#pragma once

#include "connection_table.h"

#define HAND_STEPS 64 /* places that a newcomer checks; then as many again, closed ones too */
/* of HAND_STEPS, where the count of connections shows room: about 0.1 ms */
#define FAR_ROUNDS 256
/* A search for dead ones, of a few microseconds for each millisecond since the last one: so many
 * places, until CLEAN_LOOKS connections had to be looked at; CLEAN_ROUNDS times that at most. */
#define CLEAN_STEPS 512
#define CLEAN_LOOKS 96
#define CLEAN_ROUNDS 4
#define FEW_PART 64             /* few places are free: less than a 64th */
#define PRESSURE_PART 4         /* pressure: less than a quarter is free */
#define PRESSURE_TICK 2         /* seconds until pressure is checked again */
#define PRESSURE_SECONDS_TCP 60 /* TCP that has never carried data */
/* Half-closed TCP where its account, or its client, has nearly all that it may have. What the side
 * that has sent FIN repeats does not count (connection_is_kept()). */
#define LIMIT_SECONDS_HALF_CLOSED 15

/* Which live connections give up their places */
#define TAKES_CLOSED 1
#define TAKES_IDLE 2        /* for hours */
#define TAKES_DATALESS 4    /* TCP that has never carried data, idle for PRESSURE_SECONDS_TCP */
#define TAKES_HALF_CLOSED 8 /* TCP idle for LIMIT_SECONDS_HALF_CLOSED */

/* Returns the idle seconds after which the hand may take its place. */
INLINE __u32 connection_patience(const struct connection_key *key,
				 const struct connection *connection, __u32 takes)
{
	if ((takes & TAKES_HALF_CLOSED) && (connection->state & STATE_FINS))
		return LIMIT_SECONDS_HALF_CLOSED;
	if (key->protocol == PROTOCOL_TCP && (takes & TAKES_DATALESS) &&
	    !(connection->state & STATE_DATA))
		return PRESSURE_SECONDS_TCP;
	return connection_spared(key, connection);
}

/* Returns the idle seconds until which limits and pressure, which may come, leave it its place. */
INLINE __u32 connection_soonest(const struct connection_key *key,
				const struct connection *connection)
{
	return connection_patience(key, connection, TAKES_DATALESS | TAKES_HALF_CLOSED);
}

/* Returns whether places are so short that TCP which carried no data gives way: first where its
 * account is a hog. Places that others have, which forged packets can take, do not count, until TCP
 * has hardly any left of those that it has for itself (PROVEN_PART). */
INLINE bool dataless_is_due(const struct connection_key *key, const struct connection *connection)
{
	__s32 left = places_left(), left_to_tcp = assured_places - SINGLE(usage)->proven;

	if (share_is_small(key, connection))
		return left_to_tcp <= (__s32)(assured_places / PROVEN_PART) ||
		       left < (__s32)(assured_places / FEW_PART);
	return left_to_tcp < (__s32)(assured_places / PRESSURE_PART) ||
	       left < (__s32)(assured_places / FEW_PART * 2);
}

/* Returns which live connections of those that `takes` says may be asked for their places now. */
INLINE __u32 assured_due(const struct connection_key *key, const struct connection *connection,
			 __u32 takes)
{
	if ((takes & TAKES_DATALESS) && !dataless_is_due(key, connection))
		takes &= ~TAKES_DATALESS;
	if ((connection->state & STATE_FINS) && !share_has_room(key, connection, SHARE_NEARLY))
		takes |= TAKES_HALF_CLOSED;
	return takes;
}

/* Returns whether the place's connection is dead; if not, protects it anew. */
INLINE bool assured_is_dead(struct assured *place, const struct connection_key *key, __u32 now,
			    __u32 takes)
{
	struct connection *connection = bpf_map_lookup_elem(&connections, key);
	__u32 idle, soonest;

	if (!connection || connection->id != place->id || !connection_lives(key, connection, now))
		return true;
	idle = connection_idle(connection, now);
	if (state_is_closed(connection->state))
		return (takes & TAKES_CLOSED) || idle > CLOSED_SECONDS;
	soonest = connection_soonest(key, connection);
	if ((takes & TAKES_IDLE) && idle > soonest &&
	    idle > connection_patience(key, connection, assured_due(key, connection, takes)))
		return true;
	place->protected_until = now + (soonest > idle ? soonest - idle : PRESSURE_TICK);
	return false;
}

GLOBAL_FUNCTION bool assured_claim(__u32 number, __u32 takes)
{
	struct assured *place = assured_at(number);
	struct connection_key *key = &scratch_get()->claimed;
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
	if (places_left() < (__s32)(assured_places / PRESSURE_PART))
		takes |= TAKES_IDLE | TAKES_DATALESS;
	__builtin_memcpy(key, &place->key, sizeof(*key));
	__builtin_memset(key->reserved, 0, sizeof(key->reserved));
	if (!assured_is_dead(place, key, now, takes) ||
	    __sync_val_compare_and_swap(&place->id, seen, PLACE_BUSY) != seen)
		return false;
	connection_end(key, seen);
	return true;
}

INLINE void assured_free(__u32 number)
{
	struct assured *place = assured_at(number);

	if (place)
		__sync_lock_test_and_set(&place->id, PLACE_FREE);
}

/* Returns true if the time, in any unit, has changed since the last call, to one caller only. */
INLINE bool usage_tick(__u32 *last, __u32 now)
{
	__u32 before = *last;

	return before != now && __sync_val_compare_and_swap(last, before, now) == before;
}

/* Moves the hand by HAND_STEPS at most. Returns a place that it has made busy, or 0. */
GLOBAL_FUNCTION __u32 assured_seek(__u32 takes)
{
	struct usage *all = SINGLE(usage);
	__u32 hand = all->assured_hand, number;

	for (__u32 i = 0; i < HAND_STEPS; i++) {
		number = 1 + (hand + i) % assured_places;
		if (assured_claim(number, takes)) {
			all->assured_hand = number;
			return number;
		}
	}
	all->assured_hand = (hand + HAND_STEPS) % assured_places;
	return 0;
}

/* Returns a place for a connection; 0: the table is full. Connections that began together are in
 * adjacent places: if the count shows room, the hand goes on until it has passed them. */
INLINE __u32 assured_claim_any(void)
{
	struct usage *all = SINGLE(usage);
	__u32 number = assured_seek(0) ?: assured_seek(TAKES_CLOSED);

	if (number || (__s32)(assured_places - all->assured) <= 0)
		return number;
	/* If few places are free, the long search is limited for all callers together. */
	if (assured_places - all->assured <= assured_places / FEW_PART &&
	    !usage_tick(&all->searched, bpf_ktime_get_coarse_ns() / (NSEC_PER_SEC / 10)))
		return 0;
	for (int i = 0; i < FAR_ROUNDS && !number; i++)
		number = assured_seek(TAKES_CLOSED | TAKES_IDLE);
	return number;
}

struct cleaning {
	__u32 hand;
	__u32 now;
	__u32 looks; /* connections that had to be looked at */
	__u32 most_looks;
};

/* A step of bpf_loop(), which goes on while this returns 0. Frees a place if its connection is
 * dead; the next newcomer begins to search there. */
static long assured_clean_place(__u64 step, void *context)
{
	struct cleaning *cleaning = context;
	__u32 number = 1 + (cleaning->hand + (__u32)step) % assured_places;
	struct assured *place = assured_at(number);
	bool protected;

	if (!place || place->id <= PLACE_BUSY)
		return 0;
	protected = (__s32)(place->protected_until - cleaning->now) > 0;
	if (assured_claim(number, TAKES_IDLE)) {
		assured_free(number);
		SINGLE(usage)->assured_hand = number - 1;
	} else if (protected) {
		return 0;
	}
	return ++cleaning->looks >= cleaning->most_looks;
}

/* Called after a refusal, as dead connections may fill the table or the share: frees some for the
 * next attempt. Further refusals search on. A flood of them searches no more than a client's few.
 */
GLOBAL_FUNCTION int assured_clean(void)
{
	struct usage *all = SINGLE(usage);
	struct cleaning cleaning = {.hand = all->clean_hand, .now = clock_second()};
	__u32 before = all->cleaned, tick = bpf_ktime_get_ns() >> 20, rounds = tick - before;
	long steps;

	if (!rounds || __sync_val_compare_and_swap(&all->cleaned, before, tick) != before)
		return 0;
	if (rounds > CLEAN_ROUNDS)
		rounds = CLEAN_ROUNDS;
	cleaning.most_looks = rounds * CLEAN_LOOKS;
	steps = bpf_loop(rounds * CLEAN_STEPS, assured_clean_place, &cleaning, 0);
	all->clean_hand = (cleaning.hand + (__u32)steps) % assured_places;
	return 0;
}

INLINE void assured_fill(struct assured *place, const struct connection_key *key,
			 const struct connection *connection, __u32 id)
{
	__builtin_memcpy(&place->key, key, sizeof(*key));
	__builtin_memcpy(place->tcp, connection->tcp, sizeof(place->tcp));
	place->slot = connection->owner.slot;
	place->protected_until = connection->last_seen + connection_soonest(key, connection);
	__sync_lock_test_and_set(&place->id, id);
}

/* Returns the place of an assured connection, or NULL. */
INLINE struct assured *assured_of(const struct connection *connection)
{
	struct assured *place = assured_at(connection->place);

	return place && place->id == connection->id ? place : NULL;
}

/* Returns where the numbers of a TCP connection are, of the inside and of the outside. */
INLINE struct tcp_numbers *tcp_numbers_of(const struct connection *connection)
{
	struct assured *place = connection->state & STATE_ASSURED ? assured_of(connection) : NULL;

	return place ? place->tcp : (struct tcp_numbers *)connection->tcp;
}

/* Shortens the protection: the connection's time-out has become shorter. */
INLINE void assured_expose(const struct connection *connection, __u32 until)
{
	struct assured *place = assured_of(connection);

	if (place && (__s32)(place->protected_until - until) > 0)
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

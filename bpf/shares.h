/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shares.h - how many assured connections each owner, and each client of an owner, may have.
 *
 * An owner with few connections is refused only if no place is left. One with a sixteenth of the
 * table or more, a hog, may take more while more than 1/(n+1) of the table is free, n being the
 * number of hogs. Connections that others begin to a container and those that it begins itself are
 * two accounts, so that neither exhausts the other. So are those of TCP and all others: a client of
 * UDP may have forged its address, and must take nothing from one that cannot have: where many
 * containers are flooded, a part of the table remains. One client may have half of what a hog can
 * reach of one owner's connections.
 *
 * Only connections that are assured and not closed count. They have STATE_COUNTED: exactly one
 * program sets it and counts up, and one clears it and counts down.
 */
#pragma once

#include "connection.h"
#include "policy.h"

/* The size of `assured` without place 0. The loader sets it. */
const volatile __u32 assured_places = MIN_ASSURED;

/* Of the table, which is left to what cannot be begun by forged packets */
#define PROVEN_PART 16

#define SHARE_BUSY 0xffffffff /* a generation: the share is being reset */

/* A connection of TCP is counted once its client has acknowledged the number of the SYN-ACK. */
INLINE __u32 share_account(const struct connection_key *key, const struct connection *connection)
{
	__u32 account = (connection->state & STATE_CHARGED_OUT ? ACCOUNT_OUT : 0) |
			(key->protocol == PROTOCOL_TCP ? ACCOUNT_PROVEN : 0);

	/* Before 6.2 the verifier finds no bound itself, and the compiler would drop the mask. */
	barrier_var(account);
	return account & (ACCOUNTS - 1);
}

/* Two CPUs may let a count go below 0 for a moment. */
INLINE bool share_is_hog(__u32 count)
{
	return (__s32)count >= (__s32)(assured_places / 16);
}

/* Returns NULL where the owner has gone, or the share is being reset: one program does so where it
 * still has the counts of a predecessor in the slot. */
INLINE struct share *share_of(const struct owner *owner)
{
	__u32 number = owner->slot, before;
	struct share *share = bpf_map_lookup_elem(&shares, &number);
	struct usage *all = SINGLE(usage);

	if (!share)
		return NULL;
	before = *(volatile __u32 *)&share->generation;
	if (before == owner->generation)
		return share;
	if (before == SHARE_BUSY || !owner_live(owner))
		return NULL;
	if (__sync_val_compare_and_swap(&share->generation, before, SHARE_BUSY) != before)
		return *(volatile __u32 *)&share->generation == owner->generation ? share : NULL;
	for (int i = 0; i < ACCOUNTS; i++) {
		if (share_is_hog(share->flows[i]))
			__sync_fetch_and_add(&all->hogs, -1);
		share->flows[i] = 0;
	}
	share->half_open[0] = 0;
	share->half_open[1] = 0;
	__sync_lock_test_and_set(&share->generation, owner->generation);
	return share;
}

/* Mixes in the owner. */
INLINE __u64 share_hash(__u64 hash, const struct owner *owner)
{
	return hash_mix(hash, (__u64)owner->generation << 32 | owner->slot);
}

/* An IPv6 client is a whole /64. Salted, so that outsiders cannot produce collisions. */
INLINE __u32 *share_of_client(const struct connection_key *key, const struct connection *connection)
{
	const __u8 *client = connection->begun_inside ? key->inside : key->outside;
	__u64 hash = SINGLE(meta)->port_seed + share_account(key, connection);
	__u32 place;

	hash = hash_mix(hash, address_halves(client)[address_is_ipv4(client)]);
	place = share_hash(hash, &connection->owner) % SHARES;
	return bpf_map_lookup_elem(&client_shares, &place);
}

/* Which part of a limit is to be left: NEARLY is a 64th of it, so that one search for connections
 * that may go frees places for many that were refused. */
enum share_rest {
	SHARE_NEARLY = 6,
	SHARE_EXACTLY = 31,
};

/* Returns whether maxFlows leaves room in the account. What proves nothing takes none from TCP, and
 * what others begin so takes none from what the container begins. */
INLINE bool share_within_policy(const struct share *share, __u32 account, const struct owner *owner,
				enum share_rest rest)
{
	const struct policy *policy = policy_of(owner);
	__u32 flows = share->flows[ACCOUNT_PROVEN] + share->flows[ACCOUNT_PROVEN | ACCOUNT_OUT];

	if (!(account & ACCOUNT_PROVEN))
		flows += share->flows[ACCOUNT_OUT];
	if (!account)
		flows += share->flows[0];
	if (!policy || !policy->max_flows)
		return true;
	flows += policy->max_flows >> rest;
	return (__s32)(flows - policy->max_flows) < 0;
}

/* Two CPUs may let the count of all exceed the table for a moment. */
INLINE __s32 places_left(void)
{
	return assured_places - SINGLE(usage)->assured;
}

/* Returns whether the owner and the client are that far from having all that they may have. */
GLOBAL_FUNCTION bool share_has_room(const struct connection_key *key,
				    const struct connection *connection, enum share_rest rest)
{
	__u32 account, most, hogs, *clients;
	__s32 left = places_left();
	struct share *share;

	if (!key || !connection)
		return true;
	share = share_of(&connection->owner);
	if (!share)
		return true;
	hogs = SINGLE(usage)->hogs; /* not before: a predecessor in the slot may have been one */
	account = share_account(key, connection);
	rest &= 31;
	if (!share_within_policy(share, account, &connection->owner, rest))
		return false;
	if (!connection_has_owner(connection)) /* the host's, which anyone can cause */
		return !share_is_hog(share->flows[account]);
	left -= assured_places >> rest;
	if (!share_is_hog(share->flows[account])) {
		most = assured_places / (hogs + 2);
		if (!account && left <= (__s32)(assured_places / PROVEN_PART))
			return false;
	} else {
		most = assured_places / (hogs + 1);
		if (left <= (__s32)most)
			return false;
	}
	if (account & ACCOUNT_OUT)
		return true;
	clients = share_of_client(key, connection);
	most /= 2;
	return !clients || (__s32)(*clients + (most >> rest) - most) < 0;
}

/* Returns whether the owner and the client may have one more connection like this. */
INLINE bool share_left_to(const struct connection_key *key, const struct connection *connection)
{
	return share_has_room(key, connection, SHARE_EXACTLY);
}

/* Returns whether the connection's account is no hog. */
GLOBAL_FUNCTION bool share_is_small(const struct connection_key *key,
				    const struct connection *connection)
{
	const struct share *share;

	if (!key || !connection)
		return false;
	share = share_of(&connection->owner);
	return share && !share_is_hog(share->flows[share_account(key, connection)]);
}

INLINE void share_change(__u32 *mine, __u32 *hogs, __s32 by)
{
	__u32 before = __sync_fetch_and_add(mine, by);

	if (share_is_hog(before) != share_is_hog(before + by))
		__sync_fetch_and_add(hogs, by);
}

/* Two functions, as one would need more of the stack. */
GLOBAL_FUNCTION int share_add_to_client(const struct connection_key *key,
					const struct connection *connection, __s32 by)
{
	__u32 *clients;

	if (!key || !connection || (connection->state & STATE_CHARGED_OUT))
		return 0;
	clients = share_of_client(key, connection);
	if (clients)
		__sync_fetch_and_add(clients, by);
	return 0;
}

GLOBAL_FUNCTION int share_add_to_owner(const struct connection_key *key,
				       const struct connection *connection, __s32 by)
{
	struct usage *all = SINGLE(usage);
	struct share *share;

	if (!key || !connection)
		return 0;
	__sync_fetch_and_add(&all->assured, by);
	if (key->protocol == PROTOCOL_TCP)
		__sync_fetch_and_add(&all->proven, by);
	share = share_of(&connection->owner);
	if (share)
		share_change(&share->flows[share_account(key, connection)], &all->hogs, by);
	return 0;
}

/* Changes the counts. The caller changes STATE_COUNTED. */
INLINE void share_add(const struct connection_key *key, const struct connection *connection,
		      __s32 by)
{
	share_add_to_client(key, connection, by);
	share_add_to_owner(key, connection, by);
}

INLINE void share_uncount(const struct connection_key *key, struct connection *connection)
{
	if (__sync_fetch_and_and(&connection->state, ~STATE_COUNTED) & STATE_COUNTED)
		share_add(key, connection, -1);
}

INLINE void share_count(const struct connection_key *key, struct connection *connection)
{
	__u32 id = *(volatile __u32 *)&connection->id;

	if (!id || (__sync_fetch_and_or(&connection->state, STATE_COUNTED) & STATE_COUNTED))
		return;
	share_add(key, connection, 1);
	if (*(volatile __u32 *)&connection->id != id)
		share_uncount(key, connection);
}

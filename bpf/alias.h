/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * alias.h - external tuples that lead to a connection where no mapping does.
 *
 * Inserting with NOEXIST allocates a port without a race between check and write. The alias is made
 * before its record, and reserved for its maker meanwhile: for ALIAS_SECONDS.
 */
#pragma once

#include "noticed.h"
#include "scratch.h"
#include "shares.h"

#define ALIAS_SECONDS 2

/* Counts of the ports in use towards one port of one server */
struct port_shares {
	struct port_share *all, *mine; /* of all owners, and of one */
};

/* A hash with the host's secret as its start */
INLINE __u64 external_hash(const struct connection_key *external)
{
	__u64 hash = SINGLE(meta)->port_seed;

	hash = hash_mix(hash, address_halves(external->outside)[0]);
	hash = hash_mix(hash, address_halves(external->outside)[1]);
	hash = hash_mix(hash, address_halves(external->inside)[0]);
	hash = hash_mix(hash, address_halves(external->inside)[1]);
	return hash_mix(hash, (__u64)external->outside_port << 8 | external->protocol);
}

INLINE struct port_shares port_shares_of(const struct connection_key *external,
					 const struct owner *owner)
{
	__u64 hash = external_hash(external);
	struct port_shares shares;
	__u32 place;

	place = hash % SHARES;
	shares.all = bpf_map_lookup_elem(&port_shares, &place);
	place = share_hash(hash, owner) % SHARES;
	shares.mine = bpf_map_lookup_elem(&port_shares, &place);
	return shares;
}

INLINE void port_share_count(const struct connection_key *external, const struct owner *owner,
			     __s32 by)
{
	struct port_shares shares;

	if (!owner->slot)
		return;
	shares = port_shares_of(external, owner);
	if (shares.all)
		__sync_fetch_and_add(&shares.all->ports, by);
	if (shares.mine)
		__sync_fetch_and_add(&shares.mine->ports, by);
}

/* Inserts the draft's alias. False: another connection has that tuple. */
GLOBAL_FUNCTION bool draft_insert_alias(void)
{
	struct draft *draft = draft_get();

	draft->alias.made = clock_second();
	if (!packet_protocol_is_icmp(draft->external.protocol))
		noticed_mark_external(draft->external.inside, draft->external.inside_port);
	if (bpf_map_update_elem(&aliases, &draft->external, &draft->alias, BPF_NOEXIST))
		return false;
	port_share_count(&draft->external, &draft->alias.owner, 1);
	return true;
}

/* Before 6.15 another CPU's system call may hold the bucket, and the deletion fails with EBUSY. */
#define TABLE_DELETE(table, key) \
	(bpf_map_delete_elem(&table, key) && bpf_map_delete_elem(&table, key))

/* Deletes the alias if it is still that connection's. Only one program gets its id; until that has
 * deleted it, nobody can have its key or memory. external: in a map. */
INLINE bool alias_delete(const struct connection_key *external, __u32 id)
{
	struct alias *alias = bpf_map_lookup_elem(&aliases, external);
	struct owner owner;

	if (!alias || !id || __sync_val_compare_and_swap(&alias->id, id, 0) != id)
		return false;
	owner = alias->owner;
	if (TABLE_DELETE(aliases, external)) {
		__sync_lock_test_and_set(&alias->id, id);
		return false;
	}
	port_share_count(external, &owner, -1);
	return true;
}

INLINE void draft_fill_alias(struct draft *draft)
{
	connection_external_key(&draft->key, &draft->connection, &draft->external);
	__builtin_memset(&draft->alias, 0, sizeof(draft->alias));
	address_copy(draft->alias.inside, draft->key.inside);
	draft->alias.inside_port = draft->key.inside_port;
	draft->alias.outside_port = draft->key.outside_port;
	draft->alias.id = draft->connection.id;
	if (draft->connection.kind == FLOW_MASQUERADE)
		draft->alias.owner = draft->connection.owner;
}

/* Turns the alias's key into the key of its connection. */
INLINE void alias_follow(const struct alias *alias, struct connection_key *key)
{
	address_copy(key->inside, alias->inside);
	key->inside_port = alias->inside_port;
	key->outside_port = alias->outside_port;
}

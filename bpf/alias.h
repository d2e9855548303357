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

INLINE __u32 *external_port_count(__u32 port, enum protocol protocol)
{
	struct external_port *counts = bpf_map_lookup_elem(&external_ports, &port);

	return counts ? &counts->aliases[protocol == PROTOCOL_TCP] : NULL;
}

/* Returns whether an alias has this port, or is about to get it. */
INLINE bool external_port_is_used(__u16 port, enum protocol protocol)
{
	const __u32 *count = external_port_count(port, protocol);

	return count && *(const volatile __u32 *)count;
}

INLINE void external_port_add(__u16 port, enum protocol protocol, __s32 by)
{
	__u32 *count = external_port_count(port, protocol), before;

	if (!count)
		return;
	/* An operation whose result is used is ordered before what follows, as the search for a
	 * socket: that finds the socket, or the socket's packet finds the port in use. */
	before = __sync_fetch_and_add(count, by);
	barrier_var(before);
}

/* Counts the ports by which packets find an alias: the external one and, of a connection of the
 * host that got another port, its own. Up before the alias is there, and down after that. */
INLINE void alias_count_ports(const struct connection_key *external, const struct owner *owner,
			      __u16 inside_port, __s32 by)
{
	if (packet_protocol_is_icmp(external->protocol))
		return;
	external_port_add(external->inside_port, external->protocol, by);
	if (!owner->slot && inside_port != external->inside_port)
		external_port_add(inside_port, external->protocol, by);
}

/* Returns false where no alias has this destination. Echo identifiers are not counted. */
INLINE bool alias_is_likely(const struct tuple *tuple)
{
	return packet_protocol_is_icmp(tuple->protocol) ||
	       (external_port_is_used(tuple->destination_port, tuple->protocol) &&
		noticed_has(external_addresses, noticed_address_bit(tuple->destination)));
}

/* Inserts the draft's alias. False: another connection has that tuple. */
GLOBAL_FUNCTION bool draft_insert_alias(void)
{
	struct draft *draft = draft_get();
	const struct alias *alias = &draft->alias;

	draft->alias.made = clock_second();
	noticed_mark(external_addresses, noticed_address_bit(draft->external.inside));
	alias_count_ports(&draft->external, &alias->owner, alias->inside_port, 1);
	if (bpf_map_update_elem(&aliases, &draft->external, alias, BPF_NOEXIST)) {
		alias_count_ports(&draft->external, &alias->owner, alias->inside_port, -1);
		return false;
	}
	port_share_count(&draft->external, &alias->owner, 1);
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
	__u16 inside_port;

	if (!alias || !id || __sync_val_compare_and_swap(&alias->id, id, 0) != id)
		return false;
	owner = alias->owner;
	inside_port = alias->inside_port;
	if (TABLE_DELETE(aliases, external)) {
		__sync_lock_test_and_set(&alias->id, id);
		return false;
	}
	alias_count_ports(external, &owner, inside_port, -1);
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - the record of a connection: its key, its lifetime, the translation of a packet.
 *
 * A packet from the inside has the tuple that is the key; one from the outside leads to it through
 * a mapping, an alias (alias.h) or, if it is not translated, directly.
 *
 * Nothing sweeps the table. A record is dead when its owner is (DEL ends the generation, in O(1))
 * or when it has timed out; whoever needs its place or tuple may take it. The memory of a record
 * may be reused while a program looks at it: after every helper call that may take long, compare
 * `id` before writing.
 */
#pragma once

#include "lifetime.h"
#include "owner.h"
#include "packet.h"
#include "verdict.h"

#define NSEC_PER_SEC 1000000000ULL
#define EEXIST 17

#define CLOSED_SECONDS 10 /* netfilter's time-out after RST */

INLINE __u32 clock_second(void)
{
	return bpf_ktime_get_coarse_ns() / NSEC_PER_SEC;
}

/* Makes the key of a connection from the tuple that the IP stack sees. */
INLINE void connection_key_of(const struct tuple *tuple, enum way way, struct connection_key *key)
{
	bool inwards = way == INWARDS;

	address_copy(key->inside, inwards ? tuple->destination : tuple->source);
	address_copy(key->outside, inwards ? tuple->source : tuple->destination);
	key->inside_port = inwards ? tuple->destination_port : tuple->source_port;
	key->outside_port = inwards ? tuple->source_port : tuple->destination_port;
	key->protocol = tuple->protocol;
	__builtin_memset(key->reserved, 0, sizeof(key->reserved));
}

/* Makes the tuple of an inward packet as the IP stack sees it. */
INLINE void tuple_inwards(const struct connection_key *key, struct tuple *tuple)
{
	__builtin_memset(tuple, 0, sizeof(*tuple));
	address_copy(tuple->source, key->outside);
	address_copy(tuple->destination, key->inside);
	tuple->source_port = key->outside_port;
	tuple->destination_port = key->inside_port;
	tuple->protocol = key->protocol;
}

/* The state's bit of the sender and of the receiver of packets in this direction */
#define SENDER(state, way) ((way) == OUTWARDS ? state##_INSIDE : state##_OUTSIDE)
#define RECEIVER(state, way) ((way) == OUTWARDS ? state##_OUTSIDE : state##_INSIDE)
/* Both sides' bits */
#define EITHER(state) (state##_INSIDE | state##_OUTSIDE)

INLINE bool connection_has_owner(const struct connection *connection)
{
	return connection->kind != FLOW_HOST && connection->kind != FLOW_FOREIGN;
}

/* Returns whether it is a container's whose packets we translate. */
INLINE bool connection_is_translated(const struct connection *connection)
{
	return connection->kind == FLOW_MASQUERADE || connection->kind == FLOW_MAPPING;
}

INLINE __u32 connection_idle(const struct connection *connection, __u32 now)
{
	return idle_seconds(now, connection->last_seen);
}

GLOBAL_FUNCTION bool connection_lives(const struct connection_key *key,
				      const struct connection *connection, __u32 now)
{
	return key && connection && connection->id &&
	       connection_idle(connection, now) <=
		       connection_timeout(key->protocol, connection->state) &&
	       (!connection_has_owner(connection) || owner_live(&connection->owner));
}

/* Returns the idle seconds after which it gives way to others that need what it has. */
INLINE __u32 connection_spared(const struct connection_key *key,
			       const struct connection *connection)
{
	__u32 timeout = connection_timeout(key->protocol, connection->state);

	if (timeout == TIMEOUT_TCP_HALF_CLOSED)
		return TCP_HALF_CLOSED_SPARED_SECONDS;
	return timeout == TIMEOUT_TCP_ESTABLISHED ? TCP_SPARED_SECONDS : timeout;
}

/* Returns NULL where there is no live connection with this key. */
INLINE struct connection *connection_find(const struct connection_key *key)
{
	struct connection *connection = bpf_map_lookup_elem(&connections, key);

	return connection && connection_lives(key, connection, clock_second()) ? connection : NULL;
}

/* Does a packet of this direction go to the side that began? */
INLINE bool connection_is_reply(const struct connection *connection, enum way way)
{
	return connection->begun_inside == (way == INWARDS);
}

/* Returns the interface by which outward packets leave, or 0. */
INLINE __u32 connection_leaves_by(const struct connection *connection)
{
	return connection->path[OUTWARDS] >= PATH_CONTAINER ? connection->next_hop[OUTWARDS].ifindex
							    : connection->out_ifindex;
}

/* Masqueraded connections, the host's, and those with a changed client port have an alias. */
INLINE bool connection_has_alias(const struct connection_key *key,
				 const struct connection *connection)
{
	return (connection->kind != FLOW_MAPPING && connection->kind != FLOW_DIRECT) ||
	       connection->peer_port != key->outside_port;
}

/* Makes the key of its alias: the tuple of an inward packet before translation. */
INLINE void connection_external_key(const struct connection_key *key,
				    const struct connection *connection,
				    struct connection_key *external)
{
	__builtin_memcpy(external, key, sizeof(*external));
	address_copy(external->inside, connection->external_address);
	external->inside_port = connection->external_port;
	external->outside_port = connection->peer_port;
}

INLINE void translation_to(struct translation *translation, const __u8 *address, __u16 port,
			   __u16 peer_port)
{
	__builtin_memset(translation, 0, sizeof(*translation));
	address_copy(translation->address, address);
	translation->port = port;
	translation->peer_port = peer_port;
}

INLINE void translation_inwards(const struct connection_key *key, struct translation *translation)
{
	translation_to(translation, key->inside, key->inside_port, key->outside_port);
}

INLINE void translation_outwards(const struct connection *connection,
				 struct translation *translation)
{
	translation_to(translation, connection->external_address, connection->external_port,
		       connection->peer_port);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection.h - the record of a connection: its key, its lifetime, the translation of a packet.
 *
 * Between our hooks the IP stack sees a connection without NAT, by the same tuple in both
 * directions. That tuple is its identity (struct connection_key). A packet from the inside has this
 * tuple; one from the outside leads to it through a mapping, an alias (alias.h) or, if it is not
 * translated, directly.
 *
 * Nothing sweeps the table. A record is dead when its owner is (DEL ends the generation, in O(1))
 * or when it has timed out; whoever needs its place or tuple may take it. The memory of a record
 * may be reused while a program looks at it: after every helper call that may take long, compare
 * `id` before writing.
 */
#ifndef BPF_PORTMAP_CONNECTION_H
#define BPF_PORTMAP_CONNECTION_H

#include "owner.h"
#include "packet.h"
#include "verdict.h"

#define NSEC_PER_SEC 1000000000ULL
#define EEXIST 17

/* Seconds a connection may be idle. */
#define TIMEOUT_TCP_ESTABLISHED 7440 /* RFC 5382 REQ-5: at least 2 h 4 min */
#define TIMEOUT_TCP_TRANSITORY 240   /* RFC 5382 REQ-5: at least 4 min */
#define TIMEOUT_TCP_HALF_CLOSED 120  /* netfilter's, in FIN_WAIT */
#define CLOSED_SECONDS 10            /* netfilter's time-out after RST */
/* For SCTP too: it retransmits after at most 60 s (RFC 9260 16, RTO.Max), and two heartbeats of an
 * idle association, one every 30 s plus a retransmission time-out (8.3), may be lost. */
#define TIMEOUT_UDP_NEW 120 /* RFC 4787 REQ-5: at least 2 min */
#define TIMEOUT_UDP 300     /* RFC 4787 REQ-5: 5 min or more is recommended */
#define TIMEOUT_ICMP 60     /* RFC 5508 REQ-1: at least 60 s */

#define STATE_FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)
#define STATE_AWAITED (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE)

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

INLINE bool connection_has_owner(const struct connection *connection)
{
	return connection->kind != FLOW_HOST && connection->kind != FLOW_FOREIGN;
}

INLINE bool state_is_closed(__u32 state)
{
	return (state & STATE_AWAITED) || (state & STATE_FINS) == STATE_FINS;
}

INLINE __u32 connection_timeout(enum protocol protocol, __u32 state)
{
	if (protocol == PROTOCOL_TCP) {
		if (!(state & STATE_ASSURED) || state_is_closed(state))
			return TIMEOUT_TCP_TRANSITORY;
		return state & STATE_FINS ? TIMEOUT_TCP_HALF_CLOSED : TIMEOUT_TCP_ESTABLISHED;
	}
	if (packet_protocol_has_ports(protocol))
		return state & STATE_ASSURED ? TIMEOUT_UDP : TIMEOUT_UDP_NEW;
	return TIMEOUT_ICMP;
}

/* Another CPU's clock may be a tick ahead, so the difference may be negative. */
INLINE __u32 connection_idle(const struct connection *connection, __u32 now)
{
	__s32 idle = now - connection->last_seen;

	return idle > 0 ? idle : 0;
}

INLINE bool connection_lives(const struct connection_key *key, const struct connection *connection,
			     __u32 now)
{
	__u32 state = connection->state;

	return !(state & STATE_VOID) &&
	       connection_idle(connection, now) <= connection_timeout(key->protocol, state) &&
	       (!connection_has_owner(connection) || owner_live(&connection->owner));
}

/* Returns NULL where there is no live connection with this key. */
INLINE struct connection *connection_find(const struct connection_key *key)
{
	struct connection *connection = bpf_map_lookup_elem(&connections, key);

	return connection && connection_lives(key, connection, clock_second()) ? connection : NULL;
}

/* Returns whether the tuple of an inward packet is this connection's external one. Another
 * connection's may become the same when it is translated. */
INLINE bool connection_has_external(const struct connection *connection, const struct tuple *tuple)
{
	return address_equal(connection->external_address, tuple->destination) &&
	       connection->external_port == tuple->destination_port &&
	       connection->peer_port == tuple->source_port;
}

/* Does a packet of this direction go to the side that began? */
INLINE bool connection_is_reply(const struct connection *connection, enum way way)
{
	return connection->begun_inside == (way == INWARDS);
}

/* Masqueraded connections, the host's, and those with a changed client port have an alias. */
INLINE bool connection_has_alias(const struct connection_key *key,
				 const struct connection *connection)
{
	return (connection->kind != FLOW_MAPPING && connection->kind != FLOW_DIRECT) ||
	       connection->peer_port != key->outside_port;
}

/* Makes the key of its alias, which is the tuple of an inward packet before translation. */
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

#endif

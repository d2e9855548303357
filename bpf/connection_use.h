/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection_use.h - what a packet does to its connection: keeps it alive, advances its state, and
 * makes it assured.
 *
 * A TCP connection is assured after three packets: a request, a reply, and another packet from the
 * requester, which acknowledges the reply's number. A reply alone is not enough: servers answer
 * forged requests too. In any other protocol a third packet may be forged as well, and a client
 * that sends one request and gets one reply (DNS) needs no assured place: such a connection is
 * assured as netfilter does it with UDP, when there was an answer and it goes on for two seconds,
 * in either direction. A server that repeats its answer to a forged request looks the same, so
 * replies alone assure only in accounts that are no hogs (shares.h): a flood of single datagrams
 * fills a sixteenth of the table at most.
 */
#pragma once

#include "connection_tcp.h"

#define STREAM_SECONDS 2 /* netfilter's, until UDP is assured */

/* The connection that a packet belongs to */
struct found {
	struct connection_key *key; /* in a map */
	/* In a map, where the memory may be reused at any time; NULL: there is none */
	struct connection *connection;
	__u32 id;     /* of the connection when it was found */
	enum way way; /* the packet's direction */
	__u32 now;    /* CLOCK_MONOTONIC, seconds */
};

/* Returns whether the memory still belongs to that connection. */
INLINE bool found_stands(const struct found *found)
{
	return *(volatile __u32 *)&found->connection->id == found->id;
}

/* Looks up *found->key. False: there is no live connection. */
INLINE bool found_look_up(struct found *found)
{
	found->connection = bpf_map_lookup_elem(&connections, found->key);
	if (!found->connection)
		return false;
	found->now = clock_second();
	found->id = found->connection->id;
	if (connection_lives(found->key, found->connection, found->now))
		return true;
	found->connection = NULL;
	return false;
}

INLINE void found_prepare(struct found *found, enum way way)
{
	found->connection = NULL;
	found->way = way;
	found->key = &scratch_get()->found;
}

INLINE bool found_outwards(struct found *found, const struct tuple *tuple)
{
	found_prepare(found, OUTWARDS);
	connection_key_of(tuple, OUTWARDS, found->key);
	return found_look_up(found);
}

/* Returns the connection of a packet of this direction, confirmed or not. */
INLINE struct connection *connection_of(const struct tuple *tuple, enum way way)
{
	struct connection_key *key = &scratch_get()->other;

	connection_key_of(tuple, way, key);
	return connection_find(key);
}

/* Inserts the connection's alias again if it is missing. False: another connection has it now. */
INLINE bool connection_keep_alias(const struct connection_key *key,
				  const struct connection *connection, __u32 id)
{
	struct draft *draft = draft_get();
	const struct alias *alias;

	connection_external_key(key, connection, &draft->external);
	if (*(volatile __u32 *)&connection->id != id)
		return false;
	alias = bpf_map_lookup_elem(&aliases, &draft->external);
	if (!alias) {
		__builtin_memcpy(&draft->key, key, sizeof(draft->key));
		__builtin_memcpy(&draft->connection, connection, sizeof(draft->connection));
		if (draft->connection.id != id)
			return false;
		draft_fill_alias(draft);
		if (draft_insert_alias()) {
			if (*(volatile __u32 *)&connection->id != id)
				alias_delete(&draft->external, id);
			return true;
		}
		alias = bpf_map_lookup_elem(&aliases, &draft->external);
	}
	return !alias || !alias->id || alias->id == id;
}

/* Called once a second. False: the connection has ended, because its container has gone or another
 * connection has its external tuple. */
GLOBAL_FUNCTION bool connection_refresh(const struct connection_key *key,
					struct connection *connection, __u32 now)
{
	__u32 id;

	if (!key || !connection)
		return false;
	id = connection->id;
	if ((connection_has_owner(connection) && !slot_has_veth(connection->owner.slot)) ||
	    (connection_has_alias(key, connection) &&
	     !connection_keep_alias(key, connection, id))) {
		connection_end(key, id);
		return false;
	}
	if (connection->id != id)
		return false;
	connection->last_seen = now;
	return true;
}

/* Returns whether it is too young to be assured. Not of TCP; `last_seen` is this second. */
INLINE bool connection_is_young(const struct connection *connection)
{
	return idle_seconds(connection->last_seen, connection->begun) < STREAM_SECONDS;
}

/* Returns whether a packet assures the connection, which was answered. */
INLINE bool connection_lasts(const struct connection_key *key, const struct connection *connection,
			     bool reply)
{
	if (key->protocol == PROTOCOL_TCP)
		return !reply;
	return !connection_is_young(connection) && (!reply || share_is_small(key, connection));
}

/* No packet of the connection will skip the stack. */
INLINE void connection_stay_in_stack(struct connection *connection, enum stack_reason reason)
{
	connection->stack_reason = reason;
	connection->path[INWARDS] = PATH_STACK;
	connection->path[OUTWARDS] = PATH_STACK;
}

/* Applies a packet to its half-open connection. If it should assure the connection and that is
 * refused, it is dropped, unless the connection is untranslated anyway. */
GLOBAL_FUNCTION enum verdict connection_use_half_open(const struct connection_key *key,
						      struct connection *connection,
						      const struct packet *packet, enum way way)
{
	enum admission admission;
	bool reply;

	if (!key || !connection || !packet)
		return VERDICT_PASS;
	way &= 1;
	reply = connection_is_reply(connection, way);
	/* This is noted before a path is chosen: replies without options would skip the stack,
	 * requests with them would not. In IPv6 a single atomic fragment (RFC 6946) among usual
	 * packets has an extension header, too, and must not keep the connection in the stack. */
	if (packet->ipv4 && packet_has_options(packet) && connection->path[way] == PATH_UNDECIDED)
		connection_stay_in_stack(connection, REASON_OPTIONS);
	if (key->protocol == PROTOCOL_TCP && !tcp_follow_half_open(key, connection, packet, way))
		return VERDICT_TRANSLATE;
	if (reply)
		state_set(connection, STATE_REPLIED);
	if ((packet->tcp_flags & TCP_SYN) || !(connection->state & STATE_REPLIED) ||
	    !connection_lasts(key, connection, reply))
		return VERDICT_TRANSLATE;
	admission = connection_assure(key, connection);
	if (admission == ADMISSION_OK || reply)
		return VERDICT_TRANSLATE;
	assured_clean();
	if (!connection_has_owner(connection) || connection->kind == FLOW_DIRECT)
		return VERDICT_TRANSLATE;
	return admission == ADMISSION_LIMITED ? drop(flow_limit) : drop(table_full);
}

/* Returns whether the packet, the first in this second, keeps the connection alive. What nobody
 * would accept does not keep a closed one, whose port and place others may need. Who has sent FIN
 * only answers and repeats from then on: the other side keeps a half-closed one, or nobody does. */
INLINE bool connection_is_kept(const struct found *found, const struct packet *packet)
{
	__u32 state = found->connection->state;

	if (found->key->protocol != PROTOCOL_TCP || (packet->tcp_flags & TCP_SYN))
		return true;
	if (state_is_closed(state))
		return tcp_is_plausible(found->connection, packet, found->way);
	return !(state & SENDER(STATE_FIN, found->way));
}

/* Applies a packet to its connection. VERDICT_PASS: the connection has ended. */
INLINE enum verdict connection_use(struct found *found, const struct packet *packet, __u32 length)
{
	struct connection *connection = found->connection;
	enum way way = found->way;

	if (connection->last_seen != found->now && connection_is_kept(found, packet) &&
	    !connection_refresh(found->key, connection, found->now))
		return VERDICT_PASS;
	if (!(connection->state & STATE_ASSURED))
		return connection_use_half_open(found->key, connection, packet, way);
	connection->packets[way]++;
	connection->bytes[way] += length;
	if (found->key->protocol == PROTOCOL_TCP && tcp_is_usual(connection, packet, way))
		tcp_remember(connection, packet, way);
	else if (found->key->protocol == PROTOCOL_TCP)
		tcp_follow(found->key, connection, packet, way);
	return VERDICT_TRANSLATE;
}

/* Returns the verdict about a packet that begins a connection. */
INLINE enum verdict verdict_of_admission(enum admission admission)
{
	switch (admission) {
	case ADMISSION_OK:
		return VERDICT_TRANSLATE;
	case ADMISSION_TAKEN:
		return drop(no_tuple);
	case ADMISSION_LIMITED:
		assured_clean();
		return drop(flow_limit);
	default:
		return drop(table_full);
	}
}

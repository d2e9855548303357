/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connection_tcp.h - the state of a TCP connection.
 *
 * One FIN leaves a connection half-closed. It is closed by FIN from both sides, by RST, and by a
 * SYN that reuses a closed one's tuple. After RST or SYN both sides are awaited: the connection is
 * open again once each has sent something else (a receiver that does not accept an RST answers with
 * a challenge ACK, RFC 5961). All these states are bits of one word, so if two CPUs see a FIN each,
 * the second one finds both.
 *
 * A RST counts only if its receiver would accept it, or a forged one would end an idle connection.
 * Its sequence number must be the last acknowledgment of the other direction, or the end of what
 * was sent in its own: netfilter's rule. Windows are not checked, so their sizes need not be known.
 * A packet moves the end only if both its numbers are close to the previous ones of its direction,
 * so a forger would have to guess both. A SYN on a live connection changes nothing until the other
 * side answers with SYN-ACK, since anyone who knows the addresses can forge one; a peer that is
 * still connected answers with an ACK.
 */
#ifndef BPF_PORTMAP_CONNECTION_TCP_H
#define BPF_PORTMAP_CONNECTION_TCP_H

#include "connection_table.h"

#define SEQUENCE_AHEAD (1 << 24)  /* twice the window that Linux offers by default */
#define SEQUENCE_BEHIND (1 << 16) /* retransmitted, or out of order */

/* The bits of the sender and the receiver of packets in this direction. */
#define SENDER(bit, way) ((bit) << (way))
#define RECEIVER(bit, way) ((bit) << !(way))

INLINE void state_set(struct connection *connection, __u32 bits)
{
	if ((connection->state & bits) != bits)
		__sync_fetch_and_or(&connection->state, bits);
}

INLINE void state_clear(struct connection *connection, __u32 bits)
{
	if (connection->state & bits)
		__sync_fetch_and_and(&connection->state, ~bits);
}

INLINE bool tcp_is_close(__u32 number, __u32 last)
{
	return number - last + SEQUENCE_BEHIND < SEQUENCE_AHEAD + SEQUENCE_BEHIND;
}

INLINE bool tcp_is_after(__u32 number, __u32 last)
{
	return (__s32)(number - last) > 0;
}

INLINE bool tcp_is_plausible(const struct connection *connection, const struct packet *packet,
			     enum way way)
{
	const struct tcp_numbers *sent = &connection->tcp[way];

	if (!(connection->state & SENDER(STATE_SEQUENCE_INSIDE, way)))
		return true;
	if (!(packet->tcp_flags & TCP_ACK) ||
	    !tcp_is_close(packet->tcp_sequence, sent->sequence_end))
		return false;
	return !(connection->state & SENDER(STATE_ACKNOWLEDGED_INSIDE, way)) ||
	       tcp_is_close(packet->tcp_acknowledgment, sent->acknowledged);
}

/* Remembers the sequence numbers of a packet. */
INLINE void tcp_track(struct connection *connection, const struct packet *packet, enum way way)
{
	__u32 end = packet->tcp_sequence + packet->tcp_sequence_length, state = connection->state;
	struct tcp_numbers *sent = &connection->tcp[way];

	if ((packet->tcp_flags & TCP_RST) || !tcp_is_plausible(connection, packet, way))
		return;
	if (!(state & SENDER(STATE_SEQUENCE_INSIDE, way))) {
		sent->sequence_end = end;
	} else if (tcp_is_after(end, sent->sequence_end)) { /* not a keep-alive */
		sent->sequence_end = end;
		if (!(packet->tcp_flags & TCP_FIN))
			state_set(connection, STATE_DATA);
	}
	state_set(connection, SENDER(STATE_SEQUENCE_INSIDE, way));
	if (!(packet->tcp_flags & TCP_ACK))
		return;
	if (!(state & SENDER(STATE_ACKNOWLEDGED_INSIDE, way)) ||
	    tcp_is_after(packet->tcp_acknowledgment, sent->acknowledged))
		sent->acknowledged = packet->tcp_acknowledgment;
	state_set(connection, SENDER(STATE_ACKNOWLEDGED_INSIDE, way));
}

/* For a half-open connection: a SYN may be repeated with another initial sequence number. */
INLINE void tcp_track_half_open(struct connection *connection, const struct packet *packet,
				enum way way)
{
	if (packet->tcp_flags & TCP_SYN)
		state_clear(connection,
			    SENDER(STATE_SEQUENCE_INSIDE | STATE_ACKNOWLEDGED_INSIDE, way));
	if (packet->tcp_flags & TCP_FIN)
		state_set(connection, SENDER(STATE_FIN_INSIDE, way));
	tcp_track(connection, packet, way);
}

/* A forged SYN is answered too, but its sender does not know the initial number of the SYN-ACK, and
 * must not get a connection that lasts two hours. If the connection was picked up in the middle, no
 * number is known and any will do. */
INLINE bool tcp_acknowledges(const struct connection *connection, const struct packet *packet,
			     enum way way)
{
	if (!(connection->state & RECEIVER(STATE_SEQUENCE_INSIDE, way)))
		return true;
	return (packet->tcp_flags & TCP_ACK) &&
	       connection->tcp[!way].sequence_end - packet->tcp_acknowledgment <= SEQUENCE_BEHIND;
}

INLINE bool tcp_reset_counts(const struct connection *connection, const struct packet *packet,
			     enum way way)
{
	bool acknowledged = connection->state & RECEIVER(STATE_ACKNOWLEDGED_INSIDE, way);

	if (acknowledged && packet->tcp_sequence == connection->tcp[!way].acknowledged)
		return true;
	if (connection->state & SENDER(STATE_SEQUENCE_INSIDE, way))
		return packet->tcp_sequence == connection->tcp[way].sequence_end;
	return !acknowledged; /* picked up in the middle: it may be right */
}

/* A packet shows that its sender is still there unless it was sent before the connection closed. A
 * keep-alive has the sequence number before the next one. */
INLINE bool tcp_shows_life(const struct connection *connection, const struct packet *packet,
			   enum way way)
{
	return !(connection->state & SENDER(STATE_SEQUENCE_INSIDE, way)) ||
	       !tcp_is_after(connection->tcp[way].sequence_end, packet->tcp_sequence + 1);
}

INLINE void tcp_forget(struct connection *connection)
{
	state_clear(connection, STATE_FINS | STATE_AWAITED | STATE_SEQUENCE_INSIDE |
					STATE_SEQUENCE_OUTSIDE | STATE_ACKNOWLEDGED_INSIDE |
					STATE_ACKNOWLEDGED_OUTSIDE | STATE_SYN_INSIDE |
					STATE_SYN_OUTSIDE);
}

/* SYN: a peer has lost the connection, or reuses the tuple of a closed one. */
INLINE void tcp_follow_syn(struct connection *connection, const struct packet *packet, enum way way)
{
	bool begins = packet_begins_tcp(packet);

	if (state_is_closed(connection->state)) {
		if (!begins && way == INWARDS) {
			state_clear(connection, SENDER(STATE_AWAITED_INSIDE, way));
			return;
		}
		tcp_forget(connection);
		state_set(connection, RECEIVER(STATE_AWAITED_INSIDE, way) |
					      (begins ? SENDER(STATE_AWAITED_INSIDE, way) : 0));
	} else if (begins) {
		state_set(connection, SENDER(STATE_SYN_INSIDE, way));
	} else if (connection->state & RECEIVER(STATE_SYN_INSIDE, way)) {
		tcp_forget(connection);
		connection->tcp[!way].sequence_end = packet->tcp_acknowledgment;
		state_set(connection, RECEIVER(STATE_SEQUENCE_INSIDE, way));
	}
}

/* A closed connection shows life. If its owner or client has reached its limit, it stays closed and
 * its place may be reused. */
INLINE void tcp_open_again(const struct connection_key *key, struct connection *connection)
{
	if (share_left_to(key, connection))
		share_count(key, connection, 1);
	else
		state_set(connection, STATE_AWAITED);
}

GLOBAL_FUNCTION int tcp_follow(const struct connection_key *key, struct connection *connection,
			       const struct packet *packet, enum way way)
{
	bool closed;

	if (!key || !connection || !packet)
		return 0;
	way &= 1;
	closed = state_is_closed(connection->state);
	if (packet->tcp_flags & TCP_RST) {
		if (tcp_reset_counts(connection, packet, way))
			state_set(connection, STATE_AWAITED);
	} else if (packet->tcp_flags & TCP_SYN) {
		tcp_follow_syn(connection, packet, way);
	} else {
		state_clear(connection, SENDER(STATE_AWAITED_INSIDE, way));
		if (packet->tcp_flags & TCP_FIN)
			state_set(connection, SENDER(STATE_FIN_INSIDE, way));
	}
	if (state_is_closed(connection->state))
		connection_close(key, connection, clock_second());
	else if (closed)
		tcp_open_again(key, connection);
	else if (connection->state & STATE_FINS)
		assured_expose(connection, clock_second() + TIMEOUT_TCP_HALF_CLOSED);
	return 0;
}

INLINE bool tcp_changes_state(const struct connection *connection, const struct packet *packet,
			      enum way way)
{
	if (packet->tcp_flags & (TCP_RST | TCP_SYN))
		return true;
	if ((packet->tcp_flags & TCP_FIN) && !(connection->state & SENDER(STATE_FIN_INSIDE, way)))
		return true;
	return (connection->state & SENDER(STATE_AWAITED_INSIDE, way)) &&
	       tcp_shows_life(connection, packet, way);
}

#endif

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
 * Anyone who knows the addresses can forge a packet, so one counts only if its receiver would
 * accept it. The sequence number of a RST must be the last acknowledgment of the other direction,
 * or the end of what was sent in its own: netfilter's rule. Any other packet must have a sequence
 * number close to the previous ones of its direction, a FIN's closer, and acknowledge no more than
 * the other side has sent, and hardly less than before; windows are not known. A SYN on a live
 * connection changes nothing until the other side answers with SYN-ACK; a peer that is still
 * connected answers with an ACK.
 */
#pragma once

#include "assured.h"

/* Twice the largest window that Linux offers by default, 32 MB of memory: what went unseen, as
 * while the programs were not attached, must not end the tracking. */
#define SEQUENCE_AHEAD (1 << 26)
#define SEQUENCE_BEHIND (1 << 16) /* retransmitted, or out of order */

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

/* Compares with what its sender has sent or, if not known, the other side has acknowledged. */
INLINE bool tcp_sequence_fits(const struct connection *connection, __u32 number, enum way way)
{
	if (connection->state & SENDER(STATE_SEQUENCE, way))
		return tcp_is_close(number, tcp_numbers_of(connection)[way].sequence_end);
	return !(connection->state & RECEIVER(STATE_ACKNOWLEDGED, way)) ||
	       tcp_is_close(number, tcp_numbers_of(connection)[!way].acknowledged);
}

/* It must lie between the sender's last one and the end of what the other side has sent, as far as
 * these are known; more is allowed, as packets overtake each other, and later fragments are not
 * counted. If nothing was acknowledged yet, a SYN-ACK answers the SYN; any other packet may be of a
 * connection picked up in the middle, far behind. */
INLINE bool tcp_acknowledgment_fits(const struct connection *connection,
				    const struct packet *packet, enum way way)
{
	bool known = connection->state & SENDER(STATE_ACKNOWLEDGED, way);
	const struct tcp_numbers *tcp = tcp_numbers_of(connection);
	__u32 last = tcp[way].acknowledged, end = tcp[!way].sequence_end;

	if (!(connection->state & RECEIVER(STATE_SEQUENCE, way)))
		return !known || tcp_is_close(packet->tcp_acknowledgment, last);
	if (!known)
		last = end - (packet->tcp_flags & TCP_SYN ? 0 : SEQUENCE_AHEAD);
	if (tcp_is_after(last, end))
		end = last;
	return packet->tcp_acknowledgment - last + SEQUENCE_BEHIND <=
	       end - last + 2 * SEQUENCE_BEHIND;
}

GLOBAL_FUNCTION bool tcp_is_plausible(const struct connection *connection,
				      const struct packet *packet, enum way way)
{
	if (!connection || !packet)
		return false;
	way &= 1;
	if (!(packet->tcp_flags & TCP_ACK))
		return !(connection->state & SENDER(STATE_SEQUENCE, way));
	return tcp_sequence_fits(connection, packet->tcp_sequence, way) &&
	       tcp_acknowledgment_fits(connection, packet, way);
}

INLINE bool tcp_is_near(__u32 number, __u32 last)
{
	return number - last + SEQUENCE_BEHIND < 2 * SEQUENCE_BEHIND;
}

/* Returns whether a FIN half-closes the connection. If one is missed, because what it follows was
 * lost on the way, the other side's, or a retransmission, still shortens the time-out. */
INLINE bool tcp_fin_counts(const struct connection *connection, const struct packet *packet,
			   enum way way)
{
	__u32 state = connection->state;

	if (!tcp_is_plausible(connection, packet, way))
		return false;
	if (state & SENDER(STATE_SEQUENCE, way))
		return tcp_is_near(packet->tcp_sequence,
				   tcp_numbers_of(connection)[way].sequence_end);
	if (state & RECEIVER(STATE_ACKNOWLEDGED, way))
		return tcp_is_near(packet->tcp_sequence,
				   tcp_numbers_of(connection)[!way].acknowledged);
	return !(state & RECEIVER(STATE_SEQUENCE, way)); /* picked up in the middle */
}

/* Returns whether the number is after the last one, which it then is. */
INLINE bool tcp_advance(__u32 *last, __u32 number)
{
	if (!tcp_is_after(number, *last))
		return false;
	*last = number;
	return true;
}

INLINE void tcp_remember(struct connection *connection, const struct packet *packet, enum way way)
{
	__u32 end = packet->tcp_sequence + packet->tcp_sequence_length, state = connection->state;
	struct tcp_numbers *sent = &tcp_numbers_of(connection)[way];

	if (!(state & SENDER(STATE_SEQUENCE, way))) {
		sent->sequence_end = end;
	} else if (tcp_advance(&sent->sequence_end, end)) { /* not a keep-alive */
		if (!(packet->tcp_flags & TCP_FIN))
			state_set(connection, STATE_DATA);
	}
	state_set(connection, SENDER(STATE_SEQUENCE, way));
	if (!(packet->tcp_flags & TCP_ACK))
		return;
	if (state & SENDER(STATE_ACKNOWLEDGED, way))
		tcp_advance(&sent->acknowledged, packet->tcp_acknowledgment);
	else
		sent->acknowledged = packet->tcp_acknowledgment;
	state_set(connection, SENDER(STATE_ACKNOWLEDGED, way));
}

INLINE void tcp_track(struct connection *connection, const struct packet *packet, enum way way)
{
	if (!(packet->tcp_flags & TCP_RST) && tcp_is_plausible(connection, packet, way))
		tcp_remember(connection, packet, way);
}

/* A forged SYN is answered too, but its sender does not know the SYN-ACK's number, and must not get
 * a connection that lasts for days. Of one picked up in the middle no number is known. */
INLINE bool tcp_acknowledges(const struct connection *connection, const struct packet *packet,
			     enum way way)
{
	if (!(connection->state & RECEIVER(STATE_SEQUENCE, way)))
		return true;
	return (packet->tcp_flags & TCP_ACK) &&
	       tcp_numbers_of(connection)[!way].sequence_end - packet->tcp_acknowledgment <=
		       SEQUENCE_BEHIND;
}

/* Where nothing is known of its sender, a RST of a half-open connection answers the first packet;
 * any other connection was picked up in the middle, and it may be right. */
INLINE bool tcp_reset_counts(const struct connection *connection, const struct packet *packet,
			     enum way way)
{
	const struct tcp_numbers *tcp = tcp_numbers_of(connection), *peer = &tcp[!way];
	__u32 state = connection->state;
	bool acknowledged = state & RECEIVER(STATE_ACKNOWLEDGED, way);

	if (acknowledged && packet->tcp_sequence == peer->acknowledged)
		return true;
	if (state & SENDER(STATE_SEQUENCE, way))
		return packet->tcp_sequence == tcp[way].sequence_end;
	if (state & STATE_ASSURED)
		return !acknowledged;
	return (packet->tcp_flags & TCP_ACK) && (state & RECEIVER(STATE_SEQUENCE, way)) &&
	       packet->tcp_acknowledgment == peer->sequence_end;
}

/* RST on a half-open connection. One that was only refused ends at once, as with netfilter, or
 * refusals would use up its owner's ports. Any other stays for ten seconds, for late segments;
 * an untranslated one too, which may meet another hook. */
INLINE void tcp_reset_half_open(const struct connection_key *key, struct connection *connection,
				const struct packet *packet, enum way way)
{
	__u32 id = connection->id;

	if (!tcp_reset_counts(connection, packet, way))
		return;
	if (!(connection->state & STATE_REPLIED) && connection_is_reply(connection, way) &&
	    connection->kind != FLOW_DIRECT)
		connection_end(key, id);
	else
		state_set(connection, STATE_AWAITED);
}

/* A SYN may be repeated with another initial sequence number, and after a RST begins anew. What the
 * stack has let through before says nothing of what it does now: another NAT may translate the
 * connection. A SYN-ACK must answer it. */
INLINE bool tcp_syn_half_open(struct connection *connection, const struct packet *packet,
			      enum way way)
{
	bool begins = !(packet->tcp_flags & TCP_ACK);

	if (!begins && (connection->state & RECEIVER(STATE_SEQUENCE, way)) &&
	    !tcp_is_near(packet->tcp_acknowledgment, tcp_numbers_of(connection)[!way].sequence_end))
		return false;
	state_clear(connection, SENDER(STATE_SEQUENCE, way) | SENDER(STATE_ACKNOWLEDGED, way));
	if (begins)
		connection->left_stack[way] = 0;
	if (begins && (connection->state & STATE_AWAITED))
		state_clear(connection, STATE_AWAITED | STATE_REPLIED |
						RECEIVER(STATE_SEQUENCE, way) |
						RECEIVER(STATE_ACKNOWLEDGED, way));
	return true;
}

/* Returns whether another packet counts. A requester that acknowledges the reply is no forger, but
 * a forged SYN may have changed its numbers. */
INLINE bool tcp_counts_half_open(struct connection *connection, const struct packet *packet,
				 enum way way)
{
	if (connection->state & STATE_AWAITED)
		return false;
	if (!(connection->state & STATE_REPLIED) || connection_is_reply(connection, way))
		return tcp_is_plausible(connection, packet, way);
	if (!tcp_acknowledges(connection, packet, way))
		return false;
	if (!tcp_is_plausible(connection, packet, way))
		state_clear(connection,
			    SENDER(STATE_SEQUENCE, way) | SENDER(STATE_ACKNOWLEDGED, way));
	return true;
}

/* Follows a packet of a half-open connection. False: it does not bring the connection forward. */
INLINE bool tcp_follow_half_open(const struct connection_key *key, struct connection *connection,
				 const struct packet *packet, enum way way)
{
	if (packet_tcp_is_odd(packet))
		return false;
	if (packet->tcp_flags & TCP_RST) {
		tcp_reset_half_open(key, connection, packet, way);
		return false;
	}
	if (packet->tcp_flags & TCP_SYN ? !tcp_syn_half_open(connection, packet, way)
					: !tcp_counts_half_open(connection, packet, way))
		return false;
	if ((packet->tcp_flags & TCP_FIN) && tcp_fin_counts(connection, packet, way))
		state_set(connection, SENDER(STATE_FIN, way));
	tcp_track(connection, packet, way);
	return true;
}

/* Returns whether it was sent after the connection closed. A keep-alive has the sequence number
 * before the next one. */
INLINE bool tcp_shows_life(const struct connection *connection, const struct packet *packet,
			   enum way way)
{
	return !(connection->state & SENDER(STATE_SEQUENCE, way)) ||
	       !tcp_is_after(tcp_numbers_of(connection)[way].sequence_end,
			     packet->tcp_sequence + 1);
}

/* Returns whether the packet shows that its sender, which is awaited, has gone on. */
INLINE bool tcp_revives(const struct connection *connection, const struct packet *packet,
			enum way way)
{
	__u32 state = connection->state;

	return (state & SENDER(STATE_AWAITED, way)) && tcp_shows_life(connection, packet, way) &&
	       tcp_is_plausible(connection, packet, way) &&
	       ((state & SENDER(STATE_ACKNOWLEDGED, way)) ||
		tcp_acknowledges(connection, packet, way));
}

INLINE void tcp_forget(struct connection *connection)
{
	state_clear(connection, STATE_FINS | STATE_AWAITED | EITHER(STATE_SEQUENCE) |
					EITHER(STATE_ACKNOWLEDGED) | EITHER(STATE_SYN));
}

/* SYN: a peer has lost the connection, or reuses the tuple of a closed one. */
INLINE void tcp_follow_syn(struct connection *connection, const struct packet *packet, enum way way)
{
	bool begins = packet_begins_tcp(packet);

	if (state_is_closed(connection->state)) {
		if (!begins && way == INWARDS) {
			if (tcp_acknowledges(connection, packet, way))
				state_clear(connection, SENDER(STATE_AWAITED, way));
			return;
		}
		tcp_forget(connection);
		state_set(connection,
			  RECEIVER(STATE_AWAITED, way) | (begins ? SENDER(STATE_AWAITED, way) : 0));
	} else if (begins) {
		state_set(connection, SENDER(STATE_SYN, way));
	} else if (connection->state & RECEIVER(STATE_SYN, way)) {
		tcp_forget(connection);
		tcp_numbers_of(connection)[!way].sequence_end = packet->tcp_acknowledgment;
		state_set(connection, RECEIVER(STATE_SEQUENCE, way));
	}
}

/* If its owner or client has reached its limit, it stays closed and its place may be reused. */
INLINE void tcp_open_again(const struct connection_key *key, struct connection *connection)
{
	if (share_left_to(key, connection))
		share_count(key, connection);
	else
		state_set(connection, STATE_AWAITED);
}

/* Returns whether plain segments, of either side, change nothing of the state but the numbers: the
 * connection is open, has carried data, and both sides' numbers are known. */
INLINE bool tcp_is_steady(__u32 state)
{
	const __u32 known = EITHER(STATE_SEQUENCE) | EITHER(STATE_ACKNOWLEDGED) | STATE_DATA;

	return (state & (known | STATE_ASSURED | STATE_FINS | STATE_AWAITED)) ==
	       (known | STATE_ASSURED);
}

/* Tells the connection's memos (memo.h) whether they may follow it. tcp_follow(), which alone ends
 * an assured connection's steadiness, calls it after the change, and memo_make() calls it, too.
 * Another CPU may change the state between its first reading and the write of `steady`, so it is
 * read again after the write, by an atomic operation, which keeps that order on arm64: `steady`
 * does not stay set while the state is not steady. */
INLINE void tcp_tell_memos(struct connection *connection)
{
	struct assured *place = assured_of(connection);

	if (!place)
		return;
	place->steady = tcp_is_steady(connection->state);
	if (!tcp_is_steady(__sync_fetch_and_or(&connection->state, 0)))
		place->steady = false;
}

/* Follows a packet of an assured connection. */
GLOBAL_FUNCTION int tcp_follow(const struct connection_key *key, struct connection *connection,
			       const struct packet *packet, enum way way)
{
	bool closed;

	if (!key || !connection || !packet || packet_tcp_is_odd(packet))
		return 0;
	way &= 1;
	closed = state_is_closed(connection->state);
	if (packet->tcp_flags & TCP_RST) {
		if (tcp_reset_counts(connection, packet, way))
			state_set(connection, STATE_AWAITED);
	} else if (packet->tcp_flags & TCP_SYN) {
		tcp_follow_syn(connection, packet, way);
	} else {
		if (tcp_revives(connection, packet, way))
			state_clear(connection, SENDER(STATE_AWAITED, way));
		if ((packet->tcp_flags & TCP_FIN) && tcp_fin_counts(connection, packet, way))
			state_set(connection, SENDER(STATE_FIN, way));
	}
	if (state_is_closed(connection->state))
		connection_close(key, connection, clock_second());
	else if (closed)
		tcp_open_again(key, connection);
	else if (connection->state & STATE_FINS)
		assured_expose(connection, clock_second() + LIMIT_SECONDS_HALF_CLOSED);
	tcp_track(connection, packet, way);
	tcp_tell_memos(connection);
	return 0;
}

/* Returns whether it is close to its sender's last one, and acknowledges something of what the
 * other side has sent since the last acknowledgment. */
INLINE bool tcp_continues(const struct tcp_numbers *tcp, const struct packet *packet, enum way way)
{
	__u32 last = tcp[way].acknowledged, sent = tcp[!way].sequence_end - last;

	return tcp_is_close(packet->tcp_sequence, tcp[way].sequence_end) && sent < SEQUENCE_AHEAD &&
	       packet->tcp_acknowledgment - last <= sent;
}

INLINE bool packet_is_plain_tcp(const struct packet *packet)
{
	return (packet->tcp_flags & (TCP_SYN | TCP_ACK | TCP_RST | TCP_FIN)) == TCP_ACK;
}

/* Returns whether the packet is plausible and ends or opens nothing: most packets, which need no
 * call. What its sender has acknowledged need be known, but not what the other side has. */
INLINE bool tcp_is_usual(const struct connection *connection, const struct packet *packet,
			 enum way way)
{
	const __u32 known = EITHER(STATE_SEQUENCE) | SENDER(STATE_ACKNOWLEDGED, way);
	const __u32 awaited = SENDER(STATE_AWAITED, way);

	return packet_is_plain_tcp(packet) && (connection->state & (known | awaited)) == known &&
	       tcp_continues(tcp_numbers_of(connection), packet, way);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_tcp.h - the states of a TCP flow.
 *
 * One FIN leaves a flow its long time-out: half-closed may be for long. FIN from
 * both sides, RST, and a SYN that reuses the tuple begin the short one. After RST
 * and SYN either side is awaited: once both have sent something else the flow lives
 * (a receiver that does not accept a RST answers with a challenge ACK, RFC 5961).
 *
 * A RST counts only where its receiver would accept it, or a forged one would end
 * an idle flow. Its sequence is the last acknowledgment the other way, or the end of
 * what was sent this way: netfilter's rule. What sender and window would allow is
 * not asked, so the size of the windows need not be known. A packet moves the end only
 * where both its numbers are close to what went this way before: a forged one would
 * have to guess both.
 */
#ifndef BPF_PORTMAP_FLOW_TCP_H
#define BPF_PORTMAP_FLOW_TCP_H

#include "flow_pairs.h"

#define SEQUENCE_AHEAD (1 << 24)  /* twice the window that Linux offers by default */
#define SEQUENCE_BEHIND (1 << 16) /* sent again, or out of order */

static __always_inline bool tcp_is_close(__u32 number, __u32 last)
{
	return number - last + SEQUENCE_BEHIND < SEQUENCE_AHEAD + SEQUENCE_BEHIND;
}

static __always_inline bool tcp_is_after(__u32 number, __u32 last)
{
	return (__s32)(number - last) > 0;
}

static __always_inline void tcp_forget_numbers(struct flow *flow)
{
	flow->sequence_known = 0;
	flow->acknowledged_known = 0;
}

static __always_inline bool tcp_is_plausible(const struct flow *flow, const struct packet *packet)
{
	if (!flow->sequence_known)
		return true;
	if (!(packet->tcp_flags & TCP_ACK) ||
	    !tcp_is_close(packet->tcp_sequence, flow->sequence_end))
		return false;
	return !flow->acknowledged_known ||
	       tcp_is_close(packet->tcp_acknowledgment, flow->acknowledged);
}

/* Remembers the numbers of a packet that takes this half. */
static __always_inline void tcp_track(struct flow *flow, const struct packet *packet)
{
	__u32 end = packet->tcp_sequence + packet->tcp_sequence_length;

	if (packet->tcp_flags & TCP_RST)
		return;
	if (!tcp_is_plausible(flow, packet))
		return;
	if (!flow->sequence_known || tcp_is_after(end, flow->sequence_end))
		flow->sequence_end = end;
	flow->sequence_known = 1;
	if (!(packet->tcp_flags & TCP_ACK))
		return;
	if (!flow->acknowledged_known ||
	    tcp_is_after(packet->tcp_acknowledgment, flow->acknowledged))
		flow->acknowledged = packet->tcp_acknowledgment;
	flow->acknowledged_known = 1;
}

/* Of a half-open flow. A SYN may be tried again, with another initial number. */
static __always_inline void tcp_track_new(struct flow *flow, const struct packet *packet)
{
	if (packet->tcp_flags & TCP_SYN)
		tcp_forget_numbers(flow);
	if (packet->tcp_flags & TCP_FIN)
		flow->fin = 1;
	tcp_track(flow, packet);
}

static __always_inline bool tcp_reset_counts(const struct flow *flow, const struct flow *other,
					     const struct packet *packet)
{
	if (other->acknowledged_known && packet->tcp_sequence == other->acknowledged)
		return true;
	if (flow->sequence_known)
		return packet->tcp_sequence == flow->sequence_end;
	return !other->acknowledged_known; /* begun in mid-connection: it may be right */
}

/* Of two halves */
static __always_inline enum flow_state tcp_state_of(const struct flow *flow,
						    const struct flow *other)
{
	if (flow->awaited || other->awaited || (flow->fin && other->fin))
		return STATE_CLOSING;
	return flow->fin || other->fin ? STATE_FIN : STATE_ESTABLISHED;
}

/* A packet shows that its sender is still there, unless it was on its way already when
 * the flow closed. A keep-alive has the number before the next one. */
static __always_inline bool tcp_shows_life(const struct flow *flow, const struct packet *packet)
{
	return !flow->sequence_known || !tcp_is_after(flow->sequence_end, packet->tcp_sequence + 1);
}

/* SYN on a live flow: an end that has forgotten the connection begins another one. Who is
 * outside can forge one, so there it is the container's SYN or SYN-ACK that counts. */
static __always_inline bool tcp_begins_anew(const struct flow_key *key, const struct flow *flow,
					    const struct packet *packet)
{
	return (packet->tcp_flags & TCP_SYN) &&
	       (key->direction == DIRECTION_OUT ||
		(flow->state == STATE_CLOSING && packet_begins_tcp(packet)));
}

static __always_inline bool tcp_changes_state(const struct flow_key *key, const struct flow *flow,
					      const struct packet *packet)
{
	if ((packet->tcp_flags & TCP_RST) || tcp_begins_anew(key, flow, packet))
		return true;
	return ((packet->tcp_flags & TCP_FIN) && !flow->fin) ||
	       (flow->awaited && tcp_shows_life(flow, packet));
}

static __always_inline void tcp_begin_anew(struct flow *flow, bool awaited)
{
	flow->fin = 0;
	flow->awaited = awaited;
	tcp_forget_numbers(flow);
}

static __always_inline void tcp_change(const struct flow_key *key, struct flow *flow,
				       struct flow *other, const struct packet *packet)
{
	if (packet->tcp_flags & TCP_RST) {
		if (tcp_reset_counts(flow, other, packet))
			flow->awaited = other->awaited = 1;
	} else if (tcp_begins_anew(key, flow, packet)) {
		bool awaited = flow->state == STATE_CLOSING;

		tcp_begin_anew(flow, awaited && packet_begins_tcp(packet));
		tcp_begin_anew(other, awaited);
	} else {
		flow->awaited = 0;
		flow->fin |= !!(packet->tcp_flags & TCP_FIN);
	}
}

/* Both halves learn of FIN, RST and a SYN that opens the tuple again, so that either
 * knows when it has expired. */
VERIFIED_ONCE int tcp_follow(const struct flow_key *key, struct flow *flow,
			     const struct packet *packet)
{
	struct flow_key other_key;
	struct flow *other;

	if (!key || !flow || !packet)
		return 0;
	flow_other_key(key, flow, &other_key);
	other = flow_find_in(&flows, &other_key);
	if (!other)
		return 0;
	tcp_change(key, flow, other, packet);
	flow->state = tcp_state_of(flow, other);
	other->state = flow->state;
	if (flow->state == STATE_CLOSING)
		pair_shorten(flow->pair);
	return 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lifetime.h - how long a connection may be idle: programs that find a dead one, and user space
 * that shows those that live, must agree.
 *
 * BPF code includes it after vmlinux.h, user code after <linux/types.h>.
 */
#pragma once

#include "abi.h"

/* Seconds. */
#define TIMEOUT_TCP_ESTABLISHED 432000 /* netfilter's: 5 days */
/* RFC 5382 REQ-5: at least 2 h 4 min. Idle for longer, it gives way to others: its place, its share
 * and its external port. */
#define TCP_SPARED_SECONDS 7440
#define TIMEOUT_TCP_TRANSITORY 240 /* RFC 5382 REQ-5: at least 4 min */
/* RFC 5382 REQ-5 does not except it: who has asked and closed his side may wait for long. It gives
 * way to others after netfilter's time in FIN_WAIT. */
#define TIMEOUT_TCP_HALF_CLOSED TCP_SPARED_SECONDS
#define TCP_HALF_CLOSED_SPARED_SECONDS 120
#define TIMEOUT_TCP_ABORTED 10 /* netfilter's, after RST: a half-open one */
/* For UDP-Lite too, as netfilter has it. For SCTP too: it retransmits after at most 60 s (RFC 9260
 * 16, RTO.Max), and two heartbeats of an idle association, one every 30 s plus a retransmission
 * time-out (8.3), may be lost. */
#define TIMEOUT_UDP_NEW 120  /* RFC 4787 REQ-5: at least 2 min */
#define TIMEOUT_UDP 300      /* RFC 4787 REQ-5c: 5 min or more is recommended */
#define TIMEOUT_ICMP 60      /* RFC 5508 REQ-1: at least 60 s */
#define TIMEOUT_PORTLESS 600 /* netfilter's, of protocols that it knows nothing about */

/* A UDP connection that skips the IP stack sends a packet through it in each period of so many
 * seconds, or of as many as firewall_settled says, at most these. The record of a TCP connection
 * that skips it is looked at in each period of STACK_SECONDS. */
#define STACK_SECONDS 6
#define MOST_SETTLED_SECONDS 24

#define STATE_FINS (STATE_FIN_INSIDE | STATE_FIN_OUTSIDE)
#define STATE_AWAITED (STATE_AWAITED_INSIDE | STATE_AWAITED_OUTSIDE)

static inline __attribute__((always_inline)) _Bool state_is_closed(__u32 state)
{
	return (state & STATE_AWAITED) || (state & STATE_FINS) == STATE_FINS;
}

static inline __attribute__((always_inline)) __u32 connection_timeout(enum protocol protocol,
								      __u32 state)
{
	if (protocol == PROTOCOL_TCP) {
		if (!(state & STATE_ASSURED))
			return state & STATE_AWAITED ? TIMEOUT_TCP_ABORTED : TIMEOUT_TCP_TRANSITORY;
		if (state_is_closed(state))
			return TIMEOUT_TCP_TRANSITORY;
		return state & STATE_FINS ? TIMEOUT_TCP_HALF_CLOSED : TIMEOUT_TCP_ESTABLISHED;
	}
	if (protocol == PROTOCOL_UDP || protocol == PROTOCOL_SCTP || protocol == PROTOCOL_UDPLITE)
		return state & STATE_ASSURED ? TIMEOUT_UDP : TIMEOUT_UDP_NEW;
	return protocol == PROTOCOL_ICMP || protocol == PROTOCOL_ICMPV6 ? TIMEOUT_ICMP
									: TIMEOUT_PORTLESS;
}

/* `now` and `last_seen` are CLOCK_MONOTONIC, seconds. Another CPU's clock may be a tick ahead,
 * so the difference may be negative. */
static inline __attribute__((always_inline)) __u32 idle_seconds(__u32 now, __u32 last_seen)
{
	__s32 idle = (__s32)(now - last_seen);

	return idle > 0 ? (__u32)idle : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * firewall.h - when a UDP connection that skips the IP stack goes through it again.
 *
 * The firewall must see a connection again for two reasons. Its rules may have changed: a drop rule
 * ends a connection within STACK_SECONDS. And conntrack must not forget it while it speaks: two
 * minutes after the last packet that conntrack has seen, or 30 s where that was one of the first.
 *
 * Where the kernel tells that no rule has changed since the connection was in the stack last, the
 * second reason decides, and the connection comes every `settled_seconds`: less than what conntrack
 * keeps it for after its first packets, and a fifth of what it keeps it for later. It must be
 * settled: its last two turns were so near to each other that conntrack has one entry for it, which
 * is older than two seconds.
 *
 * The kernel tells of nftables' rules, so of iptables-nft's. It does not tell what is in an ipset,
 * nor what changes by itself, as a rule that looks at the time of day: such a change ends a
 * connection that carries much within STACK_SECONDS, others within `settled_seconds`. While
 * anything else than nftables looks at forwarded packets (iptables-legacy), it tells nothing.
 */
#pragma once

#include "connection_use.h"
#include "hooks.h"

/* Of nftables' rules, as the kernel counts them */
volatile __u32 firewall_changes SEC(".data") = 0;
/* CLOCK_MONOTONIC, seconds: when a program has found that number first; 0: the kernel does not
 * tell, or not of all rules. */
volatile __u32 firewall_second SEC(".data") = 0;

/* Looks whether the rules have changed. Returns firewall_second. */
GLOBAL_FUNCTION __u32 firewall_look(struct __sk_buff *skb)
{
	__u64 net = device_net(skb);
	__u32 changes;

	if (!device_layout.known || !device_layout.settled_seconds)
		return 0;
	changes = device_read(net + device_layout.net_nftables, device_layout.nftables_changes);
	if (!hooks_are_nftables(hooks_at(net, true, HOOK_FORWARD)) ||
	    !hooks_are_nftables(hooks_at(net, false, HOOK_FORWARD))) {
		firewall_second = 0;
	} else if (!firewall_second || firewall_changes != changes) {
		firewall_second = clock_second();
		firewall_changes = changes;
	}
	return firewall_second;
}

/* Returns the second of a UDP connection's next turn in the stack: one in each of its periods. They
 * begin at a second of its own, so that connections that began together take their turns evenly.
 * much: it carries much. */
INLINE __u32 firewall_turn(const struct connection *connection, enum way way, bool much)
{
	__u32 left = connection->left_stack[way], since = firewall_second, period = STACK_SECONDS;
	__u32 phase = connection->id >> 2, wait; /* the lowest bits are not random */

	if (since && (__s32)(left - since) > 0 && !much && (connection->state & STATE_SETTLED))
		period = device_layout.settled_seconds;
	wait = period - (left + phase) % period;
	if (wait < period / 2) /* not so soon after another one */
		wait += period / 2;
	return left + wait;
}

/* A packet leaves the stack. */
INLINE void firewall_note(struct connection *connection, enum way way, __u32 now)
{
	__u32 away = now - connection->left_stack[way];

	if (away > device_layout.settled_seconds)
		state_clear(connection, STATE_SETTLED);
	else if (away >= STACK_SECONDS / 2)
		state_set(connection, STATE_SETTLED);
	connection->left_stack[way] = now;
}

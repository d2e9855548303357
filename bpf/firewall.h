/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * firewall.h - when a UDP connection that skips the IP stack goes through it again.
 *
 * The firewall must see a connection again for two reasons. Its rules may have changed: a drop rule
 * ends a connection within STACK_SECONDS. And conntrack must not forget it while it speaks: two
 * minutes after the last packet that conntrack has seen, or 30 s where that was one of the first.
 *
 * Where the kernel tells that no rule has changed since the connection was in the stack last, the
 * second reason decides, and the connection comes every `firewall_settled` seconds: less than what
 * conntrack keeps it for after its first packets, and a fifth of what it keeps it for later, as its
 * settings are now: they may change while programs and connections live. It must be
 * settled: its last two turns were so near to each other that conntrack has one entry for it, which
 * is older than two seconds.
 *
 * The kernel tells of nftables' rules, so of iptables-nft's. It does not tell what is in an ipset,
 * nor what changes by itself, as a rule that looks at the time of day: such a change ends a
 * connection that carries much within STACK_SECONDS, others within `firewall_settled` seconds.
 * While anything else than nftables looks at forwarded packets (iptables-legacy, also its table
 * raw, which does so before routing), it tells nothing.
 */
#pragma once

#include "connection_use.h"
#include "device.h"

#define HOOK_PREROUTING 0  /* NF_INET_PRE_ROUTING */
#define HOOK_FORWARD 2     /* NF_INET_FORWARD */
#define HOOK_OF_NFTABLES 1 /* NF_HOOK_OP_NF_TABLES */
#define MOST_HOOKS 16
/* Of iptables' table raw (NF_IP_PRI_RAW, NF_IP_PRI_RAW_BEFORE_DEFRAG; IPv6 has the same) */
#define PRIORITY_RAW (-300)
#define PRIORITY_RAW_FIRST (-450)

/* Of nftables' rules, as the kernel counts them */
volatile __u32 firewall_changes SEC(".data") = 0;
/* CLOCK_MONOTONIC, seconds: when a program has found that number first; 0: the kernel does not
 * tell, or not of all rules. */
volatile __u32 firewall_second SEC(".data") = 0;
/* For how long conntrack may miss a settled connection; 0 while `firewall_second` is 0. */
volatile __u32 firewall_settled SEC(".data") = 0;

/* Returns whether this one at a hook may have rules that change unseen. Before routing there are
 * conntrack and NAT, too, which have none. */
INLINE bool firewall_is_other(__u64 description, __u32 hook)
{
	__s32 priority = device_read(description, device_layout.hook_priority);

	if ((__u8)device_read(description, device_layout.hook_kind) == HOOK_OF_NFTABLES)
		return false;
	return hook == HOOK_FORWARD || priority == PRIORITY_RAW || priority == PRIORITY_RAW_FIRST;
}

/* Returns whether all rules at this hook are nftables'. hooks: where the kernel has the hooks of a
 * family. */
GLOBAL_FUNCTION bool firewall_is_nftables(__u64 hooks, __u32 hook)
{
	__u64 description;
	__u32 count;

	hooks = device_read(hooks, hook * sizeof(void *));
	if (!hooks)
		return true;
	count = (__u16)device_read(hooks, device_layout.hooks_count);
	/* Their descriptions come behind the functions, which have an argument each. */
	hooks += device_layout.hooks_first + 2ULL * count * sizeof(void *);
	for (__u32 i = 0; i < count && i < MOST_HOOKS; i++) {
		description = device_read(hooks, i * sizeof(void *));
		if (firewall_is_other(description, hook))
			return false;
	}
	return count <= MOST_HOOKS;
}

/* Returns the seconds for which conntrack may miss a settled connection; 0: not even STACK_SECONDS.
 */
INLINE __u32 firewall_conntrack_seconds(__u64 net)
{
	__u32 seconds = MOST_SETTLED_SECONDS, first, later;
	__u64 times;

	net += device_layout.net_conntrack + device_layout.conntrack_protocols;
	times = device_read(net + device_layout.conntrack_udp, device_layout.udp_times);
	if (!times)
		return seconds; /* conntrack is not loaded */
	first = (__u32)times / device_layout.ticks / 5 * 4;
	later = (__u32)(times >> 32) / device_layout.ticks / 5;
	if (first < seconds)
		seconds = first;
	if (later < seconds)
		seconds = later;
	return seconds < STACK_SECONDS ? 0 : seconds;
}

/* Returns whether all rules that a forwarded packet meets are nftables'. net: what netfilter has of
 * the namespace. */
INLINE bool firewall_tells_all(__u64 net)
{
	__u64 ipv4 = net + device_layout.hooks_ipv4, ipv6 = net + device_layout.hooks_ipv6;

	return firewall_is_nftables(ipv4, HOOK_FORWARD) &&
	       firewall_is_nftables(ipv6, HOOK_FORWARD) &&
	       firewall_is_nftables(ipv4, HOOK_PREROUTING) &&
	       firewall_is_nftables(ipv6, HOOK_PREROUTING);
}

/* Looks whether the rules have changed, and conntrack's times. Returns firewall_second. */
GLOBAL_FUNCTION __u32 firewall_look(struct __sk_buff *skb)
{
	__u64 net = device_net(skb);
	__u32 changes, settled;

	if (!device_layout.known || !device_layout.rules || !device_layout.ticks)
		return 0;
	settled = firewall_conntrack_seconds(net);
	changes = device_read(net + device_layout.net_nftables, device_layout.nftables_changes);
	if (!settled || !firewall_tells_all(net + device_layout.net_netfilter)) {
		settled = 0;
		firewall_second = 0;
	} else if (!firewall_second || firewall_changes != changes) {
		firewall_second = clock_second();
		firewall_changes = changes;
	}
	if (firewall_settled != settled)
		firewall_settled = settled;
	return firewall_second;
}

/* Returns the second of a UDP connection's next turn in the stack: one in each of its periods. They
 * begin at a second of its own, so that connections that began together take their turns evenly.
 * much: it carries much. */
INLINE __u32 firewall_turn(const struct connection *connection, enum way way, bool much)
{
	__u32 left = connection->left_stack[way], settled = firewall_settled;
	__u32 period = STACK_SECONDS;
	__u32 phase = connection->id >> 2, wait; /* the lowest bits are not random */

	if (settled && (__s32)(left - firewall_second) > 0 && !much &&
	    (connection->state & STATE_SETTLED))
		period = settled;
	wait = period - (left + phase) % period;
	if (wait < period / 2) /* not so soon after another one */
		wait += period / 2;
	return left + wait;
}

/* A packet leaves the stack. */
INLINE void firewall_note(struct connection *connection, enum way way, __u32 now)
{
	__u32 away = now - connection->left_stack[way];

	if (away > firewall_settled)
		state_clear(connection, STATE_SETTLED);
	else if (away >= STACK_SECONDS / 2)
		state_set(connection, STATE_SETTLED);
	connection->left_stack[way] = now;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - who has registered at netfilter's hooks in the host's namespace: whether all rules are
 * nftables', and whether anybody translates.
 */
#pragma once

#include "device.h"
#include "scratch.h"

#define HOOK_BEFORE_ROUTING 0 /* NF_INET_PRE_ROUTING */
#define HOOK_FORWARD 2        /* NF_INET_FORWARD */
#define HOOK_OF_NFTABLES 1    /* NF_HOOK_OP_NF_TABLES */
#define PRIORITY_NAT (-100)   /* NF_IP_PRI_NAT_DST, NF_IP6_PRI_NAT_DST */
/* Of iptables' table raw: NF_IP_PRI_RAW, NF_IP_PRI_RAW_BEFORE_DEFRAG; IPv6 has the same */
#define PRIORITY_RAW (-300)
#define PRIORITY_RAW_FIRST (-450)
#define MOST_HOOKS 16

/* Returns the address of what the kernel has for one of its hooks; 0: nobody has registered. */
INLINE __u64 hooks_at(__u64 net, bool ipv4, __u32 hook)
{
	net += device_layout.net_netfilter;
	net += ipv4 ? device_layout.hooks_ipv4 : device_layout.hooks_ipv6;
	return device_read(net, hook * sizeof(void *));
}

INLINE __u32 hooks_count(__u64 hooks)
{
	return (__u16)device_read(hooks, device_layout.hooks_count);
}

/* Returns the address of a description. They come behind the functions, which have an argument
 * each. */
INLINE __u64 hooks_description(__u64 hooks, __u32 count, __u32 number)
{
	return device_read(hooks,
			   device_layout.hooks_first + (2 * count + number) * sizeof(void *));
}

INLINE __s32 hooks_priority(__u64 description)
{
	return device_read(description, device_layout.hook_priority);
}

/* Returns whether this one at a hook may have rules that change unseen. Before routing there are
 * conntrack and NAT, too, which have none. */
INLINE bool hooks_change_unseen(__u64 description, __u32 hook)
{
	__s32 priority = hooks_priority(description);

	if ((__u8)device_read(description, device_layout.hook_kind) == HOOK_OF_NFTABLES)
		return false;
	return hook == HOOK_FORWARD || priority == PRIORITY_RAW || priority == PRIORITY_RAW_FIRST;
}

/* Returns whether all rules there are nftables'. */
GLOBAL_FUNCTION bool hooks_are_nftables(__u64 hooks, __u32 hook)
{
	__u32 count;

	if (!hooks)
		return true;
	count = hooks_count(hooks);
	for (__u32 i = 0; i < count && i < MOST_HOOKS; i++)
		if (hooks_change_unseen(hooks_description(hooks, count, i), hook))
			return false;
	return count <= MOST_HOOKS;
}

/* Returns whether one of those before routing may translate. All chains that do, whatever priority
 * they have, are called by one hook, which the kernel registers for the first base chain of a
 * namespace, or iptables-legacy's table, and takes away with the last one (nf_nat_register_fn(),
 * since Linux 4.18). */
GLOBAL_FUNCTION bool hooks_have_nat(__u64 hooks)
{
	__u32 count;

	if (!hooks)
		return false;
	count = hooks_count(hooks);
	for (__u32 i = 0; i < count && i < MOST_HOOKS; i++)
		if (hooks_priority(hooks_description(hooks, count, i)) == PRIORITY_NAT)
			return true;
	return count > MOST_HOOKS;
}

/* Whether one was ever found there, of IPv6 and of IPv4. */
volatile bool hooks_had_nat[2] SEC(".data") = {};

/* Returns whether another NAT of this host may translate packets of this family, or its entries may
 * do so again: conntrack keeps them while the rules are away for a moment, as for a reload. So once
 * one was found, this is true for good. Where it cannot be read, too. It is found out anew for each
 * set of hooks, and at each tick of the clock, since another set may get the memory of one that was
 * freed. */
INLINE bool hooks_translate(struct __sk_buff *skb, bool ipv4)
{
	struct seen_hooks *seen = &scratch_get()->hooks[ipv4];
	__u64 hooks, tick = bpf_ktime_get_coarse_ns();

	if (!device_layout.known || !device_layout.hooks || device_layout.nat_without_hook ||
	    hooks_had_nat[ipv4])
		return true;
	hooks = hooks_at(device_net(skb), ipv4, HOOK_BEFORE_ROUTING);
	if (seen->tick == tick && seen->hooks == hooks)
		return false;
	if (hooks_have_nat(hooks)) {
		hooks_had_nat[ipv4] = true;
		return true;
	}
	*seen = (struct seen_hooks){tick, hooks};
	return false;
}

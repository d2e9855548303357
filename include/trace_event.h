/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace_event.h - what the programs tell `bpf-portmap trace` about a packet, and how it asks them
 * to.
 *
 * These maps are not pinned and no part of the layout: the reader finds them by the programs that
 * are pinned, and compares `version`.
 */
#pragma once

#include "abi.h"

/* Any change here requires a new one. */
#define TRACE_VERSION 3

#define TRACE_SETTINGS ".data.trace" /* a map of one: struct trace_settings */
#define TRACE_EVENTS "trace_events"  /* a PERF_EVENT_ARRAY of struct trace_event */

/* In the order of the programs' numbers in user space */
enum trace_hook {
	TRACE_FROM_UPLINK,
	TRACE_TO_UPLINK,
	TRACE_FROM_UPLINK_RAW,
	TRACE_TO_UPLINK_RAW,
	TRACE_FROM_BRIDGE,
	TRACE_TO_CONTAINER,
	TRACE_FROM_CONTAINER,
	TRACE_FROM_LOOPBACK,
	TRACE_KERNEL, /* a packet that the kernel dropped: struct trace_drop */
} __attribute__((packed));

/* A packet is wanted if one of its tuples, before or after the program, has all that is set. */
struct trace_filter {
	__u8 address[16];       /* source or destination; all zero: any */
	__u16 port;             /* source's or destination's; 0: any */
	enum protocol protocol; /* 0: any */
	__u8 drops;             /* 1: only dropped packets */
	/* 1: what leaves by an uplink for `address` and `port`, both set, ends there: `doctor` has
	 * sent a packet in the name of that client, who shall get no answer. */
	__u8 swallow;
	__u8 reserved[3];
} __attribute__((aligned(8)));

struct trace_settings {
	__u32 version;
	/* CLOCK_MONOTONIC, seconds: the programs tell until then, and then write 0. The reader
	 * moves it on, so that nothing goes on when it is killed. */
	__u32 until;
	struct trace_filter filter;
} __attribute__((aligned(8)));

struct trace_tuple {
	__u8 source[16];
	__u8 destination[16];
	__u16 source_port;
	__u16 destination_port;
	__u8 reserved[4];
} __attribute__((aligned(8)));

/* Of an ICMP error the tuples are those of a reply to the packet that it quotes. */
struct trace_event {
	__u64 time; /* CLOCK_MONOTONIC, ns */
	enum trace_hook hook;
	enum protocol protocol; /* 0: none that is translated */
	__u8 tcp_flags;
	__u8 fragment; /* 1: the first, 2: a later one */
	__u8 error;    /* 1: an ICMP error */
	__u8 reserved[3];
	/* What was counted for this packet: a bit for each member of struct counters, in order.
	 * Those that nearly every packet counts are left out: rewritten_*, fast_*. */
	__u64 counted;
	struct trace_tuple before; /* as the program got it */
	struct trace_tuple after;  /* and left it */
	__u8 sender[16];           /* of an ICMP error */
	__u32 ifindex;
	__u32 in_ifindex; /* where a forwarded packet came in; else 0, or ifindex */
	__s32 action;     /* the program's return value */
	__u32 length;
} __attribute__((aligned(8)));

/* A packet that the kernel dropped (bpf/drops.bpf.c), through the same map. Begins as the above. */
struct trace_drop {
	__u64 time;
	enum trace_hook hook; /* TRACE_KERNEL */
	enum protocol protocol;
	__u8 tcp_flags;
	__u8 in_container; /* 1: in another network namespace than the host's */
	__u32 netns;       /* that namespace's inode */
	__u64 location;    /* the instruction that follows the call of kfree_skb() */
	struct trace_tuple tuple;
	__u32 reason;      /* enum skb_drop_reason; 0: the kernel does not tell */
	__u32 ifindex;     /* of the device that it belonged to; 0: none */
	__u32 out_ifindex; /* of the device that routing chose; 0: not routed yet */
	__u32 length;
} __attribute__((aligned(8)));

_Static_assert(sizeof(struct counters) / sizeof(__u64) <= 64, "a bit for each counter");
_Static_assert(sizeof(struct trace_event) == 136 && sizeof(struct trace_drop) == 80,
	       "part of TRACE_VERSION");

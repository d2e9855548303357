/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* generator.h - what generator.c passes to generator.bpf.c; included after the headers' types. */
#pragma once

/* Flows that differ by their source port alone: half of the 31,744 ports that masquerading has by
 * default towards one port of one server, so that none is refused. */
#define GENERATOR_PORTS 16384
#define GENERATOR_FIRST_PORT 1024
#define GENERATOR_BURSTS 32 /* at most */

struct generator_headers4 {
	struct ethhdr ethernet;
	struct iphdr ip;
	struct udphdr udp;
} __attribute__((packed));

struct generator_headers6 {
	struct ethhdr ethernet;
	struct ipv6hdr ip;
	struct udphdr udp;
} __attribute__((packed));

/* A flow is a number: its lower bits are the source port, the others are added to the base of the
 * address that varies, for IPv6 to its last 32 bits. The sums cover all that does not vary. User
 * space reads `sent` and `next` while the program writes them. */
struct generator_plan {
	__u32 ifindex;
	__u32 ipv6;
	__u32 to_many; /* 1: destinations vary, 0: sources do */
	__u32 first;   /* flow */
	__u32 flows;
	__u32 next;          /* incremented by the program */
	__u64 sent;          /* likewise */
	__u64 count;         /* limit of `sent`; 0: none */
	__u64 interval;      /* nanoseconds between packets; 0: as fast as possible */
	__u64 next_time;     /* set by the program; of bursts: when the next one begins */
	__u64 paced_by_sink; /* 1: packets wait for room on the way to the sink */
	__u64 waited;        /* how often they did, incremented by the program */
	__u64 room;          /* how many may be sent before it looks again, set by the program */
	__u64 every;         /* nanoseconds from one burst to the next; 0: no bursts */
	__u64 begun; /* set by the program: this burst's time, and both counts at that time */
	__u64 sent_before;
	__u64 arrived_before;
	__u64 took[GENERATOR_BURSTS]; /* nanoseconds, set by the program */
	__u32 bursts;                 /* that are over */
	__u32 base;                   /* (the end of) the address, in host byte order */
	__u32 ip_sum;
	__u32 udp_sum;
	union {
		struct generator_headers4 headers4;
		struct generator_headers6 headers6;
	};
};

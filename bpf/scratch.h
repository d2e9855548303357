/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * scratch.h - memory for what does not fit on the BPF stack, 512 bytes for a whole call chain.
 *
 * Programs at tc do not interrupt each other on one CPU. Before Linux 6.2 no helper accepts a key
 * through a global function's pointer argument, but every helper accepts one in a map.
 */
#pragma once

#include "packet.h"

/* How a packet has come to the hook, if that is an ingress. */
struct arrival {
	__u32 ifindex;        /* the ingress interface for routing: a bridge rather than its port */
	__u32 veth;           /* the container's, where it has sent the packet */
	bool routed;          /* goes into the IP stack, not switched */
	bool sender_verified; /* the source address is the sender's own */
	bool may_offload;     /* the packet may skip the stack */
	bool by_bridge;       /* from its bridge's ingress: a veth without a program of ours */
	struct owner owner;   /* of the container whose packet is routed, or {0, 0} */
};

/* The order in which a masqueraded connection tries ports (port_choice.h) */
struct port_order {
	__u64 start;         /* of all but the own one: from the connection's hash */
	__u32 number : 31;   /* of ports in the set */
	__u32 keeps_own : 1; /* the container's own port may be kept */
	__u16 own;
	__u16 next;         /* place to try */
	__u16 places;       /* number of places to try */
	__u32 ports;        /* that its owner has towards this server */
	bool own_published; /* the container's own port leads to it by a mapping */
	bool share_used;    /* its owner has used its share: only ports that are given up */
	bool privileged;    /* not of the set: below 1024 */
};

/* A connection that is being made, and its alias if it needs one. A CPU makes one at a time, so the
 * functions draft_*() work on its only draft. */
struct draft {
	struct connection_key key;
	struct connection_key external;
	struct alias alias;
	struct connection connection;
};

/* What conntrack says of a connection that another NAT translates */
struct tracked {
	__u8 client[16]; /* the first packet's source, IPv4 in the first four bytes */
	__be16 client_port;
	__u16 family;
	__u8 asked[16]; /* its destination */
	__be16 asked_port;
	__u8 tcp_state;
	__u8 direction; /* of the tuple that was asked about */
	__u32 status;
};

/* netfilter's hooks of one family at which no other NAT is (hooks.h) */
struct seen_hooks {
	__u64 tick; /* CLOCK_MONOTONIC_COARSE, ns: when that was found out */
	__u64 hooks;
};

/* What an answer of routing rests on: it is the answer for whoever has the same. */
struct basis {
	__u8 address[16]; /* of the next hop, as bpf_fib_lookup() gives it; inwards unset */
	/* What device_host_routes() said before routing was asked; inwards 1. 0: others must ask
	 * for themselves. */
	__u64 routes;
	__u32 rules; /* what firewall_look() said */
	__u32 reserved;
};

/* What is done to the packets between one of our addresses and any peer. */
struct treatment {
	__u32 only_in;    /* the only second in which it is valid; 0: it may be confirmed again */
	__u32 ifindex;    /* skb->ifindex at the hook that carries it out */
	__u8 address[16]; /* ours: the packet's destination inwards, its source outwards */
	struct basis basis;
	struct owner owner;
	__u32 offload_dropped; /* of struct meta */
	__u32 ways;            /* as in struct connection: for packets that leave the stack */
	__u16 mtu;             /* of a path */
	bool counted;          /* the packets are added to the record */
	__u8 reserved[5];
	struct translation translation; /* without ports */
} __attribute__((aligned(8)));

/* Those who have the places of a row (fragment.h) */
struct contest {
	__u32 accounts[FRAGMENT_PLACES];
	__u64 over[FRAGMENT_PLACES]; /* 1: the place is free, or its time is over */
	__u32 ages[FRAGMENT_PLACES]; /* 2^20 ns */
};

struct scratch {
	struct draft draft;
	struct connection_key found; /* of the packet's connection */
	struct connection_key other; /* of another connection being examined */
	struct connection_key ended; /* used by connection_end() */
	struct connection_key ended_external;
	struct connection_key claimed; /* used by assured_claim() */
	struct port_order order;       /* of ports for the draft */
	struct tuple reply;            /* the tuple of a reply to the draft's port */
	struct tracked tracked;
	struct seen_hooks hooks[2];   /* of IPv6 and of IPv4 */
	struct fragment_key datagram; /* of the fragment at hand */
	struct contest contest;
	struct bpf_fib_lookup query;
	struct bpf_fib_lookup asked; /* route_ask() only: what its caller asks, */
	struct bpf_fib_lookup tried; /* and the same with another source port */
	struct treatment treatment;  /* of the packet: memo.h */
	struct basis basis;          /* of the packet's path, if it was renewed for it */
	struct packet packet;        /* at hand */
	struct arrival arrival;
	struct translation translation; /* of that packet */
};

ARRAY_OF(scratch, BPF_MAP_TYPE_PERCPU_ARRAY, struct scratch, 1);

INLINE struct scratch *scratch_get(void)
{
	return SINGLE(scratch);
}

INLINE struct draft *draft_get(void)
{
	return &scratch_get()->draft;
}

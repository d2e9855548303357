/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_context.h - what is known about the packet at hand, passed on from stage to stage.
 *
 * It is on the entry program's stack, because a pointer that is kept in a map is a pointer no more.
 * All functions that take it are inlined, so it costs no memory; global functions take the parts
 * that they need.
 */
#pragma once

#include "connection_use.h"

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

struct flow_context {
	struct __sk_buff *skb;
	struct packet *packet;
	struct translation *translation; /* to be filled in */
	const struct endpoint *sender;   /* the container with the packet's source, or NULL */
	const struct endpoint *receiver; /* the destination, if it has this client masqueraded */
	struct portmap *mapping;         /* of an inward packet's destination, or NULL */
	enum packet_kind kind;
	struct found found; /* the packet's connection */
	struct arrival arrival;
};

/* What a packet is to us, by one look-up */
enum relation {
	RELATION_NONE,        /* can be of none: another NAT's, a fragment without ports, ... */
	RELATION_NEW,         /* of no connection: may begin one */
	RELATION_ESTABLISHED, /* of a connection, request or reply */
	RELATION_RELATED,     /* an ICMP error about one's packet */
};

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_context.h - what is known about the packet at hand, passed on from stage to stage.
 *
 * It has the pointers, and is on the stack, because a pointer that is kept in a map is a pointer no
 * more. What it points to is in scratch, where a stage that is a global function finds it: the
 * verifier looks at such a stage once, and not again for each way that leads there.
 */
#pragma once

#include "connection_use.h"

struct flow_context {
	struct __sk_buff *skb;
	struct packet *packet;
	struct translation *translation; /* to be filled in */
	const struct endpoint *sender;   /* the container with the packet's source, or NULL */
	const struct endpoint *receiver; /* the destination, if it has this client masqueraded */
	struct portmap *mapping;         /* of an inward packet's destination, or NULL */
	const struct interface *port; /* the container's veth where the packet arrived, or NULL */
	enum packet_kind kind;
	struct found found; /* the packet's connection */
	struct arrival *arrival;
};

/* The arrival is the ingress hooks' to set: at egress it is that of an earlier packet. */
INLINE struct flow_context flow_of(struct __sk_buff *skb)
{
	struct scratch *scratch = scratch_get();

	return (struct flow_context){.skb = skb,
				     .packet = &scratch->packet,
				     .translation = &scratch->translation,
				     .arrival = &scratch->arrival};
}

/* What a packet is to us, by one look-up */
enum relation {
	RELATION_NONE,        /* can be of none: another NAT's, a fragment without ports, ... */
	RELATION_NEW,         /* of no connection: may begin one */
	RELATION_ESTABLISHED, /* of a connection, request or reply */
	RELATION_RELATED,     /* an ICMP error about one's packet */
};

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * strict.h - containers that nobody outside reaches but by their mapped ports ("strict").
 *
 * What an uplink brings to the container's own address is dropped unless it belongs to a flow.
 * Replies to what is masqueraded come to the host's address, and have one. What the container
 * sends out with its own address is therefore remembered where it leaves, as a direct flow that
 * the container has begun, any packet of it but a RST: that one the host's firewall may have
 * made.
 */
#ifndef BPF_PORTMAP_STRICT_H
#define BPF_PORTMAP_STRICT_H

#include "flow_create.h"

/* Of a packet with this container's address as destination that no flow has. */
static __always_inline bool strict_refuses(const struct endpoint *endpoint, __u32 ifindex)
{
	const struct interface *interface;

	if (!endpoint->strict || !owner_live(&endpoint->owner))
		return false;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	return interface && interface->role == ROLE_UPLINK;
}

/* The same of what has no tuple, or another packet's: its own destination is read once more. */
VERIFIED_ONCE bool strict_refuses_other(struct __sk_buff *skb, const struct packet *packet)
{
	const struct endpoint *endpoint;
	struct endpoint_key key = {};
	__be32 ipv4;

	if (!packet)
		return false;
	if (packet->ipv4) {
		if (!packet_load(skb, packet->l3_offset + 16, &ipv4, sizeof(ipv4)))
			return false;
		address_from_ipv4(key.address, ipv4);
	} else if (!packet_load(skb, packet->l3_offset + 24, key.address, 16)) {
		return false;
	}
	endpoint = bpf_map_lookup_elem(&endpoints, &key);
	return endpoint && strict_refuses(endpoint, skb->ifindex);
}

/* A strict container's packet that leaves by an uplink as it is. */
VERIFIED_ONCE int strict_remember(const struct packet *packet, const struct endpoint *endpoint)
{
	struct flow *flow = flow_scratch(SCRATCH_BEGUN);

	if (!packet || !endpoint || !flow)
		return 0;
	if (packet->echo_reply || (packet->tcp_flags & TCP_RST))
		return 0;
	flow->owner = endpoint->owner;
	flow->kind = FLOW_DIRECT;
	address_copy(flow->address, packet->tuple.source);
	flow->port = packet->tuple.source_port;
	flow->peer_port = packet->tuple.destination_port;
	if (flow_create(&packet->tuple, flow) == CLAIM_OK)
		count(flow_direct);
	return 0;
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * masquerade.h - how long a masqueraded connection may keep its address.
 *
 * Addresses come and go, and routes move; netfilter ends the connections of an address or an
 * interface then. So this is asked once a second, wherever such a connection leaves, and where it
 * leaves by another uplink than before.
 */
#pragma once

#include "policy.h"
#include "route.h"

/* Returns whether it has its address by snatAddresses, which need not be the host's. */
INLINE bool masquerade_is_fixed(const struct connection_key *key,
				const struct connection *connection)
{
	struct address fixed;

	return (connection->state & STATE_CHARGED_OUT) &&
	       policy_source(&connection->owner, key->inside, &fixed) &&
	       address_equal(fixed.bytes, connection->external_address);
}

/* Returns whether routing would choose its address for this uplink now. */
INLINE bool masquerade_is_preferred(struct __sk_buff *skb, const struct packet *packet,
				    const struct connection *connection, __u32 uplink)
{
	struct address chosen;

	return route_source(skb, packet, uplink, &chosen) &&
	       address_equal(chosen.bytes, connection->external_address);
}

/* Returns whether a connection that now leaves by this uplink has another one's address, which it
 * may give up. TCP cannot. */
INLINE bool masquerade_leaves_elsewhere(const struct connection_key *key,
					const struct connection *connection, __u32 uplink)
{
	return connection->kind == FLOW_MASQUERADE && connection->uplink != uplink &&
	       key->protocol != PROTOCOL_TCP;
}

/* Returns whether a connection that now leaves by this uplink keeps its address. It must be the
 * host's still and, by another uplink than before, what routing would choose there; but TCP cannot
 * change its address, and goes on with the one that it has. */
GLOBAL_FUNCTION bool masquerade_stands(struct __sk_buff *skb, const struct packet *packet,
				       const struct connection_key *key,
				       struct connection *connection, __u32 uplink)
{
	const struct slot *slot;
	struct address address;

	if (!packet || !key || !connection || connection->kind != FLOW_MASQUERADE || !uplink)
		return true;
	slot = owner_slot(&connection->owner);
	if (!slot)
		return true;
	if (network_refuses(&connection->owner, uplink))
		return false;
	if (masquerade_is_fixed(key, connection)) {
		connection->uplink = uplink;
		return true;
	}
	if (masquerade_leaves_elsewhere(key, connection, uplink)) {
		if (!masquerade_is_preferred(skb, packet, connection, uplink))
			return false;
		connection->uplink = uplink;
		return true;
	}
	address_copy(address.bytes, connection->external_address);
	return route_is_to_host(skb, packet, slot->gateway, &address) ||
	       masquerade_is_preferred(skb, packet, connection, uplink);
}

/* Returns whether a next hop of the packet's route is at this interface. */
GLOBAL_FUNCTION bool masquerade_may_leave_by(struct __sk_buff *skb, const struct packet *packet,
					     __u32 ifindex)
{
	struct bpf_fib_lookup *query = &scratch_get()->query;
	struct next_hop wanted = {.ifindex = ifindex};

	if (!packet)
		return false;
	route_query(query, packet, skb->ingress_ifindex);
	return route_leads_to(query, route_ask(skb, query, &wanted), &wanted);
}

/* Returns the connection's uplink if the stack has taken another next hop of the same route for
 * this packet: over IPv6 its hash differs for a fragment. Else 0: the packet has another route. */
INLINE __u32 masquerade_reroute(struct __sk_buff *skb, const struct packet *packet, __u32 uplink)
{
	return masquerade_may_leave_by(skb, packet, skb->ifindex) &&
			       masquerade_may_leave_by(skb, packet, uplink)
		       ? uplink
		       : 0;
}

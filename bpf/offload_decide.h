/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offload_decide.h - which connections skip the IP stack, and by which path.
 *
 * A connection goes through the stack until packets of both directions have left it with exactly
 * the expected tuples: what a rule drops, or another program's NAT changes, never skips the stack.
 * left_stack is when that was last seen: outwards by the hook that translates; inwards by the hook
 * behind the stack, for packets marked with TC_INDEX_CONFIRM (offload_saw_leaving).
 *
 *               both directions seen
 *   UNDECIDED ---------------------------> CONTAINER, OUT --+ one packet or one second through the
 *    ^     |      (offload_decide)           |      |    ^  | stack: UDP's turn, too long, no
 * route, |     | the host takes part, masqAll,   |      |    +--+ a device that is watched |     v
 * a mark, a narrow MTU            |      | |   STACK, for good <-- other network --+      |
 *    +---- drop-offload, or the stack chooses another way (offload_note, offload_note_way)
 *
 * Then either both directions get a path or none. TCP does not return to the stack after that:
 * conntrack has missed sequence numbers and windows, and would call the packets invalid. UDP
 * returns every few seconds (firewall.h).
 * While a container's veth or bridge has a qdisc or filter (device.h), its connections go through
 * the stack.
 */
#pragma once

#include "connection_use.h"
#include "device.h"
#include "endpoint.h"
#include "memo.h"

INLINE bool offload_concerns(enum protocol protocol, const struct connection *connection)
{
	return (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP) &&
	       connection_is_translated(connection);
}

INLINE enum fast_path offload_mode(const struct owner *owner)
{
	const struct slot *slot = owner_slot(owner);

	return slot ? slot->fast_path : FAST_PATH_OFF;
}

INLINE bool offload_was_seen(const struct connection *connection, enum way way)
{
	return connection->left_stack[way] > SINGLE(meta)->offload_dropped;
}

/* A packet has left the stack. If drop-offload ran since the last one, the path is decided again.
 */
INLINE void offload_note(const struct connection_key *key, struct connection *connection,
			 enum way way, __u32 now)
{
	if (connection->left_stack[way] == now)
		return;
	if (connection->path[way] >= PATH_CONTAINER && !offload_was_seen(connection, way))
		connection->path[way] = PATH_UNDECIDED;
	firewall_note(connection, way, now);
	if (connection->path[way] >= PATH_CONTAINER && connection->next_hop[way].ifindex)
		memo_go_on(key, connection, way);
}

/* A packet in the container's name leaves the stack. If the host has made it, the host takes part
 * in the connection: a firewall that answers SYNs itself changes sequence numbers from then on.
 * Only a connection that has a path already keeps it, whatever is rejected in its name. (IPv6
 * fragments put together for the firewall look like the host's own.) Where the container sends by
 * another network, conntrack would see one direction only, and call that invalid. */
GLOBAL_FUNCTION int offload_note_outwards(struct __sk_buff *skb, const struct packet *packet,
					  const struct connection_key *key,
					  struct connection *connection, __u32 now)
{
	bool has_path;

	if (!packet || !key || !connection)
		return 0;
	has_path = connection->path[OUTWARDS] >= PATH_CONTAINER;
	if (!has_path && !skb->ingress_ifindex && !packet->fragment)
		connection_stay_in_stack(connection, REASON_HOST);
	else if (connection->left_stack[OUTWARDS] != now &&
		 (has_path || skb->ingress_ifindex == owner_gateway(&connection->owner))) {
		if (!packet->l3_offset)
			connection->stack_reason = REASON_INTERFACE;
		offload_note(key, connection, OUTWARDS, now);
	}
	return 0;
}

/* A masqueraded packet leaves the stack. If the path uses another interface or next hop, it is
 * decided again: the stack may know rules that bpf_fib_lookup() does not. */
INLINE void offload_note_way(struct __sk_buff *skb, const struct packet *packet,
			     struct connection *connection, __u32 now)
{
	const struct next_hop *next_hop = &connection->next_hop[OUTWARDS];

	if (connection->left_stack[OUTWARDS] == now)
		return;
	route_note_way(skb, packet, connection);
	if (connection->path[OUTWARDS] == PATH_OUT && next_hop->ifindex &&
	    (next_hop->ifindex != connection->out_ifindex ||
	     !route_same_next_hop(next_hop->destination, connection->out_destination)))
		connection->path[OUTWARDS] = PATH_UNDECIDED;
}

/* A reply leaves the stack. If a query cannot say why there, that is its way, whatever its new
 * source, and a connection without a path stays in the stack. Only one way leads to a container. */
GLOBAL_FUNCTION int offload_heed_stack(struct __sk_buff *skb, const struct packet *packet,
				       struct connection *connection)
{
	__u32 id;

	if (!packet || !connection)
		return 0;
	id = connection->id;
	if (endpoint_is_likely(packet->tuple.destination) || route_is_plain(skb, packet) ||
	    connection->id != id)
		return 0;
	connection->out_ifindex = skb->ifindex;
	if (connection->path[OUTWARDS] < PATH_CONTAINER)
		connection_stay_in_stack(connection, REASON_ROUTING);
	return 0;
}

/* Returns whether the hook behind the stack shall confirm this packet: once a second. UDP that
 * nobody has answered can have no path yet, and much of it is one-way. */
INLINE bool offload_wants_confirmation(const struct found *found)
{
	const struct connection *connection = found->connection;

	return connection->left_stack[INWARDS] != found->now &&
	       (found->key->protocol != PROTOCOL_UDP || (connection->state & STATE_REPLIED) ||
		connection_is_reply(connection, found->way)) &&
	       connection->path[INWARDS] != PATH_STACK &&
	       offload_concerns(found->key->protocol, connection) &&
	       offload_mode(&connection->owner) != FAST_PATH_OFF;
}

/* A packet leaves the stack for a container with the tuple that it entered with. */
GLOBAL_FUNCTION int offload_saw_leaving(const struct packet *packet, __u32 ifindex)
{
	struct connection *connection;

	if (!packet)
		return 0;
	connection = connection_of(&packet->tuple, INWARDS);
	if (!connection || !offload_concerns(packet->tuple.protocol, connection))
		return 0;
	connection->in_ifindex = ifindex;
	offload_note(&scratch_get()->other, connection, INWARDS, clock_second());
	return 0;
}

/* Returns the source by which packets of this direction are routed after translation. */
INLINE const __u8 *offload_source(const struct connection_key *key,
				  const struct connection *connection, enum way way)
{
	if (way == INWARDS)
		return key->outside;
	/* A reply's is the one that `ip rule from` must match. */
	return connection->kind == FLOW_MAPPING ? connection->external_address : key->inside;
}

/* Makes the query for packets of this direction after translation. */
INLINE void offload_query(const struct connection_key *key, const struct connection *connection,
			  enum way way, __u32 ifindex, struct bpf_fib_lookup *query)
{
	bool inwards = way == INWARDS;

	__builtin_memset(query, 0, sizeof(*query));
	query->ifindex = ifindex;
	query->l4_protocol = key->protocol;
	query->sport = bpf_htons(inwards ? key->outside_port : key->inside_port);
	query->dport = bpf_htons(inwards ? key->inside_port : connection->peer_port);
	query->tot_len = 1; /* 0 would not return the MTU */
	route_query_addresses(query, offload_source(key, connection, way),
			      inwards ? key->inside : key->outside);
}

/* Asks routing about packets of this direction that arrive at ifindex. Those that leave the host
 * keep to the next hop that the connection has. If the neighbour is unresolved, the last known MTU
 * stays. False: there is no route now. */
GLOBAL_FUNCTION bool offload_ask_routing(struct __sk_buff *skb, const struct connection_key *key,
					 struct connection *connection, enum way way, __u32 ifindex)
{
	struct bpf_fib_lookup *query = &scratch_get()->query;
	struct next_hop *next_hop;
	long result;
	__u32 id;

	if (!key || !connection)
		return false;
	way &= 1;
	id = connection->id;
	next_hop = &connection->next_hop[way];
	offload_query(key, connection, way, ifindex, query);
	result = way == OUTWARDS && connection->path[way] != PATH_CONTAINER
			 ? route_ask(skb, query, next_hop)
			 : bpf_fib_lookup(skb, query, sizeof(*query), 0);
	if (!route_is_found(result) || connection->id != id)
		return false;
	next_hop->ifindex = query->ifindex;
	if (result == BPF_FIB_LKUP_RET_NO_NEIGH) {
		if (connection->path[way] != PATH_CONTAINER)
			__builtin_memset(next_hop->destination, 0, ETH_ALEN);
		return next_hop->mtu != 0;
	}
	next_hop->mtu = query->mtu_result;
	__builtin_memcpy(next_hop->destination, query->dmac, ETH_ALEN);
	__builtin_memcpy(next_hop->source, query->smac, ETH_ALEN);
	return true;
}

/* Returns the interface through which routing reaches a container: its bridge or veth. 0: packets
 * must not skip what is attached there. */
INLINE __u32 offload_gateway(__u32 veth)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &veth);

	if (!interface || interface->without_fast_path || interface->watched)
		return 0;
	return interface->role == ROLE_PORT ? interface->bridge_ifindex : veth;
}

/* Says why the connection goes through the stack: for good, or for now. */
INLINE enum flow_path offload_not(struct connection *connection, enum stack_reason reason)
{
	connection->stack_reason = reason;
	return reason == REASON_WATCHED ? PATH_UNDECIDED : PATH_STACK;
}

/* Returns a path if routing leads to this container from another interface; not on the same
 * bridge. */
INLINE enum flow_path offload_into(struct connection *connection, enum way way,
				   const struct slot *container, __u32 ifindex)
{
	struct next_hop *next_hop = &connection->next_hop[way];
	__u32 gateway;

	if (!container || container->fast_path == FAST_PATH_OFF)
		return offload_not(connection, REASON_OFF);
	gateway = offload_gateway(container->ifindex);
	if (!gateway)
		return offload_not(connection, REASON_WATCHED);
	if (next_hop->ifindex != gateway || gateway == ifindex)
		return offload_not(connection, REASON_NEIGHBOURS);
	next_hop->ifindex = container->ifindex;
	return PATH_CONTAINER;
}

INLINE bool offload_may_pass(__u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && !interface->without_link_header && !interface->without_fast_path;
}

INLINE enum flow_path offload_out(struct connection *connection)
{
	__u32 ifindex = connection->next_hop[OUTWARDS].ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && interface->role == ROLE_UPLINK && offload_may_pass(ifindex)
		       ? PATH_OUT
		       : offload_not(connection, REASON_INTERFACE);
}

/* Finds the path of packets of this direction that arrive at ifindex. PATH_UNDECIDED: not now. */
GLOBAL_FUNCTION int offload_find_one(struct __sk_buff *skb, const struct connection_key *key,
				     struct connection *connection, enum way way, __u32 ifindex)
{
	const struct slot *container, *own;

	if (!key || !connection)
		return PATH_UNDECIDED;
	way &= 1;
	own = owner_slot(&connection->owner);
	if (!own || own->fast_path == FAST_PATH_OFF)
		return offload_not(connection, REASON_OFF);
	if (way == OUTWARDS && !offload_gateway(own->ifindex))
		return offload_not(connection, REASON_WATCHED);
	if (!offload_ask_routing(skb, key, connection, way, ifindex))
		return PATH_UNDECIDED;
	if (!offload_may_pass(ifindex))
		return offload_not(connection, REASON_INTERFACE);
	container = way == INWARDS ? own : endpoint_slot(key->outside);
	return container ? offload_into(connection, way, container, ifindex)
			 : offload_out(connection);
}

/* Returns whether TCP of the container would return to the stack: it may exceed the outgoing MTU.
 */
INLINE bool offload_is_narrow(struct __sk_buff *skb, const struct next_hop *out, __u32 veth)
{
	__u32 mtu = 1; /* in: a length that fits; out: the veth's MTU */

	return bpf_check_mtu(skb, veth, &mtu, 0, 0) || out->mtu < mtu;
}

/* Has the stack let both directions through, or need it not? A path needs no place among the
 * assured; but a TCP client that has not proved its address sends nothing that is in a hurry. */
INLINE bool offload_is_due(const struct connection_key *key, const struct connection *connection)
{
	__u32 needed = key->protocol == PROTOCOL_TCP ? STATE_ASSURED : STATE_REPLIED;

	return (connection->kind == FLOW_MAPPING &&
		offload_mode(&connection->owner) == FAST_PATH_ALWAYS) ||
	       ((connection->state & needed) && offload_was_seen(connection, INWARDS) &&
		offload_was_seen(connection, OUTWARDS));
}

/* Paths for both directions, or for none. ifindex: where inward packets arrive; 0: where outward
 * ones leave. None with masqAll, where the host takes the client's place. */
GLOBAL_FUNCTION int offload_find_both(struct __sk_buff *skb, const struct connection_key *key,
				      struct connection *connection, __u32 ifindex)
{
	struct next_hop *next_hop;
	const struct slot *slot;
	int out, in;

	if (!key || !connection)
		return PATH_UNDECIDED;
	slot = owner_slot(&connection->owner);
	if (!slot || endpoint_slot(key->inside) != slot)
		return offload_not(connection, REASON_NETWORK);
	if (policy_masquerades_client(&connection->owner, key->outside))
		return offload_not(connection, REASON_MASQUERADED);
	next_hop = &connection->next_hop[OUTWARDS];
	/* Of several next hops it keeps to the one that the stack has chosen. */
	next_hop->ifindex = connection->out_ifindex;
	__builtin_memcpy(next_hop->destination, connection->out_destination, ETH_ALEN);
	out = offload_find_one(skb, key, connection, OUTWARDS, offload_gateway(slot->ifindex));
	if (out < PATH_CONTAINER)
		return out;
	if (connection->kind == FLOW_MASQUERADE && connection->out_ifindex &&
	    connection->out_ifindex !=
		    (out == PATH_OUT ? next_hop->ifindex : offload_gateway(next_hop->ifindex)))
		return offload_not(connection, REASON_ROUTING);
	if (!route_same_next_hop(next_hop->destination, connection->out_destination))
		return PATH_UNDECIDED; /* the same, or the next hop has another MAC since */
	if (!offload_may_pass(skb->ifindex))
		return PATH_UNDECIDED;
	if (offload_is_narrow(skb, next_hop, slot->ifindex))
		return offload_not(connection, REASON_MTU);
	in = offload_find_one(skb, key, connection, INWARDS, ifindex ?: next_hop->ifindex);
	return in < PATH_CONTAINER ? in : out;
}

/* Both ends may be containers. Called before a path is searched, because the check needs room on
 * the stack. */
GLOBAL_FUNCTION int offload_check_devices(struct __sk_buff *skb, const struct connection_key *key)
{
	const struct slot *slot;

	if (!key || !device_layout.known)
		return 0;
	slot = endpoint_slot(key->inside);
	if (slot)
		device_check(skb, slot->ifindex);
	slot = endpoint_slot(key->outside);
	if (slot)
		device_check(skb, slot->ifindex);
	return 0;
}

/* Decides about a candidate (offload_is_candidate()), for both directions at once. ifindex: as in
 * offload_find_both(), and where the packet arrived. */
GLOBAL_FUNCTION int offload_decide(struct __sk_buff *skb, const struct packet *packet,
				   const struct connection_key *key, struct connection *connection,
				   __u32 ifindex)
{
	struct next_hop *in, *out;
	__u32 id, now;
	int path;

	if (!packet || !key || !connection)
		return 0;
	in = &connection->next_hop[INWARDS];
	out = &connection->next_hop[OUTWARDS];
	id = connection->id;
	now = clock_second();
	if (ifindex && connection->in_ifindex && connection->in_ifindex != ifindex)
		return 0;
	/* An IPv6 extension header, as an atomic fragment has one, decides nothing: see
	 * connection_use_half_open(). */
	if (!offload_is_due(key, connection) || (!packet->ipv4 && packet_has_options(packet))) {
		/* not checked again in this second */
		(ifindex ? in : out)->asked = now;
		if (offload_mode(&connection->owner) == FAST_PATH_OFF)
			connection->stack_reason = REASON_OFF;
		return 0;
	}
	connection->stack_reason = REASON_NONE;
	path = packet_has_options(packet) ? offload_not(connection, REASON_OPTIONS)
					  : offload_find_both(skb, key, connection, ifindex);
	if (connection->id != id)
		return 0;
	if (!connection->in_ifindex)
		connection->in_ifindex = ifindex ?: out->ifindex;
	in->asked = now;
	out->asked = now;
	connection->path[INWARDS] = path < PATH_CONTAINER ? path : PATH_CONTAINER;
	connection->path[OUTWARDS] = path;
	if (path >= PATH_CONTAINER)
		count(flow_offloaded);
	return 0;
}

/* Returns whether it is time to decide about a path. */
INLINE bool offload_is_candidate(const struct packet *packet, const struct found *found)
{
	const struct connection *connection = found->connection;

	if (connection->path[found->way] != PATH_UNDECIDED ||
	    connection->next_hop[found->way].asked == (__u16)found->now || packet->error ||
	    (packet->tcp_flags & TCP_RST) || /* may end the connection */
	    !offload_concerns(found->key->protocol, connection))
		return false;
	if (connection->left_stack[found->way] && !(packet->tcp_flags & TCP_SYN) &&
	    (connection->state & (STATE_ASSURED | STATE_REPLIED)))
		return true;
	return connection->kind == FLOW_MAPPING &&
	       offload_mode(&connection->owner) == FAST_PATH_ALWAYS;
}

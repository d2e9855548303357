/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* offload_send.h - sends packets along the path of a connection that skips the IP stack. Those that
 * need an ICMP error, or have IP options, go through the stack. */
#pragma once

#include "masquerade.h"
#include "memo.h"
#include "renewal.h"
#include "rewrite.h"
#include "tc_index.h"

/* Returns the length to compare with the MTU: of a GSO packet, one segment's. */
INLINE __u32 offload_length(struct __sk_buff *skb, const struct packet *packet, __u32 mtu)
{
	__u32 length = packet->end - packet->l3_offset, payload = packet->tcp_sequence_length;

	if (length <= mtu || !skb->gso_size)
		return length;
	if (packet->tuple.protocol == PROTOCOL_TCP)
		payload -= !!(packet->tcp_flags & TCP_SYN) + !!(packet->tcp_flags & TCP_FIN);
	if (packet->tuple.protocol == PROTOCOL_TCP)
		return length - payload + skb->gso_size;
	return packet->l4_offset - packet->l3_offset + sizeof(struct udphdr) + skb->gso_size;
}

/* Returns whether the stack must see the packet: UDP at its turn, or any after drop-offload. */
INLINE bool offload_is_stacks_turn(const struct packet *packet, const struct connection *connection,
				   enum way way)
{
	if (offload_was_seen(connection, way) && !(packet->tcp_flags & TCP_SYN) &&
	    (packet->tuple.protocol == PROTOCOL_TCP ||
	     (__s32)(firewall_turn(connection, way, packet->of_many) - clock_second()) > 0))
		return false;
	return offload_mode(&connection->owner) != FAST_PATH_ALWAYS;
}

/* Returns whether the packet may take its connection's path. by_veth: it comes from a container. */
GLOBAL_FUNCTION bool offload_may_use_path(struct __sk_buff *skb, const struct packet *packet,
					  const struct connection *connection, enum way way,
					  bool by_veth)
{
	const struct next_hop *next_hop;
	bool enters;

	if (!packet || !connection)
		return false;
	way &= 1;
	next_hop = &connection->next_hop[way];
	enters = connection->path[way] == PATH_CONTAINER;
	return connection->path[way] >= PATH_CONTAINER && next_hop->ifindex &&
	       packet->hop_limit > 1 && !packet_has_options(packet) &&
	       offload_length(skb, packet, next_hop->mtu) <= next_hop->mtu &&
	       !offload_is_stacks_turn(packet, connection, way) &&
	       device_lets_skip(&connection->owner, by_veth ? packet_arrived_by(skb) : 0,
				enters ? next_hop->ifindex : 0);
}

/* Notes whether the answer of routing that is asked now holds for others, too. Inwards they ask the
 * same, in each second. */
INLINE void offload_note_routes(struct __sk_buff *skb, bool ipv4, enum way way)
{
	struct basis *basis = &scratch_get()->basis;

	__builtin_memset(basis, 0, sizeof(*basis));
	basis->routes = device_host_routes(skb, ipv4);
	basis->rules = firewall_look(skb);
	if (way == INWARDS && basis->routes)
		basis->routes = !device_host_routes_by_source(skb, ipv4);
}

/* Asks for a path again. If there is no route now, the packets go through the stack. */
GLOBAL_FUNCTION int offload_find_again(struct __sk_buff *skb, const struct connection_key *key,
				       struct connection *connection, enum way way, __u32 ifindex)
{
	struct scratch *scratch = scratch_get();
	__u32 id;
	int path;

	if (!key || !connection)
		return 0;
	way &= 1;
	id = connection->id;
	connection->next_hop[way].asked = clock_second();
	offload_note_routes(skb, address_is_ipv4(key->inside), way); /* before routing is asked */
	path = offload_find_one(skb, key, connection, way, ifindex);
	if (way == OUTWARDS)
		address_copy(scratch->basis.address, (__u8 *)scratch->query.ipv6_dst);
	if (connection->id != id)
		return 0;
	if (path < PATH_CONTAINER || !offload_may_pass(skb->ifindex))
		connection->next_hop[way].ifindex = 0;
	else
		connection->path[way] = path;
	renewal_share(skb, key, connection, way, ifindex);
	return 0;
}

/* Returns whether reverse path filter and firewall have not seen the connection arrive here. If
 * replies now leave through this interface, it is accepted. */
INLINE bool offload_enters_elsewhere(struct connection *connection, __u32 ifindex)
{
	if (connection->in_ifindex == ifindex)
		return false;
	if (connection->path[OUTWARDS] != PATH_OUT ||
	    connection->next_hop[OUTWARDS].ifindex != ifindex)
		return true;
	connection->in_ifindex = ifindex;
	return false;
}

/* Sets the translation to the connection's path, if the packet may use that. */
INLINE void offload_set_path(const struct flow_context *flow)
{
	const struct found *found = &flow->found;
	const struct connection *connection = found->connection;
	const struct next_hop *next_hop = &connection->next_hop[found->way];

	if (!offload_may_use_path(flow->skb, flow->packet, connection, found->way,
				  flow->arrival->sender_verified))
		return;
	flow->translation->path = connection->path[found->way];
	flow->translation->out_ifindex = next_hop->ifindex;
	__builtin_memcpy(flow->translation->frame_destination, next_hop->destination, ETH_ALEN);
	__builtin_memcpy(flow->translation->frame_source, next_hop->source, ETH_ALEN);
}

/* Renews the path once a second. False: the connection has ended, maybe because its address is not
 * the one to leave with any more. When routing was asked, the known MAC is not used, so that the
 * kernel checks whether the neighbour is still there. */
INLINE bool offload_renew(const struct flow_context *flow)
{
	const struct found *found = &flow->found;
	struct connection *connection = found->connection;

	flow->packet->renewed = true;
	if (!renewal_use(flow->skb, found->key, connection, found->way, flow->arrival->ifindex)) {
		offload_check_devices(flow->skb, found->key);
		if (!found_stands(found))
			return false;
		offload_find_again(flow->skb, found->key, connection, found->way,
				   flow->arrival->ifindex);
		flow->packet->asked = true;
	}
	if (!found_stands(found))
		return false;
	if (connection->path[OUTWARDS] != PATH_OUT || found->way != OUTWARDS ||
	    masquerade_stands(flow->skb, flow->packet, found->key, connection,
			      connection->next_hop[OUTWARDS].ifindex))
		return true;
	connection_end(found->key, found->id);
	return false;
}

/* Sets the translation to the connection's path, which is renewed where that is due. False: the
 * connection has ended. */
INLINE bool offload_use_path(const struct flow_context *flow)
{
	const struct found *found = &flow->found;
	struct connection *connection = found->connection;
	struct translation *translation = flow->translation;

	if (connection->path[found->way] < PATH_CONTAINER)
		return true;
	if (found->way == INWARDS && offload_enters_elsewhere(connection, flow->arrival->ifindex))
		return true;
	if (connection->next_hop[found->way].asked != (__u16)found->now && !offload_renew(flow))
		return false;
	offload_set_path(flow);
	if (flow->packet->asked && translation->path == PATH_OUT)
		__builtin_memset(translation->frame_destination, 0, ETH_ALEN);
	return true;
}

/* Returns whether the connection's next packets may do without its record, in this second: those of
 * an assured one are only counted, those of one that is too young to be assured, or that nobody has
 * answered, not even that. But after the first reply the hook behind the stack confirms a packet,
 * so in the second in which an unanswered one began none does without. */
INLINE bool offload_needs_no_record(const struct found *found)
{
	const struct connection *connection = found->connection;

	if (connection->last_seen != found->now)
		return false;
	if (found->key->protocol == PROTOCOL_TCP)
		return tcp_is_steady(connection->state);
	if (found->key->protocol != PROTOCOL_UDP)
		return false;
	if (connection->state & STATE_ASSURED)
		return true;
	return connection->state & STATE_REPLIED ? connection_is_young(connection)
						 : connection->begun != found->now;
}

/* Returns whether the connection gets no path in this second. */
INLINE bool offload_stays_in_stack(const struct found *found)
{
	const struct connection *connection = found->connection;

	return connection->path[found->way] == PATH_STACK ||
	       (connection->path[found->way] == PATH_UNDECIDED &&
		(!(connection->state & STATE_REPLIED) ||
		 offload_mode(&connection->owner) == FAST_PATH_OFF));
}

/* Makes a memo of what was decided about a packet that has been applied to its connection. TCP has
 * none in the stack. There, a masqueraded connection has one only if it is assured: another may
 * lose its external port before the second ends (snat_gives_up()). Behind the stack, only one has
 * it whose packets the owner may send: at the owner's veth a memo stands for the sender's check. */
INLINE void offload_remember(const struct flow_context *flow)
{
	const struct found *found = &flow->found;
	__u8 protocol = found->key->protocol;
	bool in_stack;

	if (!found_stands(found))
		return;
	in_stack = protocol != PROTOCOL_TCP &&
		   (flow->packet->leaving ? connection_is_of_owner(found->connection)
					  : flow->translation->done);
	if (flow->packet->leaving || found->connection->kind == FLOW_MASQUERADE)
		in_stack = in_stack && (found->connection->state & STATE_ASSURED);
	if (offload_needs_no_record(found) && offload_concerns(protocol, found->connection) &&
	    (flow->translation->path || (in_stack && offload_stays_in_stack(found))))
		memo_make(flow->skb, flow->packet, found->connection, found->way,
			  flow->translation);
}

INLINE void offload_decide_and_use(const struct flow_context *flow)
{
	const struct found *found = &flow->found;

	offload_check_devices(flow->skb, found->key);
	if (!found_stands(found))
		return;
	offload_decide(flow->skb, flow->packet, found->key, found->connection,
		       found->way == INWARDS ? flow->arrival->ifindex : 0);
	if (found_stands(found))
		offload_set_path(flow);
}

/* Lets the kernel resolve the neighbour. The next hop is passed on, because the kernel would choose
 * it by the packet's new source, whereas routing chose it by the container's. */
GLOBAL_FUNCTION int offload_to_next_hop(struct __sk_buff *skb, const struct packet *packet,
					const struct translation *translation)
{
	struct bpf_fib_lookup *query = &scratch_get()->query;
	struct connection *connection;

	if (!packet || !translation)
		return TC_ACT_SHOT;
	if (packet->asked)
		return route_redirect(query, true, translation->out_ifindex);
	connection = connection_of(&packet->tuple, OUTWARDS);
	route_query(query, packet, offload_gateway(skb->ifindex));
	if (connection && connection->kind == FLOW_MAPPING)
		route_query_addresses(query, translation->address, packet->tuple.destination);
	return route_ask_and_redirect(skb, query, translation->out_ifindex);
}

/* Checks the IP header's checksum (RFC 1071), which only the stack does. */
INLINE bool offload_header_is_right(struct __sk_buff *skb, const struct packet *packet)
{
	__u32 words[sizeof(struct iphdr) / sizeof(__u32)];
	__u64 sum;

	if (!packet->ipv4)
		return true;
	if (!packet_load_header(skb, packet->l3_offset, words, sizeof(words)))
		return false;
	sum = (__u64)words[0] + words[1] + words[2] + words[3] + words[4];
	sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32);
	return (sum & 0xffff) + (sum >> 16) == 0xffff;
}

INLINE int offload_send(struct __sk_buff *skb, const struct packet *packet,
			const struct translation *translation)
{
	if (packet->hop_limit <= 1)
		return TC_ACT_SHOT; /* a later fragment: no ICMP error (RFC 1122 3.2.2) */
	/* The stack takes off a priority tag (VID 0); a container must not choose one outside. */
	if (skb->vlan_present && bpf_skb_vlan_pop(skb))
		return shot(rewrite_failed);
	if (rewrite_hop_limit(skb, packet) || rewrite_macs(skb, translation->frame_destination))
		return shot(rewrite_failed);
	if (translation->path == PATH_CONTAINER) {
		count_here(fast_into_container);
		rewrite_for_container(skb);
		return bpf_redirect_peer(translation->out_ifindex, 0);
	}
	count_here(fast_out);
	tc_index_set(skb, TC_INDEX_SENT);
	if (packet->ipv4) /* ip_tos2prio, which uses two bits of RFC 1349 */
		skb->priority = 0x4620 >> (packet->type_of_service >> 3 & 3) * 4 & 0xf;
	return translation_has_frame(translation) ? bpf_redirect(translation->out_ifindex, 0)
						  : offload_to_next_hop(skb, packet, translation);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - the host's own connections. Those whose replies could be taken for a container's are
 * remembered, and forgotten again.
 *
 * A mapping would take the replies to a socket whose source port is published. A masqueraded
 * connection would take those to a later socket with the same source port and server: the host gets
 * the port. But if that connection is assured, or has a path, it keeps the port and the host's gets
 * another one outside, as netfilter does it: any user of the host could end a container's
 * connections otherwise. Nothing else of the host's is ever changed. Of a protocol without ports
 * the host gets the packets as soon as it sends one, since only root of the host can send such a
 * packet.
 */
#pragma once

#include "direct.h"
#include "flow_context.h"

/* Returns whether the socket of a host connection has gone: then its port means the mapping.
 * Connections of another NAT have no socket: there a SYN is enough. */
GLOBAL_FUNCTION bool host_has_finished(struct __sk_buff *skb, const struct packet *packet,
				       const struct connection_key *key, enum flow_kind kind)
{
	struct tuple *reply = &scratch_get()->reply;

	if (!packet || !key)
		return false;
	tuple_inwards(key, reply);
	if (key->protocol == PROTOCOL_TCP)
		return packet_begins_tcp(packet) &&
		       (kind == FLOW_FOREIGN || socket_find(skb, reply) != SOCKET_CONNECTED);
	return key->protocol == PROTOCOL_UDP && kind != FLOW_FOREIGN &&
	       socket_find(skb, reply) == SOCKET_NONE;
}

INLINE bool host_replies_are_mapped(struct scratch *scratch)
{
	const struct connection_key *key = &scratch->draft.key;
	const struct connection *connection;

	tuple_inwards(key, &scratch->reply);
	if (!portmap_is_published(key->inside_port) || !inwards_find_key(&scratch->reply))
		return false;
	connection = connection_find(&scratch->found);
	return connection && connection->kind == FLOW_MAPPING;
}

/* Takes another port for the draft, if a masqueraded connection has its external tuple. */
INLINE bool host_move_port(struct __sk_buff *skb, const struct packet *packet,
			   struct scratch *scratch)
{
	const struct alias *alias = bpf_map_lookup_elem(&aliases, &scratch->draft.external);

	scratch->order.own_published = false;
	if (!alias || !alias->owner.slot || !draft_choose_port(skb, packet))
		return false;
	scratch->draft.connection.external_port = scratch->draft.external.inside_port;
	noticed_mark(moved_host, 0);
	return true;
}

/* A forwarded packet may have forged the host's address (IPv6 does not check it), so only the
 * host's own packets may take a tuple from a live connection that is not idle for hours. */
GLOBAL_FUNCTION int host_begin(struct __sk_buff *skb, const struct packet *packet,
			       enum flow_kind kind)
{
	struct scratch *scratch = scratch_get();
	const struct owner nobody = {};
	struct draft *draft;

	if (!packet)
		return 0;
	draft = draft_begin(packet, OUTWARDS, &nobody, kind, STATE_CHARGED_OUT);
	if (host_replies_are_mapped(scratch))
		return 0;
	draft_fill_alias(draft);
	if (!draft_take_tuple(kind == FLOW_HOST ? TAKE_FOR_HOST : TAKE_IDLE) &&
	    (kind != FLOW_HOST || !host_move_port(skb, packet, scratch)))
		return 0;
	if (draft_admit() == ADMISSION_OK)
		count(flow_host);
	else
		alias_delete(&draft->external, draft->alias.id);
	return 0;
}

/* Returns whether another connection has an alias with the tuple of a packet of the host. */
GLOBAL_FUNCTION bool host_meets_alias(const struct tuple *tuple)
{
	struct connection_key *key = &scratch_get()->other;

	if (!tuple)
		return false;
	connection_key_of(tuple, OUTWARDS, key);
	return bpf_map_lookup_elem(&aliases, key);
}

/* No lookup finds the socket of an ICMP identifier, an SCTP or a UDP-Lite port, so all are
 * remembered. A TCP or UDP socket that already exists is found when a masqueraded connection
 * chooses a port, and who sends later finds that connection's alias. */
INLINE bool host_must_be_remembered(const struct packet *packet)
{
	const struct tuple *tuple = &packet->tuple;

	if (!packet_protocol_has_ports(tuple->protocol))
		return !packet->echo_reply;
	if (tuple->protocol == PROTOCOL_SCTP || tuple->protocol == PROTOCOL_UDPLITE)
		return true;
	if ((tuple->protocol == PROTOCOL_UDP || packet_begins_tcp(packet)) &&
	    external_port_is_used(tuple->source_port, tuple->protocol) && host_meets_alias(tuple))
		return true;
	if (packet->tcp_flags & TCP_RST)
		return false;
	return portmap_find(tuple->source, tuple->source_port, tuple->protocol);
}

/* Of a connection that got another port every packet must be translated. */
INLINE bool host_may_be_moved(const struct tuple *tuple)
{
	return noticed_has(moved_host, 0) && packet_protocol_has_ports(tuple->protocol) &&
	       external_port_is_used(tuple->source_port, tuple->protocol);
}

/* Returns VERDICT_TRANSLATE for a connection of the host: it may have got another port. */
INLINE enum verdict host_remember(struct flow_context *flow)
{
	const struct packet *packet = flow->packet;
	struct found *found = &flow->found;
	bool must = host_must_be_remembered(packet);

	if (!must && !host_may_be_moved(&packet->tuple))
		return VERDICT_PASS;
	if (!found_outwards(found, &packet->tuple) ||
	    connection_use(found, packet, 0) == VERDICT_PASS) {
		if (!must)
			return VERDICT_PASS;
		host_begin(flow->skb, packet, FLOW_HOST);
		if (!noticed_has(moved_host, 0) || !found_outwards(found, &packet->tuple))
			return VERDICT_PASS;
	}
	translation_outwards(found->connection, flow->translation);
	return found->connection->kind == FLOW_HOST ? VERDICT_TRANSLATE : VERDICT_PASS;
}

/* Does this forwarded packet begin a connection with the interface's own address, given by another
 * NAT (iptables' MASQUERADE)? No socket shows that its port is in use. */
INLINE bool host_is_foreign_nat(struct __sk_buff *skb, const struct packet *packet)
{
	const struct interface *interface;
	__u32 ifindex = skb->ifindex;

	if (packet->tuple.protocol == PROTOCOL_TCP ? !packet_begins_tcp(packet)
						   : packet->echo_reply)
		return false;
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	return interface && address_equal(packet->sender,
					  packet->ipv4 ? interface->address4 : interface->address6);
}

/* Returns whether another NAT has given the packet its source, and conntrack would not tell so of
 * its answer. */
INLINE bool host_must_remember_foreign(struct __sk_buff *skb, const struct packet *packet)
{
	bool is_told = conntrack_tells_of(packet->tuple.protocol);
	__u64 seen = conntrack_seen(skb);

	if (conntrack_gave_source(seen))
		return !is_told || conntrack_zone(seen & ~CONNTRACK_INFO);
	return !is_told && host_is_foreign_nat(skb, packet);
}

/* A half-open record keeps the port. Connections of another NAT never become assured. */
INLINE void host_remember_foreign(struct __sk_buff *skb, const struct packet *packet)
{
	struct found found = {};

	if (packet_protocol_is_portless(packet->tuple.protocol))
		tunnel_send(packet);
	else if (!found_outwards(&found, &packet->tuple))
		host_begin(skb, packet, FLOW_FOREIGN);
	else if (found.connection->kind == FLOW_FOREIGN && found.connection->last_seen != found.now)
		connection_refresh(found.key, found.connection, found.now);
}

/* Remembers a packet without ports that the host sends. A container that had the external tuple
 * loses it. */
GLOBAL_FUNCTION int host_send_portless(const struct packet *packet)
{
	if (!packet)
		return 0;
	tunnel_send(packet);
	if (external_port_is_used(0, packet->tuple.protocol)) {
		connection_key_of(&packet->tuple, OUTWARDS, &draft_get()->external);
		draft_free_tuple(TAKE_FOR_HOST);
	}
	return 0;
}

/* A process asks a container itself, with the tuple of a connection that goes through a mapping by
 * lo (loopback.h), whose record would take the answers. That connection has ended: the kernel gives
 * a tuple to one socket at a time, and this one has it now. */
GLOBAL_FUNCTION int host_ends_loopback(const struct packet *packet)
{
	struct connection_key *key = &scratch_get()->other;
	const struct connection *connection;

	if (!packet || (packet->tuple.protocol == PROTOCOL_TCP && !packet_begins_tcp(packet)))
		return 0;
	connection_key_of(&packet->tuple, INWARDS, key);
	connection = connection_find(key);
	if (connection && connection->kind == FLOW_MAPPING &&
	    connection->in_ifindex == LOOPBACK_IFINDEX)
		connection_end(key, connection->id);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.h - the host's own packets, which are never changed: remembers those whose
 * replies something here would take for somebody else's, and forgets them again.
 *
 * A mapping would take the replies to a socket whose source port is published. A
 * container's masqueraded flow would take those to a socket that came later and
 * chose the same source port for the same server: the host wins, and the container's
 * flow goes on with another port.
 */
#ifndef BPF_PORTMAP_HOST_H
#define BPF_PORTMAP_HOST_H

#include "flow_use.h"
#include "mapping.h"
#include "noticed.h"

/* Takes the tuple of the replies away from a masqueraded flow, whose other half finds
 * itself lost with that. */
VERIFIED_ONCE bool host_displace(const struct flow_key *key, const struct flow *flow)
{
	struct flow_key reply;
	struct flow *other;

	if (!key || !flow)
		return false;
	flow_other_key(key, flow, &reply);
	other = flow_find(&reply);
	if (!other || other->kind != FLOW_MASQUERADE)
		return false;
	bpf_map_delete_elem(&flows, &reply);
	bpf_map_delete_elem(&flows_new, &reply);
	__sync_fetch_and_add(&shortcuts_era, 1); /* its next packets are the host's at once */
	count(flow_displaced);
	return true;
}

VERIFIED_ONCE int host_create_flow(const struct packet *packet, enum flow_kind kind)
{
	struct flow flow = {};
	enum claim claim;

	if (!packet)
		return 0;
	flow.kind = kind;
	address_copy(flow.address, packet->tuple.source);
	flow.port = packet->tuple.source_port;
	flow.peer_port = packet->tuple.destination_port;
	claim = flow_create(&packet->tuple, &flow);
	/* A forwarded packet may bear the host's address without right: over IPv6 nobody asks. */
	if (claim == CLAIM_TAKEN && kind == FLOW_HOST && host_displace(&packet->tuple, &flow))
		claim = flow_create(&packet->tuple, &flow);
	if (claim == CLAIM_OK)
		count(flow_host);
	return 0;
}

static __always_inline void host_remember(const struct packet *packet)
{
	struct flow *flow = flow_find(&packet->tuple);

	if (!flow || flow_use(&packet->tuple, flow, packet, 0, flow_now()) == VERDICT_PASS)
		host_create_flow(packet, FLOW_HOST);
}

/* Does this forwarded packet begin a flow with the interface's own address, given by
 * somebody else's NAT (iptables' MASQUERADE)? No socket will be found for what that chose. */
static __always_inline bool host_translated(struct __sk_buff *skb, const struct packet *packet)
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

/* A half-open entry is enough to keep the port, and all that others' flows may have: none of
 * them takes a place in the table of answered ones. */
static __always_inline void host_note_translated(const struct packet *packet)
{
	struct flow *flow = flow_find(&packet->tuple);
	__u32 now = flow_now();

	if (!flow)
		host_create_flow(packet, FLOW_FOREIGN);
	else if (flow->kind == FLOW_FOREIGN && flow->last_seen != now)
		flow_refresh(&packet->tuple, flow, now);
}

/* Nothing tells whose an echo identifier or an SCTP port is. A socket of TCP or UDP that
 * was there first is found when a container's flow wants its port. */
static __always_inline bool host_must_be_remembered(const struct packet *packet)
{
	const struct flow_key *tuple = &packet->tuple;

	if (!packet_protocol_has_ports(tuple->protocol))
		return !packet->echo_reply;
	if (tuple->protocol == PROTOCOL_SCTP)
		return true;
	if (packet->tcp_flags & TCP_RST)
		return false;
	if ((tuple->protocol == PROTOCOL_UDP || packet_begins_tcp(packet)) &&
	    noticed_port(tuple->source_port))
		return true;
	return mapping_find(tuple->source, tuple->source_port, tuple->protocol);
}

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * mapping.h - decides about a packet on its way into the IP stack: whose flow
 * it is, and whether it begins one through a mapped port.
 */
#ifndef BPF_PORTMAP_MAPPING_H
#define BPF_PORTMAP_MAPPING_H

#include "flow_use.h"
#include "noticed.h"
#include "offload.h"
#include "policy.h"
#include "portmap.h"
#include "route.h"
#include "strict.h"

#define MOVED_PORT_TRIES 32
#define MOVED_PORT_FIRST 1024

static __always_inline struct portmap *mapping_find(const __u8 *address, __u16 port,
						    enum protocol protocol)
{
	return packet_protocol_has_ports(protocol) ? portmap_find(address, port, protocol) : NULL;
}

/* Of the destination. */
VERIFIED_ONCE bool mapping_exists(const struct flow_key *tuple)
{
	return tuple && mapping_find(tuple->destination, tuple->destination_port, tuple->protocol);
}

/* Writes a destination flow. Where the tuple behind the rewrite is another
 * flow's (the client reached the container another way with the same source
 * port), the source port moves, as netfilter's does. */
static __always_inline enum claim mapping_create_flow(const struct flow_key *key, struct flow *flow)
{
	enum claim claim = CLAIM_TAKEN;

	/* A container that reaches its own port from that very port: the tuple
	 * would be its own reply. */
	if (!address_equal(flow->address, key->source) || flow->port != key->source_port)
		claim = flow_create(key, flow);
	if (claim != CLAIM_TAKEN)
		return claim;
	for (int i = 0; i < MOVED_PORT_TRIES; i++) {
		flow->peer_port =
			MOVED_PORT_FIRST + bpf_get_prandom_u32() % (65536 - MOVED_PORT_FIRST);
		claim = flow_create(key, flow);
		if (claim == CLAIM_TAKEN)
			continue;
		if (claim == CLAIM_OK)
			count(flow_moved_port);
		break;
	}
	return claim;
}

/* No flow, but for a socket of the host's own that is connected to the sender; else
 * TCP in mid-connection is a mapped one that lost its flow. */
static __always_inline bool mapping_belongs_to_host(struct __sk_buff *skb,
						    const struct packet *packet)
{
	return !packet_begins_tcp(packet) && socket_find(skb, &packet->tuple) >= SOCKET_LINGERING;
}

/* A flow of the host's own whose socket has gone: its peer, that uses its port again,
 * means the mapping. What another NAT translates has no socket: a SYN is enough. */
VERIFIED_ONCE bool mapping_follows_host(struct __sk_buff *skb, const struct packet *packet,
					enum flow_kind kind)
{
	if (!packet)
		return false;
	if (packet->tuple.protocol == PROTOCOL_TCP)
		return packet_begins_tcp(packet) &&
		       (kind == FLOW_FOREIGN ||
			socket_find(skb, &packet->tuple) != SOCKET_CONNECTED);
	if (kind == FLOW_FOREIGN)
		return false;
	return packet->tuple.protocol == PROTOCOL_UDP &&
	       socket_find(skb, &packet->tuple) == SOCKET_NONE;
}

/* Whether a packet seems to answer what another NAT translates, though with its port mapped it may
 * be a request to the mapping. It does not keep the entry alive: only what leaves does. */
static __always_inline bool mapping_waits_for(const struct packet *packet, const struct flow *flow)
{
	return flow->kind == FLOW_FOREIGN && packet->tuple.protocol != PROTOCOL_TCP &&
	       portmap_is_published(packet->tuple.destination_port);
}

VERIFIED_ONCE enum verdict mapping_decide(struct __sk_buff *skb, const struct packet *packet,
					  const struct portmap *mapping,
					  struct translation *translation)
{
	struct flow *flow = flow_scratch(SCRATCH_BEGUN);
	enum verdict verdict;

	if (!packet || !mapping || !translation || !flow)
		return VERDICT_PASS;
	if (mapping_belongs_to_host(skb, packet))
		return VERDICT_PASS;
	if (!policy_admits(&mapping->owner, packet->sender))
		return drop(source_range);
	if (policy_masquerades_all(&mapping->owner))
		noticed_mark_masquerade_all();
	flow->owner = mapping->owner;
	flow->kind = FLOW_MAPPING;
	address_copy(flow->address, mapping->container_address);
	flow->port = mapping->container_port;
	flow->peer_port = packet->tuple.source_port;
	verdict = flow_begun(mapping_create_flow(&packet->tuple, flow), flow, translation);
	if (verdict == VERDICT_TRANSLATE) {
		__sync_fetch_and_add(&((struct portmap *)mapping)->flows, 1);
		count(flow_mapping);
	}
	return verdict;
}

/* Only its first packet begins a direct flow: a late one must not leave an entry that
 * suppresses masquerade. */
static __always_inline bool direct_begins(const struct packet *packet)
{
	if (packet->tuple.protocol == PROTOCOL_TCP)
		return packet_begins_tcp(packet);
	return !packet->echo_reply;
}

static __always_inline void direct_flow(const struct flow_key *tuple, struct owner owner,
					struct flow *flow)
{
	__builtin_memset(flow, 0, sizeof(*flow));
	flow->owner = owner;
	flow->kind = FLOW_DIRECT;
	address_copy(flow->address, tuple->destination);
	flow->port = tuple->destination_port;
	flow->peer_port = tuple->source_port;
}

/* Is what the container would answer with part of a flow already? */
VERIFIED_ONCE bool direct_is_known(const struct flow_key *tuple)
{
	return tuple && flow_find_back(tuple);
}

/* Whoever sent this may not be who it says: noted only, until the stack lets it through. */
VERIFIED_ONCE int direct_note(const struct flow_key *tuple, const struct endpoint *endpoint)
{
	struct flow_key key;
	struct flow flow;

	if (!tuple || !endpoint)
		return 0;
	__builtin_memcpy(&key, tuple, sizeof(key));
	direct_flow(&key, endpoint->owner, &flow);
	flow.unconfirmed = 1;
	flow.last_seen = flow_now();
	return bpf_map_update_elem(&flows_new, &key, &flow, BPF_ANY);
}

VERIFIED_ONCE int direct_forget_note(const struct flow_key *tuple)
{
	struct flow_key key;

	if (!tuple)
		return 0;
	__builtin_memcpy(&key, tuple, sizeof(key));
	return bpf_map_delete_elem(&flows_new, &key);
}

/*
 * Somebody reaches the container by its own address: remembered, so that the replies
 * are not masqueraded. Only a container's own veth vouches for the sender. Anywhere else
 * a forged packet would choose which of the container's flows is not masqueraded: there
 * it is noted, and direct_confirm() remembers what reverse path filter and firewall have
 * passed. But where another flow has the replies' tuple the source port must move now.
 * A container that begins such flows is charged with them, not the one that it reaches.
 */
VERIFIED_ONCE enum verdict direct_decide(const struct packet *packet,
					 const struct endpoint *endpoint, bool vouched,
					 struct translation *translation)
{
	struct flow *flow = flow_scratch(SCRATCH_BEGUN);
	const struct endpoint *charged = endpoint;
	struct endpoint_key key;
	enum claim claim;

	if (!packet || !endpoint || !translation || !flow)
		return VERDICT_PASS;
	if (!owner_live(&endpoint->owner) || !direct_begins(packet))
		return VERDICT_PASS;
	if (vouched) {
		address_copy(key.address, packet->sender);
		charged = bpf_map_lookup_elem(&endpoints, &key);
	}
	if (!charged)
		return VERDICT_PASS;
	if (!vouched && !direct_is_known(&packet->tuple)) {
		direct_note(&packet->tuple, endpoint);
		return VERDICT_PASS;
	}
	direct_forget_note(&packet->tuple);
	direct_flow(&packet->tuple, charged->owner, flow);
	claim = mapping_create_flow(&packet->tuple, flow);
	if (claim == CLAIM_FULL)
		return VERDICT_PASS;
	if (claim == CLAIM_OK)
		count(flow_direct);
	return flow_begun(claim, flow, translation);
}

/* A packet leaves the stack towards a container: what was noted on its way in is true.
 * False: nothing was. */
VERIFIED_ONCE bool direct_confirm(const struct packet *packet)
{
	struct flow_key key, other_key = {};
	struct flow *noted, other = {};

	if (!packet || !direct_begins(packet))
		return false;
	__builtin_memcpy(&key, &packet->tuple, sizeof(key));
	key.direction = DIRECTION_IN;
	noted = flow_find_in(&flows_new, &key);
	if (!noted || !noted->unconfirmed)
		return false;
	flow_other_half(&key, noted, &other_key, &other);
	if (flow_claim(&other_key, &other) > CLAIM_ANSWERED)
		return false;
	noted->unconfirmed = 0;
	count(flow_direct);
	return true;
}

/* The host's own RST in the container's name: the firewall does not let the client, who
 * was noted on the way in, through to it. */
VERIFIED_ONCE bool direct_is_refused(const struct packet *packet)
{
	struct flow *noted;
	struct flow_key key;

	if (!packet || !(packet->tcp_flags & TCP_RST))
		return false;
	flow_way_back(&packet->tuple, &key);
	key.direction = DIRECTION_IN;
	noted = flow_find_in(&flows_new, &key);
	return noted && noted->unconfirmed;
}

/* A packet of a live flow. VERDICT_PASS: the flow has lost its tuple and is no more. */
static __always_inline enum verdict enter_by_flow(struct __sk_buff *skb, struct packet *packet,
						  struct flow *flow, __u32 ifindex, bool may_skip,
						  __u32 now, struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	enum verdict verdict;
	bool open = false;

	translation_of(flow, translation);
	if (may_skip) {
		offload_choose(skb, packet, flow, ifindex, now, translation);
		open = offload_is_open(packet, flow, now);
		translation->report = !translation->path && offload_wants_report(tuple, flow, now);
	}
	verdict = flow_use(tuple, flow, packet, skb->len, now);
	if (open && verdict == VERDICT_TRANSLATE)
		offload_open(skb, packet, ifindex, translation);
	return verdict;
}

/* A packet to a mapped port that no flow has. */
static __always_inline enum verdict enter_by_mapping(struct __sk_buff *skb, struct packet *packet,
						     const struct portmap *mapping, __u32 ifindex,
						     bool may_skip, struct translation *translation)
{
	enum verdict verdict = mapping_decide(skb, packet, mapping, translation);
	enum fast_path mode;

	if (!may_skip || verdict != VERDICT_TRANSLATE)
		return verdict;
	mode = offload_mode(&mapping->owner);
	translation->report = mode == FAST_PATH_ESTABLISHED;
	if (mode == FAST_PATH_ALWAYS)
		offload_open(skb, packet, ifindex, translation);
	return verdict;
}

/* A packet that arrives at the interface ifindex (the one routing sees: a bridge
 * rather than its port). routed: on its way into the IP stack, not switched. vouched:
 * the sender has the address that it claims. may_skip: the packet may skip the stack. */
static __always_inline enum verdict decide_in(struct __sk_buff *skb, struct packet *packet,
					      __u32 ifindex, bool routed, bool vouched,
					      bool may_skip, struct translation *translation)
{
	struct flow_key *tuple = &packet->tuple;
	struct endpoint *endpoint;
	struct portmap *mapping = NULL;
	enum verdict verdict;
	struct flow *flow;
	enum route route;
	__u32 out = 0, now;

	tuple->direction = DIRECTION_IN;
	flow = flow_of(tuple, &now);
	if (flow && !flow_has_owner(flow)) {
		if (mapping_follows_host(skb, packet, flow->kind)) {
			flow_forget(tuple, flow);
			flow = NULL;
		} else if (mapping_waits_for(packet, flow)) {
			return VERDICT_PASS;
		}
	}
	if (flow && !flow->unconfirmed) {
		verdict = enter_by_flow(skb, packet, flow, ifindex, may_skip, now, translation);
		if (verdict != VERDICT_PASS)
			return verdict;
	}
	if (routed)
		mapping =
			mapping_find(tuple->destination, tuple->destination_port, tuple->protocol);
	if (mapping && portmap_is_excluded(&mapping->owner, tuple->destination))
		mapping = NULL;
	if (mapping) {
		route = route_of(skb, packet, ifindex, &out);
		if (route == ROUTE_LOCAL)
			return enter_by_mapping(skb, packet, mapping, ifindex, may_skip,
						translation);
		if (route == ROUTE_DISABLED)
			count(forwarding_disabled);
	}
	endpoint = bpf_map_lookup_elem(&endpoints, tuple->destination);
	if (!endpoint)
		return VERDICT_PASS;
	if (strict_refuses(endpoint, skb->ifindex))
		return drop(strict);
	return direct_decide(packet, endpoint, vouched, translation);
}

#endif

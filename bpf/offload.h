/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * offload.h - which packets skip the IP stack, and where they go instead.
 *
 * The firewall decides about connections, so a flow goes through the stack until both its
 * directions have left it again, with the very tuples that the flow expects there: what a rule
 * drops, or what somebody else's NAT changes on the way, never skips anything. Each half notes
 * the second in which that was seen last (left_stack). OUT halves are seen where they are
 * translated; a packet of an IN half bears a number through the stack, for the hook at its
 * far end to tell (offload_saw_leaving).
 *
 * Then both halves get a path or neither does. TCP never comes back after that: conntrack has
 * missed numbers and windows, and would call it invalid. UDP comes back every five seconds,
 * which keeps conntrack's entry alive and lets a new rule bite.
 *
 * Packets must not skip a qdisc or filter at a container's veth or bridge: the programs look once a
 * second (device.h), and its flows go through the stack as long as one is there.
 *
 * Where routing leads is looked up again once a second for each half. What the fast path cannot
 * do (answer with an ICMP error, IP options) is the stack's, packet by packet.
 */
#ifndef BPF_PORTMAP_OFFLOAD_H
#define BPF_PORTMAP_OFFLOAD_H

#include "device.h"
#include "flow_use.h"
#include "policy.h"
#include "route.h"
#include "shortcut.h"

#define STACK_SECONDS 5 /* UDP: after so many one packet goes through the stack again */

/* skb->tc_index stays with a packet from hook to hook; a container's is zeroed where it enters. */
#define TC_INDEX_REPORT 0x6250 /* to be told of where it leaves the stack */
#define TC_INDEX_SENT 0x6251   /* sent out by the fast path: nothing is left to do */

static __always_inline bool offload_concerns(const struct flow_key *tuple, const struct flow *flow)
{
	return (tuple->protocol == PROTOCOL_TCP || tuple->protocol == PROTOCOL_UDP) &&
	       (flow->kind == FLOW_MAPPING || flow->kind == FLOW_MASQUERADE);
}

static __always_inline enum fast_path offload_mode(const struct owner *owner)
{
	const struct slot *slot = owner_slot(owner);

	return slot ? slot->fast_path : FAST_PATH_OFF;
}

static __always_inline bool offload_was_seen(const struct flow *flow)
{
	const struct meta *settings;
	__u32 only = 0;

	settings = bpf_map_lookup_elem(&meta, &only);
	return settings && flow->left_stack > settings->offload_dropped;
}

/* One of its packets has left the stack. Where offload was dropped since the one before, the
 * other direction must be seen again, too. */
static __always_inline void offload_note(struct flow *flow, __u32 now)
{
	if (flow->left_stack == now)
		return;
	if (flow->path >= PATH_CONTAINER && !offload_was_seen(flow))
		flow->path = PATH_UNDECIDED;
	flow->left_stack = now;
}

/* A masqueraded packet leaves the stack by ifindex. Where that is another way than the flow's path,
 * it is decided about anew: the stack may know more by now than can be asked. */
static __always_inline void offload_note_way(struct flow *flow, __u32 ifindex, __u32 now)
{
	if (flow->path == PATH_OUT && flow->out_ifindex && flow->out_ifindex != ifindex)
		flow->path = PATH_UNDECIDED;
	if (flow->path < PATH_CONTAINER && flow->left_stack != now)
		flow->out_ifindex = ifindex;
}

/* Shall the hook at the far end of the stack tell? Once a second. */
static __always_inline bool offload_wants_report(const struct flow_key *tuple,
						 const struct flow *flow, __u32 now)
{
	return flow->left_stack != now && flow->path != PATH_STACK &&
	       offload_concerns(tuple, flow) && offload_mode(&flow->owner) != FAST_PATH_OFF;
}

/* A packet leaves the stack for a container as it went in: with the tuple that its IN half
 * gives it. That one is found by way of the reply. */
VERIFIED_ONCE int offload_saw_leaving(const struct packet *packet, __u32 ifindex)
{
	struct flow_key key, back;
	struct flow *flow;

	if (!packet)
		return 0;
	flow_way_back(&packet->tuple, &back);
	flow = flow_find(&back);
	if (!flow || !offload_concerns(&back, flow))
		return 0;
	flow_other_key(&back, flow, &key);
	flow = flow_find(&key);
	if (!flow)
		return 0;
	flow->in_ifindex = ifindex;
	offload_note(flow, flow_now());
	return 0;
}

/* What the flow makes of the tuple, as routing is to be asked about it. */
static __always_inline void offload_query(const struct flow_key *key, const struct flow *flow,
					  __u32 ifindex, struct bpf_fib_lookup *query)
{
	bool in = key->direction == DIRECTION_IN;
	const __u8 *source = key->source, *destination = in ? flow->address : key->destination;

	if (!in && flow->kind == FLOW_MAPPING)
		source = flow->address; /* as `ip rule from` is to see it */
	__builtin_memset(query, 0, sizeof(*query));
	query->ifindex = ifindex;
	query->l4_protocol = key->protocol;
	query->sport = bpf_htons(in ? flow->peer_port : key->source_port);
	query->dport = bpf_htons(in ? flow->port : flow->peer_port);
	query->tot_len = 1; /* or the MTU is not told */
	if (address_is_ipv4(source)) {
		query->family = AF_INET;
		query->ipv4_src = address_to_ipv4(source);
		query->ipv4_dst = address_to_ipv4(destination);
	} else {
		query->family = AF_INET6;
		__builtin_memcpy(query->ipv6_src, source, 16);
		__builtin_memcpy(query->ipv6_dst, destination, 16);
	}
}

/* Asks routing about packets of this half that come in at ifindex. A neighbour that is not
 * known has no MAC; the MTU is the last one known then. False: there is no way now. */
VERIFIED_ONCE bool offload_look_up(struct __sk_buff *skb, const struct flow_key *key,
				   struct flow *flow, __u32 ifindex)
{
	struct bpf_fib_lookup query;
	long result;

	if (!key || !flow)
		return false;
	offload_query(key, flow, ifindex, &query);
	result = bpf_fib_lookup(skb, &query, sizeof(query), 0);
	if (result != BPF_FIB_LKUP_RET_SUCCESS && result != BPF_FIB_LKUP_RET_NO_NEIGH)
		return false;
	flow->out_ifindex = query.ifindex;
	if (result == BPF_FIB_LKUP_RET_NO_NEIGH) {
		if (flow->path != PATH_CONTAINER)
			__builtin_memset(flow->path_destination, 0, ETH_ALEN);
		return flow->path_mtu != 0;
	}
	flow->path_mtu = query.mtu_result;
	__builtin_memcpy(flow->path_destination, query.dmac, ETH_ALEN);
	__builtin_memcpy(flow->path_source, query.smac, ETH_ALEN);
	return true;
}

/* The interface at which routing sees a container: its bridge, or its veth. 0: none, or
 * somebody has something there that packets must not skip. */
static __always_inline __u32 offload_gateway(__u32 veth)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &veth);

	if (!interface || interface->without_fast_path || interface->watched)
		return 0;
	return interface->role == ROLE_PORT ? interface->bridge_ifindex : veth;
}

/* Routing leads to out_ifindex. Is that this container's gateway, and another one than where the
 * packet comes from? Neighbours on one bridge are left to it. */
static __always_inline enum flow_path offload_into(struct flow *flow, const struct slot *container,
						   __u32 ifindex)
{
	__u32 gateway;

	if (!container || container->fast_path == FAST_PATH_OFF)
		return PATH_STACK;
	gateway = offload_gateway(container->ifindex);
	if (!gateway)
		return PATH_UNDECIDED;
	if (flow->out_ifindex != gateway || gateway == ifindex)
		return PATH_STACK;
	flow->out_ifindex = container->ifindex;
	return PATH_CONTAINER;
}

static __always_inline bool offload_may_pass(__u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && !interface->without_link_header && !interface->without_fast_path;
}

static __always_inline enum flow_path offload_out(__u32 ifindex)
{
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && interface->role == ROLE_UPLINK && offload_may_pass(ifindex)
		       ? PATH_OUT
		       : PATH_STACK;
}

/* The container that has this address, or NULL. */
static __always_inline const struct slot *offload_container(const __u8 *address)
{
	const struct endpoint *endpoint;
	struct endpoint_key key;

	address_copy(key.address, address);
	endpoint = bpf_map_lookup_elem(&endpoints, &key);
	return endpoint ? owner_slot(&endpoint->owner) : NULL;
}

/* How packets of this half, which come in at ifindex, go on. left: where the stack has sent them;
 * another interface now means that it knows more than can be asked here (a packet's mark, say).
 * 0: that is no matter. PATH_UNDECIDED: not now. */
VERIFIED_ONCE int offload_find_path(struct __sk_buff *skb, const struct flow_key *key,
				    struct flow *flow, __u32 ifindex, __u32 left)
{
	const struct slot *container, *own;

	if (!key || !flow || !offload_look_up(skb, key, flow, ifindex))
		return PATH_UNDECIDED;
	if (left && left != flow->out_ifindex)
		return PATH_STACK;
	own = owner_slot(&flow->owner);
	if (!own || own->fast_path == FAST_PATH_OFF || !offload_may_pass(ifindex))
		return PATH_STACK;
	if (key->direction == DIRECTION_IN)
		return offload_into(flow, own, ifindex);
	if (!offload_gateway(own->ifindex))
		return PATH_UNDECIDED;
	container = offload_container(key->destination);
	return container ? offload_into(flow, container, ifindex) : offload_out(flow->out_ifindex);
}

/* The container itself asked, or answers: not what the host asks it in a client's name. */
static __always_inline bool offload_is_containers(const struct flow_key *out,
						  const struct flow *flow)
{
	const struct slot *slot = offload_container(out->source);

	return slot && slot == owner_slot(&flow->owner);
}

/* The container may send packets that are larger than its way out: not decided packet by
 * packet, for TCP's would come back to the stack. */
static __always_inline bool offload_is_narrow(struct __sk_buff *skb, const struct flow *out,
					      __u32 veth)
{
	__u32 mtu = 1; /* in: a length that fits; out: the interface's MTU */

	return bpf_check_mtu(skb, veth, &mtu, 0, 0) || out->path_mtu < mtu;
}

/* Of a flow, the half that enters the stack and the one that leaves it */
struct halves {
	struct flow_key in_key;
	struct flow_key out_key;
	struct flow *in;
	struct flow *out;
};

/* False: either is not there any more. */
static __always_inline bool offload_find_halves(const struct flow_key *tuple, struct halves *halves)
{
	if (tuple->direction == DIRECTION_IN) {
		__builtin_memcpy(&halves->in_key, tuple, sizeof(*tuple));
		halves->in = flow_find(&halves->in_key);
		if (!halves->in)
			return false;
		flow_other_key(&halves->in_key, halves->in, &halves->out_key);
		halves->out = flow_find(&halves->out_key);
	} else {
		__builtin_memcpy(&halves->out_key, tuple, sizeof(*tuple));
		halves->out = flow_find(&halves->out_key);
		if (!halves->out)
			return false;
		flow_other_key(&halves->out_key, halves->out, &halves->in_key);
		halves->in = flow_find(&halves->in_key);
	}
	return halves->in && halves->out && offload_concerns(tuple, halves->in) &&
	       flow_is_other_half(&halves->in_key, halves->out);
}

/* Has the stack had its say? */
static __always_inline bool offload_is_due(const struct halves *halves)
{
	if (offload_mode(&halves->in->owner) == FAST_PATH_ALWAYS &&
	    halves->in->kind == FLOW_MAPPING)
		return true;
	return halves->in->state != STATE_NEW && offload_was_seen(halves->in) &&
	       offload_was_seen(halves->out);
}

/* Paths for both halves or PATH_STACK for both. ifindex: where the IN half enters; 0: where
 * the other one's packets leave. */
static __always_inline enum flow_path offload_find_paths(struct __sk_buff *skb,
							 struct halves *halves, __u32 ifindex,
							 enum flow_path *in)
{
	const struct slot *slot = owner_slot(&halves->out->owner);
	enum flow_path out;

	if (!slot || !offload_is_containers(&halves->out_key, halves->out) ||
	    policy_masquerades_all(&halves->out->owner))
		return PATH_STACK;
	out = offload_find_path(skb, &halves->out_key, halves->out, offload_gateway(slot->ifindex),
				halves->out->out_ifindex);
	if (out < PATH_CONTAINER)
		return out;
	if (!offload_may_pass(skb->ifindex))
		return PATH_UNDECIDED;
	if (offload_is_narrow(skb, halves->out, slot->ifindex))
		return PATH_STACK;
	*in = offload_find_path(skb, &halves->in_key, halves->in,
				ifindex ?: halves->out->out_ifindex, 0);
	return *in < PATH_CONTAINER ? *in : out;
}

/* Decides about a flow, for both halves at once. ifindex: as offload_find_paths() has it. */
static __always_inline void offload_decide(struct __sk_buff *skb, const struct packet *packet,
					   struct halves *halves, __u32 ifindex)
{
	__u32 left = halves->out->kind == FLOW_MASQUERADE ? halves->out->out_ifindex : 0;
	enum flow_path in = PATH_STACK, out = PATH_STACK;

	if (!packet_has_options(packet))
		out = offload_find_paths(skb, halves, ifindex, &in);
	if (!halves->in->in_ifindex)
		halves->in->in_ifindex = ifindex ?: halves->out->out_ifindex;
	halves->in->out_looked_up = halves->out->out_looked_up = flow_now();
	if (out >= PATH_CONTAINER) {
		count(flow_offloaded);
	} else {
		in = out;
		halves->out->out_ifindex = left;
	}
	halves->in->path = in;
	halves->out->path = out;
}

/* It was not time to decide yet: not asked again in this second. */
static __always_inline void offload_postpone(struct flow *flow, bool in)
{
	flow->out_looked_up = flow_now();
	if (!in && flow->kind == FLOW_MAPPING)
		flow->out_ifindex = 0; /* it was not looked up, after all */
}

/* Looks at the veth and bridge of the container that has this address, if one has. */
VERIFIED_ONCE int offload_look_at(struct __sk_buff *skb, const struct address *address)
{
	const struct endpoint *endpoint;
	struct endpoint_key key;
	struct interface *interface;
	const struct slot *slot;
	__u32 veth;

	if (!address)
		return 0;
	address_copy(key.address, address->bytes);
	endpoint = bpf_map_lookup_elem(&endpoints, &key);
	slot = endpoint ? owner_slot(&endpoint->owner) : NULL;
	if (!slot)
		return 0;
	veth = slot->ifindex;
	interface = bpf_map_lookup_elem(&interfaces, &veth);
	if (interface)
		device_look(skb, veth, interface, flow_now());
	return 0;
}

/* Before a path is asked for: at both ends of the flow there may be a container. Called early, for
 * what looks at devices needs room on the stack (512 bytes, all callers together). */
static __always_inline void offload_look(struct __sk_buff *skb, const struct flow_key *tuple,
					 const struct translation *translation)
{
	bool in = tuple->direction == DIRECTION_IN;

	if (!device_layout.known)
		return;
	offload_look_at(skb, (const struct address *)(in ? translation->address : tuple->source));
	offload_look_at(skb, (const struct address *)(in ? tuple->source : tuple->destination));
}

/* Is it time to decide? */
static __always_inline bool offload_is_open(const struct packet *packet, const struct flow *flow,
					    __u32 now)
{
	if (flow->path != PATH_UNDECIDED || flow->out_looked_up == now || packet->error ||
	    !offload_concerns(&packet->tuple, flow))
		return false;
	if (flow->left_stack && !(packet->tcp_flags & TCP_SYN) &&
	    (flow->state != STATE_NEW || flow->answered))
		return true;
	return flow->kind == FLOW_MAPPING && offload_mode(&flow->owner) == FAST_PATH_ALWAYS;
}

/* Of what TCP would have segmented by the time it leaves: one of the segments. */
static __always_inline __u32 offload_length(struct __sk_buff *skb, const struct packet *packet,
					    __u32 mtu)
{
	__u32 length = packet->end - packet->l3_offset;

	if (length <= mtu || !skb->gso_size)
		return length;
	if (packet->tuple.protocol == PROTOCOL_TCP)
		return length - packet->tcp_sequence_length + skb->gso_size;
	return packet->l4_offset - packet->l3_offset + sizeof(struct udphdr) + skb->gso_size;
}

/* UDP's turn to be seen by the stack, or somebody had offload dropped. */
static __always_inline bool offload_is_stacks_turn(const struct packet *packet,
						   const struct flow *flow, __u32 now)
{
	if (offload_was_seen(flow) && !(packet->tcp_flags & TCP_SYN) &&
	    (packet->tuple.protocol == PROTOCOL_TCP ||
	     (__s32)(now - flow->left_stack) <= STACK_SECONDS))
		return false;
	return offload_mode(&flow->owner) != FAST_PATH_ALWAYS;
}

/* May this very packet of a flow with a path take it? */
static __always_inline bool offload_takes(struct __sk_buff *skb, const struct packet *packet,
					  const struct flow *flow, __u32 now)
{
	return flow->out_ifindex && packet->hop_limit > 1 && !packet_has_options(packet) &&
	       offload_length(skb, packet, flow->path_mtu) <= flow->path_mtu &&
	       !offload_is_stacks_turn(packet, flow, now);
}

/* Once a second. Where there is no way now the packets are the stack's. */
VERIFIED_ONCE int offload_refresh(struct __sk_buff *skb, const struct flow_key *key,
				  struct flow *flow, __u32 ifindex)
{
	enum flow_path path;

	if (!key || !flow)
		return 0;
	flow->out_looked_up = flow_now();
	path = offload_find_path(skb, key, flow, ifindex, 0);
	if (path < PATH_CONTAINER || !offload_may_pass(skb->ifindex))
		flow->out_ifindex = 0;
	else
		flow->path = path;
	return 0;
}

/* Neither reverse path filter nor firewall has seen the flow's packets come in here. But it may be
 * that its client is reached by another way now: if that is where the answers go, packets follow.
 */
VERIFIED_ONCE bool offload_enters_elsewhere(const struct flow_key *tuple, struct flow *flow,
					    __u32 ifindex)
{
	struct flow_key key;
	struct flow *out;

	if (!tuple || !flow)
		return true;
	flow_other_key(tuple, flow, &key);
	out = flow_find(&key);
	if (!out || out->path != PATH_OUT || out->out_ifindex != ifindex)
		return true;
	flow->in_ifindex = ifindex;
	return false;
}

/* Sends the packet on by the flow's path, if it may take that. */
static __always_inline void offload_take(struct __sk_buff *skb, const struct packet *packet,
					 const struct flow *flow, __u32 now,
					 struct translation *translation)
{
	if (flow->path < PATH_CONTAINER || !offload_takes(skb, packet, flow, now))
		return;
	translation->path = flow->path;
	translation->out_ifindex = flow->out_ifindex;
	__builtin_memcpy(translation->frame_destination, flow->path_destination, ETH_ALEN);
	__builtin_memcpy(translation->frame_source, flow->path_source, ETH_ALEN);
}

/* The same, by a path that is up to date. Once a second it is not sent to the MAC that is known:
 * that way the kernel asks the neighbour whether it is still there. */
static __always_inline void offload_choose(struct __sk_buff *skb, const struct packet *packet,
					   struct flow *flow, __u32 ifindex, __u32 now,
					   struct translation *translation)
{
	bool fresh = flow->out_looked_up == now;

	if (flow->path < PATH_CONTAINER)
		return;
	if (packet->tuple.direction == DIRECTION_IN && flow->in_ifindex != ifindex &&
	    offload_enters_elsewhere(&packet->tuple, flow, ifindex))
		return;
	if (!fresh) {
		offload_look(skb, &packet->tuple, translation);
		offload_refresh(skb, &packet->tuple, flow, ifindex);
	}
	offload_take(skb, packet, flow, now, translation);
	if (!fresh && translation->path == PATH_OUT)
		__builtin_memset(translation->frame_destination, 0, ETH_ALEN);
	if (translation->path && flow->last_seen == now && flow->state == STATE_ESTABLISHED &&
	    packet->tuple.protocol == PROTOCOL_UDP && translation_has_frame(translation))
		shortcut_make(packet, flow, translation, skb->ifindex);
}

/* Out to a neighbour that the kernel asks for. It is told the next hop: by itself it would look for
 * one with the source that the packet has by now, where routing chose by the container's. */
VERIFIED_ONCE int offload_to_next_hop(struct __sk_buff *skb, const struct packet *packet,
				      const struct translation *translation)
{
	struct bpf_redir_neigh next_hop = {};
	struct bpf_fib_lookup query;
	struct flow_key key;
	struct flow *flow;
	long result;

	if (!packet || !translation)
		return TC_ACT_SHOT;
	__builtin_memcpy(&key, &packet->tuple, sizeof(key));
	flow = flow_find(&key);
	route_query(&query, packet, offload_gateway(skb->ifindex));
	if (flow && flow->kind == FLOW_MAPPING)
		route_query_source(&query, translation->address);
	result = bpf_fib_lookup(skb, &query, sizeof(query), 0);
	if ((result != BPF_FIB_LKUP_RET_SUCCESS && result != BPF_FIB_LKUP_RET_NO_NEIGH) ||
	    query.ifindex != translation->out_ifindex)
		return bpf_redirect_neigh(translation->out_ifindex, NULL, 0, 0);
	next_hop.nh_family = query.family;
	__builtin_memcpy(next_hop.ipv6_nh, query.ipv6_dst, sizeof(next_hop.ipv6_nh));
	return bpf_redirect_neigh(translation->out_ifindex, &next_hop, sizeof(next_hop), 0);
}

/* Decides about the flow of this packet, which came in at ifindex as routing sees it. False: it is
 * not the time, or not the packet. */
VERIFIED_ONCE bool offload_consider(struct __sk_buff *skb, const struct packet *packet,
				    __u32 ifindex)
{
	struct halves halves = {};
	bool in;

	if (!packet || !offload_find_halves(&packet->tuple, &halves))
		return false;
	in = packet->tuple.direction == DIRECTION_IN;
	if (in && halves.in->in_ifindex && halves.in->in_ifindex != ifindex)
		return false;
	if (!offload_is_due(&halves)) {
		offload_postpone(in ? halves.in : halves.out, in);
		return false;
	}
	offload_decide(skb, packet, &halves, in ? ifindex : 0);
	return true;
}

/* Sends it on as was decided. The flow may stand in another table by now. */
VERIFIED_ONCE int offload_follow(struct __sk_buff *skb, const struct packet *packet,
				 struct translation *translation)
{
	struct flow_key key;
	struct flow *flow;

	if (!packet || !translation)
		return 0;
	__builtin_memcpy(&key, &packet->tuple, sizeof(key));
	flow = flow_find(&key);
	if (flow)
		offload_take(skb, packet, flow, flow_now(), translation);
	return 0;
}

/* One after the other, for stacks are short. */
static __always_inline void offload_open(struct __sk_buff *skb, const struct packet *packet,
					 __u32 ifindex, struct translation *translation)
{
	offload_look(skb, &packet->tuple, translation);
	if (offload_consider(skb, packet, ifindex))
		offload_follow(skb, packet, translation);
}

#endif

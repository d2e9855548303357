/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmap.bpf.c - the entry programs, and how the datapath works.
 *
 * Theory of operation
 * ===================
 *
 *   client --> uplink -(from_uplink)-> IP stack --> bridge ---------> veth --> container
 *   client <-- uplink <-(to_uplink)--- IP stack <-- bridge <-(from_container)- container
 *
 * A destination is rewritten where a packet enters the IP stack (tc ingress), a
 * source where it leaves (tc egress): netfilter's order of PREROUTING and
 * POSTROUTING, and for the same reason. A source that became a host address
 * before routing would be a martian, and the stack, FORWARD rules and conntrack
 * in between see one tuple in both directions, the one without NAT.
 *
 *   program         hangs at                                 does
 *   from_uplink     uplinks, ingress                         decide_in
 *   to_uplink       uplinks, egress                          decide_out
 *   from_uplink_raw, to_uplink_raw: the same for uplinks whose frames begin with the
 *                   IP header (tun, WireGuard, PPP)
 *   from_bridge     bridges, ingress: from neighbours that   decide_in
 *                   have no from_container of ours
 *   to_container    bridges and routed veths, egress         decide_out
 *   from_container  containers' veths, ingress               decide_in, before the bridge
 *
 * decide_in (mapping.h): a live flow of this tuple; else a mapping of its
 * destination, if that is an address of this host; else note who reaches a
 * container directly. "Is it a reply of mine" is asked before "is there a mapping".
 * tc comes before reverse path filter and FORWARD: what was noted here becomes a flow
 * when it leaves the stack for the container, and means nothing until then.
 * from_container asks first whether the packet is to leave translated (decide_out).
 *
 * decide_out (masquerade.h): a live flow of this tuple; else masquerade what a
 * container begins, and what comes to it by a mapping where its policy says so
 * (policy.h). Ports are tried in an order that is the flow's own (port_choice.h). What
 * cannot be translated and must be is dropped. The host's own packets are never
 * changed, but for its ICMP errors about translated ones; those whose replies something
 * here would take for another's are remembered (host.h). Where routing ties a reply's
 * new source to another uplink, it is handed over to that one.
 *
 * ICMP errors. One belongs to the flow that an answer to the quoted packet would
 * take; its tuple is that one, the quoted one turned round (packet.h), and the same
 * two directions apply. Errors begin no flow and keep none alive.
 *
 * Fragments. The first one has the ports and is decided about like any packet; at
 * each hook, what was done to it is done to the others (fragment.h). Those that enter
 * before it are held until it comes (held.h).
 *
 * The fast path. A flow that the stack has let through both ways skips it from then on:
 * from_uplink and from_container do all that the stack and the hooks behind it would do, and
 * send the packet straight into the container or out of the uplink (offload.h). For UDP
 * they do the same again up to the end of the second, without a look at the flow (shortcut.h).
 *
 * Decisions read maps and fill a translation; rewrite.h alone writes packets.
 *
 * Neighbours on one bridge. from_container rewrites the request before the
 * bridge sees it, so that bridge netfilter's conntrack has the final tuple. The
 * reply would be switched straight to the neighbour, past the hook that must put
 * the host's address back: from_container lifts it, by giving the frame the
 * bridge's MAC, into the IP stack, and it leaves by the bridge's to_container.
 */
#include "vmlinux.h"
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>
#include "error.h"
#include "held.h"
#include "host.h"
#include "mapping.h"
#include "masquerade.h"
#include "rewrite.h"
#include "sender.h"
#include "tags.h"

/* The kernel's ip_tos2prio: by the two bits of RFC 1349 that it looks at. */
static __always_inline __u32 priority_of(__u8 type_of_service)
{
	return 0x4620 >> (type_of_service >> 3 & 3) * 4 & 0xf;
}

/* Past the IP stack. */
static __always_inline int send(struct __sk_buff *skb, const struct packet *packet,
				const struct translation *translation)
{
	if (packet->hop_limit <= 1)
		return TC_ACT_SHOT; /* a later fragment: nobody is told of it (RFC 1122 3.2.2) */
	if (rewrite_forwarded(skb, packet, translation)) {
		count(drop_rewrite_failed);
		return TC_ACT_SHOT;
	}
	if (translation->path == PATH_CONTAINER) {
		count_here(fast_into_container);
		rewrite_for_container(skb);
		return bpf_redirect_peer(translation->out_ifindex, 0);
	}
	count_here(fast_out);
	skb->tc_index = TC_INDEX_SENT;
	if (packet->ipv4)
		skb->priority = priority_of(packet->type_of_service);
	return translation_has_frame(translation) ? bpf_redirect(translation->out_ifindex, 0)
						  : offload_to_next_hop(skb, packet, translation);
}

/* Does what was decided. */
VERIFIED_ONCE int act(struct __sk_buff *skb, const struct packet *packet,
		      const struct translation *translation, enum verdict verdict)
{
	if (!packet || !translation || verdict == VERDICT_DROP)
		return TC_ACT_SHOT;
	if (verdict == VERDICT_PASS || !translation_changes(translation, &packet->tuple))
		return TC_ACT_UNSPEC;
	if (packet->error ? rewrite_error(skb, packet, translation)
			  : rewrite_packet(skb, packet, translation)) {
		count(drop_rewrite_failed);
		return TC_ACT_SHOT; /* half changed: nobody can use it */
	}
	if (translation->path && packet->l3_offset)
		return send(skb, packet, translation);
	if (packet->error) {
		count_here(rewritten_error);
		return TC_ACT_UNSPEC;
	}
	if (translation->report)
		skb->tc_index = TC_INDEX_REPORT;
	if (packet->tuple.direction == DIRECTION_IN) {
		count_here(rewritten_destination);
		return TC_ACT_UNSPEC;
	}
	count_here(rewritten_source);
	if (!translation->out_ifindex)
		return TC_ACT_UNSPEC;
	if (rewrite_make_room_for_link_header(skb, packet)) {
		count(drop_rewrite_failed);
		return TC_ACT_SHOT;
	}
	count(rerouted);
	return bpf_redirect_neigh(translation->out_ifindex, NULL, 0, 0);
}

/* Does what was decided about a packet that enters, and sees to the other fragments. */
static __always_inline int act_in(struct __sk_buff *skb, const struct packet *packet,
				  const struct translation *translation, enum verdict verdict)
{
	__u32 newest = 0;

	verdict = fragment_verdict(packet, translation, verdict);
	if (packet->fragment == FIRST_FRAGMENT)
		newest = fragment_remember(skb, packet, translation, fragment_fate_of(verdict));
	if (newest) {
		held_release_all(skb, packet, newest);
		return TC_ACT_SHOT; /* on its way once more, before the others */
	}
	return act(skb, packet, translation, verdict);
}

/* The same for what leaves from where it enters: its source is translated. */
static __always_inline int act_out(struct __sk_buff *skb, struct packet *packet,
				   const struct translation *translation, enum verdict verdict)
{
	__u32 newest = 0;

	if (packet->fragment == FIRST_FRAGMENT && verdict == VERDICT_TRANSLATE) {
		packet->tuple.direction = DIRECTION_IN; /* where the others will be seen */
		newest = fragment_remember(skb, packet, translation, FRAGMENT_LEFT);
		packet->tuple.direction = DIRECTION_OUT;
	}
	if (newest) {
		held_release_all(skb, packet, newest);
		return TC_ACT_SHOT;
	}
	return act(skb, packet, translation, verdict);
}

/* What became of the first fragment. Where it has not come yet, a fragment that may
 * have to be translated waits for it: one to this host, or a container's own. */
VERIFIED_ONCE int later_fragment(struct __sk_buff *skb, const struct packet *packet,
				 struct translation *translation, __u32 ifindex)
{
	enum fragment_fate fate;
	__u32 out = 0;

	if (!packet || !translation)
		return FRAGMENT_WAITING;
	fate = fragment_follow(skb, packet, translation);
	if (fate != FRAGMENT_WAITING)
		return fate;
	if (ifindex && route_of(skb, packet, ifindex, &out) != ROUTE_LOCAL)
		return FRAGMENT_PASSED;
	if (held_keep(skb, packet))
		return FRAGMENT_DROPPED;
	fate = fragment_follow(skb, packet, translation);
	if (fate == FRAGMENT_WAITING)
		count(fragment_not_held);
	return fate;
}

static __always_inline int enter(struct __sk_buff *skb, struct packet *packet,
				 enum packet_kind kind, bool may_skip)
{
	const struct owner nobody = {};
	struct translation translation;
	enum verdict verdict = VERDICT_PASS;

	if (kind == PACKET_OPAQUE && strict_refuses_other(skb, packet)) {
		count(drop_strict);
		return TC_ACT_SHOT;
	}
	if (kind < PACKET_TRANSLATABLE && !packet->fragment)
		return TC_ACT_UNSPEC;
	packet->tuple.direction = DIRECTION_IN;
	if (kind == PACKET_FRAGMENT) {
		switch (later_fragment(skb, packet, &translation, skb->ifindex)) {
		case FRAGMENT_TRANSLATED:
			return act(skb, packet, &translation, VERDICT_TRANSLATE);
		case FRAGMENT_DROPPED:
			return TC_ACT_SHOT;
		default:
			return TC_ACT_UNSPEC;
		}
	}
	if (may_skip && shortcut_inwards(skb, packet, &translation))
		verdict = VERDICT_TRANSLATE;
	else if (packet->error)
		verdict = decide_error_in(skb, packet, skb->ifindex, nobody, &translation);
	else if (kind == PACKET_TRANSLATABLE)
		verdict = decide_in(skb, packet, skb->ifindex, true, false, may_skip, &translation);
	if (packet->error && verdict == VERDICT_PASS && strict_refuses_other(skb, packet))
		verdict = drop(strict);
	return act_in(skb, packet, &translation, verdict);
}

/* No container's (the stack makes packets in a container's name: a RST of the firewall's REJECT,
 * and the pieces into which ip6_fragment() cuts a packet again) but the host's own, which
 * came in nowhere; or what bears the host's address because somebody else translates too. Left
 * alone, at most remembered. */
static __always_inline bool leave_as_hosts(struct __sk_buff *skb, const struct packet *packet,
					   bool translatable, bool uplink)
{
	if (skb->ingress_ifindex != 0) {
		if (!uplink || !translatable || !host_translated(skb, packet))
			return false;
		host_note_translated(packet);
		return true;
	}
	if (translatable && packet->fragment == FIRST_FRAGMENT && direct_confirm(packet))
		return true; /* a client's, cut again */
	if (translatable && host_must_be_remembered(packet))
		host_remember(packet);
	return true;
}

/* A container may give its packets a tc_index; from_container takes that away again, but does not
 * hang at every interface that leads to one. */
static __always_inline bool entered_by_container(struct __sk_buff *skb)
{
	__u32 ifindex = skb->ingress_ifindex;
	const struct interface *interface = bpf_map_lookup_elem(&interfaces, &ifindex);

	return interface && (interface->role == ROLE_PORT || interface->role == ROLE_ROUTED);
}

static __always_inline int leave(struct __sk_buff *skb, __u16 l3_offset, bool uplink)
{
	struct translation translation = {};
	const struct endpoint *endpoint;
	enum packet_kind kind;
	struct packet packet;
	enum verdict verdict;
	__u16 index = skb->tc_index;

	if (index)
		skb->tc_index = 0;
	if (uplink && index == TC_INDEX_SENT && entered_by_container(skb))
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, l3_offset);
	if (kind == PACKET_IGNORED)
		return TC_ACT_UNSPEC;
	if (kind == PACKET_ERROR) {
		verdict = decide_error_out(&packet, &translation);
		return act(skb, &packet, &translation, verdict);
	}
	packet.tuple.direction = DIRECTION_OUT;
	endpoint = bpf_map_lookup_elem(&endpoints, packet.sender);
	if (!endpoint && leave_as_hosts(skb, &packet, kind == PACKET_TRANSLATABLE, uplink))
		return TC_ACT_UNSPEC;
	verdict = decide_out(skb, &packet, kind == PACKET_TRANSLATABLE, endpoint, &translation);
	if (index == TC_INDEX_REPORT && verdict == VERDICT_PASS)
		offload_saw_leaving(&packet, skb->ingress_ifindex);
	if (uplink && verdict == VERDICT_PASS && endpoint && endpoint->strict &&
	    kind == PACKET_TRANSLATABLE)
		strict_remember(&packet, endpoint);
	verdict = fragment_verdict(&packet, &translation, verdict);
	if (packet.fragment == FIRST_FRAGMENT && (verdict != VERDICT_PASS || endpoint))
		fragment_remember(skb, &packet, &translation, fragment_fate_of(verdict));
	return act(skb, &packet, &translation, verdict);
}

/* What is no IP packet for us must be none for the stack. */
static __always_inline int pass_ignored(bool hides_packet)
{
	if (!hides_packet)
		return TC_ACT_UNSPEC;
	count(drop_nested_tags);
	return TC_ACT_SHOT;
}

SEC("tc")
int from_uplink(struct __sk_buff *skb)
{
	enum packet_kind kind;
	struct packet packet;

	if (skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, ETH_HLEN);
	if (kind == PACKET_IGNORED)
		return pass_ignored(tags_hide_packet(skb));
	return enter(skb, &packet, kind, true);
}

SEC("tc")
int to_uplink(struct __sk_buff *skb)
{
	return leave(skb, ETH_HLEN, true);
}

/* No MAC says whose packet it is: all of them are given to the IP stack. */
SEC("tc")
int from_uplink_raw(struct __sk_buff *skb)
{
	enum packet_kind kind;
	struct packet packet;

	kind = packet_parse(skb, &packet, 0);
	return enter(skb, &packet, kind, false);
}

SEC("tc")
int to_uplink_raw(struct __sk_buff *skb)
{
	return leave(skb, 0, true);
}

SEC("tc")
int from_bridge(struct __sk_buff *skb)
{
	struct endpoint *neighbour;
	enum packet_kind kind;
	struct packet packet;

	if (skb->pkt_type != PACKET_HOST)
		return TC_ACT_UNSPEC;
	kind = packet_parse(skb, &packet, ETH_HLEN);
	if (kind == PACKET_IGNORED)
		return pass_ignored(tags_hide_packet(skb));
	neighbour = bpf_map_lookup_elem(&endpoints, packet.sender);
	if (neighbour && owner_live(&neighbour->owner))
		return TC_ACT_UNSPEC; /* from_container has seen it */
	return enter(skb, &packet, kind, false);
}

SEC("tc")
int to_container(struct __sk_buff *skb)
{
	return leave(skb, ETH_HLEN, false);
}

/* A packet that is known to leave the stack translated, a reply or part of a
 * masqueraded flow, but would be switched past the hook that does that: lifted. */
VERIFIED_ONCE int lift(struct __sk_buff *skb, const struct interface *port)
{
	if (!port || rewrite_destination_mac(skb, port->bridge_mac)) {
		count(drop_rewrite_failed);
		return TC_ACT_SHOT;
	}
	count(lifted_reply);
	return TC_ACT_UNSPEC;
}

/* A packet of a flow that leaves the stack translated, or is none of ours, but is
 * about to be switched. */
static __always_inline int switched(struct __sk_buff *skb, struct packet *packet, struct flow *flow,
				    const struct interface *port, struct translation *translation,
				    __u32 now)
{
	__u32 newest = 0;
	bool lifted;

	translation_of(flow, translation);
	lifted = translation_changes(translation, &packet->tuple);
	if (!lifted && !packet->error)
		flow_use(&packet->tuple, flow, packet, skb->len, now);
	packet->tuple.direction = DIRECTION_IN;
	if (packet->fragment == FIRST_FRAGMENT)
		newest = fragment_remember(skb, packet, translation,
					   lifted ? FRAGMENT_LIFTED : FRAGMENT_PASSED);
	if (newest) {
		held_release_all(skb, packet, newest);
		return TC_ACT_SHOT;
	}
	return lifted ? lift(skb, port) : TC_ACT_UNSPEC;
}

/* An interface that came up since the last ADD has no to_uplink: what a
 * masqueraded container sends may not leave there, be it of an old flow. */
VERIFIED_ONCE bool leaves_unclassified(struct __sk_buff *skb, const struct packet *packet,
				       const struct endpoint *endpoint, __u32 ifindex)
{
	__u32 out = 0;

	if (!packet || !endpoint)
		return false;
	if (!masquerade_wanted(packet, endpoint))
		return false;
	if (route_of(skb, packet, ifindex, &out) != ROUTE_FORWARDED)
		return false;
	return !bpf_map_lookup_elem(&interfaces, &out);
}

static __always_inline bool container_error_is_foreign(const struct packet *packet,
						       const struct interface *interface,
						       __u32 veth)
{
	return error_is_foreign(packet, &interface->owner,
				interface->role == ROLE_PORT ? interface->bridge_ifindex : veth);
}

SEC("tc")
int from_container(struct __sk_buff *skb)
{
	const struct owner nobody = {};
	struct translation translation = {};
	struct interface *interface;
	struct endpoint *endpoint;
	enum packet_kind kind;
	struct packet packet;
	enum verdict verdict;
	struct flow *flow;
	/* Where it came in: at a device that limits bandwidth (shaper.h) not the one it is at. */
	__u32 ifindex = skb->ingress_ifindex ?: skb->ifindex, now;
	bool routed;

	if (skb->tc_index)
		skb->tc_index = 0; /* whatever the container may have meant by it */
	kind = packet_parse(skb, &packet, ETH_HLEN);
	if (kind == PACKET_IGNORED)
		return !address_is_unset(packet.sender) && sender_is_forged(skb, &packet, ifindex)
			       ? TC_ACT_SHOT
			       : pass_ignored(tags_are_nested(skb));
	packet.tuple.direction = DIRECTION_OUT;
	if (shortcut_outwards(skb, &packet, &translation))
		return act(skb, &packet, &translation, VERDICT_TRANSLATE);
	interface = bpf_map_lookup_elem(&interfaces, &ifindex);
	if (!interface || !owner_live(&interface->owner)) {
		/* Between our DEL and the one that takes the veth away. */
		count(drop_no_attachment);
		return TC_ACT_SHOT;
	}
	if (kind == PACKET_ERROR && container_error_is_foreign(&packet, interface, ifindex)) {
		count(drop_foreign_error);
		return TC_ACT_SHOT;
	}
	endpoint = bpf_map_lookup_elem(&endpoints, packet.sender);
	if (!endpoint || !owner_equal(&endpoint->owner, &interface->owner))
		return sender_is_forged(skb, &packet, ifindex) ? TC_ACT_SHOT : TC_ACT_UNSPEC;
	routed = sender_asks_stack(skb, interface);
	if (interface->role == ROLE_PORT)
		ifindex = interface->bridge_ifindex;
	if (kind == PACKET_FRAGMENT) {
		packet.tuple.direction = DIRECTION_IN;
		switch (later_fragment(skb, &packet, &translation, 0)) {
		case FRAGMENT_TRANSLATED:
			return act(skb, &packet, &translation, VERDICT_TRANSLATE);
		case FRAGMENT_DROPPED:
			return TC_ACT_SHOT;
		case FRAGMENT_LIFTED:
			return lift(skb, interface);
		case FRAGMENT_LEFT:
			packet.tuple.direction = DIRECTION_OUT;
			return act(skb, &packet, &translation, VERDICT_TRANSLATE);
		}
	}
	if (kind >= PACKET_TRANSLATABLE) {
		packet.tuple.direction = DIRECTION_OUT;
		flow = flow_of(&packet.tuple, &now);
		if (flow && !routed)
			return switched(skb, &packet, flow, interface, &translation, now);
		if (flow) {
			packet.from_endpoint = true;
			verdict = VERDICT_PASS;
			if (!packet.error || owner_equal(&flow->owner, &interface->owner))
				verdict = leave_past_stack(skb, &packet, flow, ifindex, now,
							   &translation);
			if (verdict != VERDICT_PASS)
				return act_out(skb, &packet, &translation, verdict);
		} else if (packet.error) {
			verdict = decide_error_in(skb, &packet, ifindex,
						  routed ? interface->owner : nobody, &translation);
		} else {
			verdict = decide_in(skb, &packet, ifindex, routed, true, routed,
					    &translation);
		}
		packet.tuple.direction = DIRECTION_IN;
		if (verdict != VERDICT_PASS)
			return act_in(skb, &packet, &translation, verdict);
	}
	if (routed && leaves_unclassified(skb, &packet, endpoint, ifindex)) {
		count(drop_unclassified_interface);
		return TC_ACT_SHOT;
	}
	packet.tuple.direction = DIRECTION_IN;
	return act_in(skb, &packet, &translation, VERDICT_PASS);
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";

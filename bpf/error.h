/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * error.h - decides about ICMP errors, and which senders of them are believed.
 *
 * An error begins no flow and keeps none alive (RFC 5508 4). What it quotes is all that says
 * which flow it is about, and anybody can quote anything. So one from outside goes through the
 * IP stack, whose firewall decides about it, and one from a container counts only where that
 * container may have got the packet that it complains about.
 */
#ifndef BPF_PORTMAP_ERROR_H
#define BPF_PORTMAP_ERROR_H

#include "mapping.h"
#include "masquerade.h"

/* The flow that would translate the error, at the key that is made here; NULL: none. */
static __always_inline struct flow *error_flow(const struct packet *packet, struct flow_key *key)
{
	struct flow *flow;

	__builtin_memcpy(key, &packet->tuple, sizeof(*key));
	key->direction = DIRECTION_OUT;
	flow = flow_find(key);
	if (flow)
		return flow;
	key->direction = DIRECTION_IN;
	return flow_find(key);
}

/* Whether what the flow's own side sends leaves by ifindex, towards an address of no container:
 * then the sender of an error may be a router on the way. */
VERIFIED_ONCE bool error_is_of_way(const struct flow_key *key, const struct flow *flow,
				   __u32 ifindex)
{
	struct endpoint_key peer;
	struct flow_key out_key;
	struct flow *out;

	if (!key || !flow || key->direction != DIRECTION_IN)
		return false;
	address_copy(peer.address, key->source);
	if (bpf_map_lookup_elem(&endpoints, &peer))
		return false;
	flow_other_key(key, flow, &out_key);
	out = flow_find(&out_key);
	return out && out->out_ifindex == ifindex;
}

/* Whether a container's error would be translated by a flow of another container. It may be, where
 * the quoted packet was sent to the error's own sender, or that is a router on the way. owner: of
 * the veth by which the error came; ifindex: where routing sees it come in. */
VERIFIED_ONCE bool error_is_foreign(const struct packet *packet, const struct owner *owner,
				    __u32 ifindex)
{
	struct translation translation;
	struct flow_key key;
	struct flow *flow;

	if (!packet || !owner)
		return true;
	if (address_equal(packet->tuple.source, packet->sender))
		return false;
	flow = error_flow(packet, &key);
	if (!flow || owner_equal(&flow->owner, owner))
		return false;
	translation_of(flow, &translation);
	return translation_changes(&translation, &key) && !error_is_of_way(&key, flow, ifindex);
}

/* An ICMP error that arrives, about a packet that left translated. container: the owner of the veth
 * by which it came; about its own flow the error may skip the IP stack. {0, 0}: it came elsewhere.
 */
static __always_inline enum verdict decide_error_in(struct __sk_buff *skb, struct packet *packet,
						    __u32 ifindex, struct owner container,
						    struct translation *translation)
{
	struct flow *flow;

	packet->tuple.direction = DIRECTION_IN;
	flow = flow_find(&packet->tuple);
	if (!flow)
		return VERDICT_PASS;
	translation_of(flow, translation);
	if (container.slot && owner_equal(&flow->owner, &container))
		offload_choose(skb, packet, flow, ifindex, flow_now(), translation);
	return VERDICT_TRANSLATE;
}

/* An ICMP error that leaves, about a packet that arrived translated: a
 * container's, a router's behind it, or the host's own, of which only the quoted
 * packet is changed. */
static __always_inline enum verdict decide_error_out(struct packet *packet,
						     struct translation *translation)
{
	struct endpoint *sender = bpf_map_lookup_elem(&endpoints, packet->sender);
	struct flow *flow;

	packet->tuple.direction = DIRECTION_OUT;
	flow = flow_find(&packet->tuple);
	if (!flow && sender && masquerade_wanted(packet, sender) &&
	    !masquerade_is_settled(&packet->tuple))
		return drop(untranslatable);
	if (!flow)
		return VERDICT_PASS;
	translation_of(flow, translation);
	packet->from_endpoint = sender;
	return VERDICT_TRANSLATE;
}

#endif

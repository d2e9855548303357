/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace_packet.h - tells `bpf-portmap trace` what a program does with a packet.
 *
 * A program that is being traced parses the packet before and after it runs, and sends both tuples
 * and what was counted in between. So decisions need not know of it, and a drop's reason is its
 * counter. Otherwise all that it costs is to read one word, twice.
 *
 * The events are a PERF_EVENT_ARRAY: it needs no memory while nobody reads, and the kernel empties
 * it when the reader's file closes. A ring buffer would have to be there all the time, or be put
 * into a map, where it would outlive a killed reader.
 *
 * The word is looked at again at the end rather than kept in a register, which would make the
 * verifier walk through the whole program twice.
 */
#ifndef BPF_PORTMAP_TRACE_PACKET_H
#define BPF_PORTMAP_TRACE_PACKET_H

#include "connection.h"
#include "parse_l4.h"
#include "trace_note.h"

#define TC_ACT_REDIRECT 7
#define BPF_F_CURRENT_CPU 0xffffffffULL

MAP_OF(trace_events, BPF_MAP_TYPE_PERF_EVENT_ARRAY, 0, __u32, __u32, 0);

INLINE bool trace_is_raw(enum trace_hook hook)
{
	return hook == TRACE_FROM_UPLINK_RAW || hook == TRACE_TO_UPLINK_RAW;
}

INLINE void trace_tuple_of(const struct tuple *from, struct trace_tuple *to)
{
	address_copy(to->source, from->source);
	address_copy(to->destination, from->destination);
	to->source_port = from->source_port;
	to->destination_port = from->destination_port;
}

INLINE bool trace_wants(const struct trace_tuple *tuple)
{
	const struct trace_filter *filter = (const struct trace_filter *)&trace_settings.filter;

	if (filter->port && filter->port != tuple->source_port &&
	    filter->port != tuple->destination_port)
		return false;
	return address_is_unset(filter->address) || address_equal(filter->address, tuple->source) ||
	       address_equal(filter->address, tuple->destination);
}

/* Keeps the packet as it came. */
GLOBAL_FUNCTION int trace_begin(struct __sk_buff *skb, enum trace_hook hook)
{
	struct trace_state *state = SINGLE(trace_state);
	const struct packet *packet;

	state->begun = state->is_told = false;
	if (trace_settings.until < clock_second()) {
		trace_settings.until = 0;
		return 0;
	}
	packet = &state->packet;
	state->event.counted = 0;
	state->kind = packet_parse(skb, &state->packet, trace_is_raw(hook) ? 0 : ETH_HLEN);
	if (trace_settings.filter.protocol &&
	    trace_settings.filter.protocol != packet->tuple.protocol)
		return 0;
	trace_tuple_of(&packet->tuple, &state->event.before);
	address_copy(state->event.sender, packet->sender);
	state->event.length = skb->len;
	state->event.protocol = packet->tuple.protocol;
	state->event.tcp_flags = packet->tcp_flags;
	state->event.fragment = packet->fragment;
	state->event.error = packet->error;
	state->begun = true;
	return 0;
}

INLINE bool trace_read_addresses(struct __sk_buff *skb, const struct packet *packet,
				 struct trace_tuple *tuple)
{
	struct {
		__u8 source[16], destination[16];
	} __attribute__((aligned(8))) ipv6;
	__be32 ipv4[2];

	if (!packet->ipv4) {
		if (!packet_load_header(skb, packet->l3_offset + 8, &ipv6, sizeof(ipv6)))
			return false;
		address_copy(tuple->source, ipv6.source);
		address_copy(tuple->destination, ipv6.destination);
		return true;
	}
	if (!packet_load_header(skb, packet->l3_offset + 12, ipv4, sizeof(ipv4)))
		return false;
	address_from_ipv4(tuple->source, ipv4[0]);
	address_from_ipv4(tuple->destination, ipv4[1]);
	return true;
}

/* Reads the tuple where it was before, which takes half as long as to parse the packet again.
 * Returns false for packets that must be parsed. */
INLINE bool trace_read_again(struct __sk_buff *skb, const struct packet *packet,
			     struct trace_tuple *tuple)
{
	__be16 ports[2];

	if (packet->error || packet->fragment ||
	    !packet_protocol_has_ports(packet->tuple.protocol) ||
	    !trace_read_addresses(skb, packet, tuple) ||
	    !packet_load_header(skb, packet->l4_offset, ports, sizeof(ports)))
		return false;
	tuple->source_port = bpf_ntohs(ports[0]);
	tuple->destination_port = bpf_ntohs(ports[1]);
	return true;
}

/* Reads the packet as the program leaves it. A frame without a link header gets one where it is
 * redirected. */
INLINE void trace_read_after(struct __sk_buff *skb, enum trace_hook hook, bool redirected,
			     struct trace_state *state)
{
	bool has_header = !trace_is_raw(hook) || redirected;

	if (!(trace_is_raw(hook) && redirected) &&
	    trace_read_again(skb, &state->packet, &state->event.after))
		return;
	packet_parse(skb, &state->packet, has_header ? ETH_HLEN : 0);
	trace_tuple_of(&state->packet.tuple, &state->event.after);
}

/* Sends the event, if it is wanted. */
GLOBAL_FUNCTION int trace_end(struct __sk_buff *skb, enum trace_hook hook, int action)
{
	struct trace_state *state = SINGLE(trace_state);
	struct trace_event *event;

	if (!state->begun)
		return 0;
	state->begun = false;
	if (action != TC_ACT_SHOT && (state->kind == PACKET_IGNORED || trace_settings.filter.drops))
		return 0;
	event = &state->event;
	trace_read_after(skb, hook, action == TC_ACT_REDIRECT, state);
	if (!trace_wants(&event->before) && !trace_wants(&event->after))
		return 0;
	event->time = bpf_ktime_get_ns();
	event->ifindex = skb->ifindex;
	event->in_ifindex = skb->ingress_ifindex;
	event->action = action;
	event->hook = hook;
	bpf_perf_event_output(skb, &trace_events, BPF_F_CURRENT_CPU, event, sizeof(*event));
	state->is_told = true;
	return 0;
}

/* What answers a probe of `doctor` is told of, and leaves the host no more. Apart from trace_end(),
 * whose stack has no room for it. */
GLOBAL_FUNCTION int trace_swallow(enum trace_hook hook, int action)
{
	const struct trace_filter *filter = (const struct trace_filter *)&trace_settings.filter;
	const struct trace_state *state = SINGLE(trace_state);
	const struct trace_tuple *after;

	if (!state->is_told || !filter->swallow ||
	    (hook != TRACE_TO_UPLINK && hook != TRACE_TO_UPLINK_RAW))
		return action;
	after = &state->event.after;
	return filter->port == after->destination_port &&
			       address_equal(filter->address, after->destination)
		       ? TC_ACT_SHOT
		       : action;
}

/* Evaluates to the program's return value. */
#define traced(skb, hook, call) \
	({ \
		int action; \
		if (trace_is_on()) \
			trace_begin(skb, hook); \
		action = call; \
		if (trace_is_on()) { \
			trace_end(skb, hook, action); \
			action = trace_swallow(hook, action); \
		} \
		action; \
	})

#endif

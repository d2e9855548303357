/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * trace_packet.h - tells `bpf-portmap trace` what a program does with a packet.
 *
 * A program that is being traced parses the packet before and after it runs, and sends both tuples
 * and what was counted in between. So decisions need not know of it, and a drop's reason is its
 * counter. Otherwise it costs one word, read twice: kept in a register, it would make the verifier
 * walk through the whole program twice.
 *
 * The events are a PERF_EVENT_ARRAY: it needs no memory while nobody reads, and the kernel empties
 * it when the reader's file closes. A ring buffer would outlive a killed reader.
 */
#pragma once

#include "connection.h"
#include "parse.h"
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
	state->kind =
		packet_parse(skb, &state->packet, trace_is_raw(hook) ? 0 : ETH_HLEN, DIRECTION_IN);
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
	/* A frame without a link header gets one where it is redirected. */
	packet_parse(skb, &state->packet,
		     trace_is_raw(hook) && action != TC_ACT_REDIRECT ? 0 : ETH_HLEN, DIRECTION_IN);
	trace_tuple_of(&state->packet.tuple, &event->after);
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

/* A program returns what the call evaluates to. */
#define PROGRAM(name, hook, call) \
	SEC("tc") \
	int name(struct __sk_buff *skb) \
	{ \
		int action; \
		if (trace_is_on()) \
			trace_begin(skb, hook); \
		action = call; \
		if (trace_is_on()) { \
			trace_end(skb, hook, action); \
			action = trace_swallow(hook, action); \
		} \
		return action; \
	}

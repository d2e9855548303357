/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memo_rows.c - when a memo (memo.h) is used in place of the record.
 *
 * The tests delete the record: a packet that still skips the stack, or is translated without a new
 * record, used a memo, which is valid until the end of the second that it was made in.
 */
#define _GNU_SOURCE
#include <err.h>
#include <linux/pkt_cls.h>
#include <sched.h>

#include "row.h"

#define AT_TIME_TO_LIVE 8 /* offset in an IPv4 header */

struct flow_packets {
	struct packet in, out;
	bool masqueraded; /* the container began it */
};

/* n: of the version of IP */
#define MAPPED_UDP(n) \
	{ \
		.in = UDP(v##n##_client, 5000, v##n##_host, 8080), \
		.out = UDP(v##n##_container_one, 80, v##n##_client, 5000), \
	}
#define MASQUERADED_UDP(n) \
	{ \
		.in = UDP(v##n##_server, 53, v##n##_host, 25000), \
		.out = UDP(v##n##_container_one, 25000, v##n##_server, 53), .masqueraded = true, \
	}
static const struct flow_packets mapped4 = MAPPED_UDP(4), mapped6 = MAPPED_UDP(6);
static const struct flow_packets masqueraded4 = MASQUERADED_UDP(4),
				 masqueraded6 = MASQUERADED_UDP(6);

/* Whether this packet skips the stack. *frame: what comes out. */
static bool skips(enum hook hook, const struct packet *packet, struct frame *frame)
{
	enum device device = hook == FROM_UPLINK ? UPLINK : VETH_ONE;
	struct counters before, after;

	row_build(frame, packet, hook, device);
	fixture_read_counters(&before);
	fixture_run(hook, device, device, frame);
	fixture_read_counters(&after);
	return after.fast_into_container + after.fast_out !=
	       before.fast_into_container + before.fast_out;
}

static void exchange(const struct flow_packets *flow)
{
	if (flow->masqueraded)
		row_send(TO_UPLINK, UPLINK, &flow->out);
	row_send(FROM_UPLINK, UPLINK, &flow->in);
	if (!flow->masqueraded)
		row_send(TO_UPLINK, UPLINK, &flow->out);
}

/* Makes an assured flow that has skipped the stack in both directions, and returns its frames. */
static void begin(const struct flow_packets *flow, struct frame *in, struct frame *out)
{
	fixture_reset();
	fixture_offload_one(FAST_PATH_ESTABLISHED);
	for (int i = 0; i < 3; i++)
		exchange(flow);
	fixture_let_leave_stack();
	for (int i = 0; i < 3; i++) {
		skips(FROM_UPLINK, &flow->in, in);
		skips(FROM_CONTAINER, &flow->out, out);
	}
}

/* Whether the flow's packets use their memos after `change`. */
static void check(const struct flow_packets *flow, void (*change)(void), bool expected)
{
	struct frame in, out, in_before, out_before;
	bool in_skips, out_skips, in_one_second;
	uint32_t second;

	for (int i = 0; i < ROW_TRIES; i++) {
		second = fixture_second();
		begin(flow, &in_before, &out_before);
		in_one_second = fixture_second() == second;
		row_forget_flows();
		if (change)
			change();
		in_skips = skips(FROM_UPLINK, &flow->in, &in);
		out_skips = skips(FROM_CONTAINER, &flow->out, &out);
		if (in_one_second &&
		    (fixture_second() == second || change == fixture_wait_for_next_second))
			break; /* else the memos may have expired */
	}
	if (in_skips != expected)
		row_fail("inwards it %s the stack", in_skips ? "skips" : "does not skip");
	if (out_skips != expected)
		row_fail("outwards it %s the stack", out_skips ? "skips" : "does not skip");
	if (expected && !frame_equal(&in, &in_before))
		row_fail("inwards the packet differs from those before it");
	if (expected && !frame_equal(&out, &out_before))
		row_fail("outwards the packet differs from those before it");
}

static void memo_row(const char *says, const struct flow_packets *flow, void (*change)(void),
		     bool expected)
{
	row_begin(says);
	check(flow, change, expected);
	records_check();
	row_end();
}

static void kill_one(void)
{
	fixture_kill(ONE);
}

static void no_fast_path_any_more(void)
{
	fixture_offload_one(FAST_PATH_OFF);
}

static void renew_one(void)
{
	fixture_renew(ONE);
	fixture_offload_one(FAST_PATH_ESTABLISHED);
}

/* The flow has memos, but these packets must go through the stack. */
static void check_packet(const struct flow_packets *flow, struct packet in, struct packet out)
{
	struct frame frame;

	begin(flow, &frame, &frame);
	row_forget_flows();
	if (skips(FROM_UPLINK, &in, &frame))
		row_fail("inwards it skips the stack");
	if (skips(FROM_CONTAINER, &out, &frame))
		row_fail("outwards it skips the stack");
}

static void set_ends(struct packet *packet, const struct packet *of)
{
	packet->protocol = of->protocol;
	packet->from = of->from;
	packet->from_port = of->from_port;
	packet->to = of->to;
	packet->to_port = of->to_port;
}

static void packet_rows(void)
{
	static const struct {
		const char *says;
		struct packet like; /* mapped4's, but for the addresses */
	} rows[] = {
		{"a datagram larger than the MTU does not use the memo", {.payload = 1473}},
		{"nor one with IP options", {.ipv4_options = 4}},
		{"nor does one with a damaged IPv4 header", {.damaged_header = true}},
		{"nor a datagram in fragments", {.fragment = FIRST_FRAGMENT}},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct packet in = rows[i].like, out = in;

		row_begin(rows[i].says);
		set_ends(&in, &mapped4.in);
		set_ends(&out, &mapped4.out);
		check_packet(&mapped4, in, out);
		row_end();
	}
}

static void last_hop_row(void)
{
	struct frame frame;

	row_begin("nor one on its last hop: the stack tells its sender");
	begin(&mapped4, &frame, &frame);
	row_build(&frame, &mapped4.in, FROM_UPLINK, UPLINK);
	frame.bytes[frame.network + AT_TIME_TO_LIVE] = 1;
	if (fixture_run(FROM_UPLINK, UPLINK, UPLINK, &frame) != -1)
		row_fail("it is not left to the stack");
	row_end();
}

static void expect_forged(void)
{
	struct frame frame;

	row_forget_flows();
	row_build(&frame, &mapped4.out, FROM_CONTAINER, VETH_TWO);
	if (fixture_run(FROM_CONTAINER, VETH_TWO, VETH_TWO, &frame) != TC_ACT_SHOT)
		row_fail("it is not dropped");
}

static void other_container_row(void)
{
	struct frame frame;

	row_begin("nor a packet of another container with that address");
	begin(&mapped4, &frame, &frame);
	expect_forged();
	row_end();
}

static void not_to_gateway_row(void)
{
	struct packet out = mapped4.out;
	struct frame frame;

	row_begin("nor a frame that is not for the gateway");
	out.to_mac = MAC_CONTAINER_TWO;
	begin(&mapped4, &frame, &frame);
	if (skips(FROM_CONTAINER, &out, &frame))
		row_fail("it skips the stack");
	row_end();
}

/* The socket has the external port of a masqueraded flow to the same server. */
static void displaced_row(void)
{
	const struct packet hosts = UDP(v4_host, 25000, v4_server, 53);
	struct frame frame;

	row_begin("a later socket of the host takes nothing from it");
	begin(&masqueraded4, &frame, &frame);
	row_send_of_host(TO_UPLINK, UPLINK, &hosts);
	if (!skips(FROM_UPLINK, &masqueraded4.in, &frame))
		row_fail("the container does not get them");
	row_end();
}

/* Whether a packet of the flow is translated although it has no record, and begins none. */
static bool translated_without_record(const struct flow_packets *flow, enum way way,
				      enum device uplink, struct frame *frame)
{
	enum hook hook = way == INWARDS ? FROM_UPLINK : TO_UPLINK;
	struct counters before, after;

	row_forget_flows();
	row_build(frame, way == INWARDS ? &flow->in : &flow->out, hook, uplink);
	fixture_read_counters(&before);
	fixture_run(hook, uplink, way == INWARDS ? uplink : BRIDGE, frame);
	fixture_read_counters(&after);
	return after.rewritten_destination + after.rewritten_source !=
		       before.rewritten_destination + before.rewritten_source &&
	       after.flow_mapping + after.flow_masquerade ==
		       before.flow_mapping + before.flow_masquerade;
}

/* A flow that nobody answers has a memo from the second after it has begun. */
static void unanswered_row(const char *says, const struct flow_packets *flow)
{
	bool at_first = false, later = false;
	struct frame frame, before;
	uint32_t second;

	row_begin(says);
	for (int i = 0; i < ROW_TRIES; i++) {
		fixture_reset();
		second = fixture_second();
		row_send(FROM_UPLINK, UPLINK, &flow->in);
		row_send(FROM_UPLINK, UPLINK, &flow->in);
		at_first = translated_without_record(flow, INWARDS, UPLINK, &frame);
		if (fixture_second() != second)
			continue;
		fixture_wait_for_next_second();
		second = fixture_second();
		row_build(&before, &flow->in, FROM_UPLINK, UPLINK);
		fixture_run(FROM_UPLINK, UPLINK, UPLINK, &before);
		later = translated_without_record(flow, INWARDS, UPLINK, &frame);
		if (fixture_second() == second)
			break;
	}
	if (at_first)
		row_fail("in its first second it has a memo already");
	if (!later)
		row_fail("in its second one it has none");
	if (later && !frame_equal(&frame, &before))
		row_fail("the packet differs from the one before it");
	row_end();
}

/* Makes an assured flow that has gone through the stack in both directions. */
static void begin_in_stack(const struct flow_packets *flow, enum fast_path mode)
{
	fixture_reset();
	fixture_offload_one(mode);
	exchange(flow);
	fixture_age_flows(2);
	for (int turn = 0; turn < 2; turn++)
		exchange(flow);
	row_send(FROM_UPLINK, UPLINK, &flow->in);
	row_send(TO_UPLINK, UPLINK, &flow->out);
}

/* An assured flow has one in the stack if it stays there. */
static void stack_row(const char *says, const struct flow_packets *flow, enum fast_path mode,
		      void (*change)(void), bool expected)
{
	bool in = false, out = false;
	struct frame frame;
	uint32_t second;

	row_begin(says);
	for (int i = 0; i < ROW_TRIES; i++) {
		second = fixture_second();
		begin_in_stack(flow, mode);
		row_forget_flows();
		if (change)
			change();
		in = translated_without_record(flow, INWARDS, UPLINK, &frame);
		out = translated_without_record(flow, OUTWARDS, UPLINK, &frame);
		if (fixture_second() == second)
			break;
	}
	if (in != expected)
		row_fail("inwards it is%s translated without the record", in ? "" : " not");
	if (out != expected)
		row_fail("outwards it is%s translated without the record", out ? "" : " not");
	row_end();
}

/* Another connection may take the port of one that nobody answers. */
static void unanswered_out_row(void)
{
	struct frame frame;
	bool without = false;
	uint32_t second;

	row_begin("masqueraded UDP that nobody answers has none");
	for (int i = 0; i < ROW_TRIES; i++) {
		fixture_reset();
		fixture_offload_one(FAST_PATH_OFF);
		row_send(TO_UPLINK, UPLINK, &masqueraded4.out);
		fixture_wait_for_next_second();
		second = fixture_second();
		row_send(TO_UPLINK, UPLINK, &masqueraded4.out);
		without = translated_without_record(&masqueraded4, OUTWARDS, UPLINK, &frame);
		if (fixture_second() == second)
			break;
	}
	if (without)
		row_fail("it is translated without the record");
	row_end();
}

/* The host takes part in a connection that it sends packets of, and its record is to say so. */
static void hosts_own_row(void)
{
	struct counters before, after;

	row_begin("nor has a packet that the host makes in the container's name");
	begin_in_stack(&masqueraded4, FAST_PATH_OFF);
	row_forget_flows();
	fixture_read_counters(&before);
	row_send_of_host(TO_UPLINK, UPLINK, &masqueraded4.out);
	fixture_read_counters(&after);
	if (after.flow_masquerade == before.flow_masquerade)
		row_fail("it begins no flow");
	row_end();
}

static void other_uplink_row(void)
{
	struct frame frame;

	row_begin("nor has a packet at another uplink");
	for (enum way way = OUTWARDS; way <= INWARDS; way++) {
		begin_in_stack(&masqueraded4, FAST_PATH_OFF);
		if (translated_without_record(&masqueraded4, way, SECOND_UPLINK, &frame))
			row_fail("it is translated without the record");
	}
	row_end();
}

/* At the veth the memo of to_uplink says nothing about the sender. */
static void other_container_in_stack_row(void)
{
	row_begin("nor a packet of another container with that address");
	begin_in_stack(&mapped4, FAST_PATH_OFF);
	expect_forged();
	row_end();
}

/* A reply that is too large for the uplink of its new source leaves through another. */
static void large_reply_row(void)
{
	const struct packet in = UDP(v4_client, 5000, v4_second_uplink, 8080);
	struct packet out = UDP(v4_container_one, 80, v4_client, 5000);
	uint32_t second;
	int verdict = 0;

	row_begin("nor has a reply that is sent elsewhere after one that is too large for that");
	host_configure("link set uplink0 mtu 1280\n");
	for (int i = 0; i < ROW_TRIES; i++) {
		fixture_wait_for_next_second(); /* so that there are no treatments yet */
		second = fixture_second();
		fixture_reset();
		fixture_offload_one(FAST_PATH_OFF);
		for (int turn = 0; turn < 3; turn++) {
			row_send(FROM_UPLINK, SECOND_UPLINK, &in);
			row_send(TO_UPLINK, UPLINK, &out);
		}
		out.payload = 1253;
		row_expect_passed(row_send(TO_UPLINK, SECOND_UPLINK, &out), "the large one");
		out.payload = 0;
		verdict = row_send(TO_UPLINK, SECOND_UPLINK, &out);
		if (fixture_second() == second)
			break;
	}
	row_expect_verdict(verdict, TC_ACT_REDIRECT, "the small one");
	host_configure("link set uplink0 mtu 1500\n");
	row_end();
}

/* Each CPU has its own memos. */
static void stay_on_one_cpu(cpu_set_t *before)
{
	cpu_set_t here;

	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	if (sched_getaffinity(0, sizeof(*before), before) ||
	    sched_setaffinity(0, sizeof(here), &here))
		err(1, "staying on one CPU");
}

void memo_rows(void)
{
	cpu_set_t before;

	stay_on_one_cpu(&before);
	memo_row("mapped UDP skips the stack by its memo", &mapped4, NULL, true);
	memo_row("the same over IPv6", &mapped6, NULL, true);
	memo_row("masqueraded UDP", &masqueraded4, NULL, true);
	memo_row("masqueraded UDP over IPv6", &masqueraded6, NULL, true);
	memo_row("a memo is not valid in the next second", &mapped4, fixture_wait_for_next_second,
		 false);
	memo_row("nor after its container is deleted", &mapped4, kill_one, false);
	memo_row("nor for the next container in the slot", &mapped4, renew_one, false);
	memo_row("nor after fastPath is turned off", &mapped4, no_fast_path_any_more, false);
	memo_row("nor after drop-offload", &mapped4, fixture_drop_offload, false);
	packet_rows();
	last_hop_row();
	other_container_row();
	not_to_gateway_row();
	displaced_row();
	unanswered_row("mapped UDP that nobody answers has a memo from its second second on",
		       &mapped4);
	unanswered_row("the same over IPv6", &mapped6);
	stack_row("without fast path assured UDP has a memo", &mapped4, FAST_PATH_OFF, NULL, true);
	stack_row("the same over IPv6", &mapped6, FAST_PATH_OFF, NULL, true);
	stack_row("masqueraded UDP", &masqueraded4, FAST_PATH_OFF, NULL, true);
	stack_row("masqueraded UDP over IPv6", &masqueraded6, FAST_PATH_OFF, NULL, true);
	stack_row("none if it may get a path", &mapped4, FAST_PATH_ESTABLISHED, NULL, false);
	stack_row("it is not valid after its container is deleted", &mapped4, FAST_PATH_OFF,
		  kill_one, false);
	stack_row("nor for the next container in the slot", &mapped4, FAST_PATH_OFF, renew_one,
		  false);
	stack_row("nor after drop-offload", &mapped4, FAST_PATH_OFF, fixture_drop_offload, false);
	unanswered_out_row();
	hosts_own_row();
	other_uplink_row();
	other_container_in_stack_row();
	large_reply_row();
	renewal_rows();
	sched_setaffinity(0, sizeof(before), &before);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * renewal_rows.c - how the paths of UDP flows are renewed once a second (renewal.h), and when each
 * flow's turn in the IP stack comes.
 */
#include <linux/pkt_cls.h>
#include <string.h>

#include "row.h"

#define MAPPED_FLOW(client, port, ...) \
	(const struct entry) \
		MAPPED(ANSWERED, IPPROTO_UDP, client, port, v4_host, 8080, v4_container_one, 80, \
		       port, .owner = ONE, .with_data = true, .path = {PATH_OUT, PATH_CONTAINER}, \
		       .out = {UPLINK, VETH_ONE}, ##__VA_ARGS__)
#define MASQUERADED_FLOW(port, ...) \
	(const struct entry) MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, port, v4_server, \
					 53, v4_host, port, .owner = ONE, .with_data = true, \
					 .path = {PATH_OUT, PATH_CONTAINER}, \
					 .out = {UPLINK, VETH_ONE}, ##__VA_ARGS__)
#define LOOKED_UP_BEFORE .seen = {1, 1}, .looked_up = 2

/* What the second flow's packet from the container shows: whether routing was asked for it, too.
 * Then the kernel fills in the neighbour's MAC. */
static bool asks_again(const struct entry *one, const struct entry *other)
{
	static const uint8_t unknown[MAC_SIZE];
	const struct entry *flows[] = {one, other};
	struct frame frame;
	uint32_t second;

	for (int try = 0; try < ROW_TRIES; try++) {
		fixture_reset();
		fixture_offload_one(FAST_PATH_ESTABLISHED);
		second = fixture_second();
		for (int i = 0; i < 2; i++)
			fixture_put(flows[i]);
		for (int i = 0; i < 2; i++) {
			struct packet packet = UDP(v4_container_one, flows[i]->inside_port,
						   flows[i]->outside, flows[i]->outside_port);

			row_build(&frame, &packet, FROM_CONTAINER, VETH_ONE);
			row_expect_verdict(fixture_run(FROM_CONTAINER, VETH_ONE, VETH_ONE, &frame),
					   TC_ACT_REDIRECT, "a packet of a flow with a path");
			if (i == 0 && memcmp(frame.bytes, unknown, MAC_SIZE) != 0)
				row_fail("the first flow's path was not renewed");
		}
		if (fixture_second() == second)
			break;
	}
	return memcmp(frame.bytes, unknown, MAC_SIZE) == 0;
}

static void share_row(const char *says, const struct entry *one, const struct entry *other,
		      bool asks)
{
	row_begin(says);
	if (asks_again(one, other) != asks)
		row_fail("routing was %s for the second flow", asks ? "not asked" : "asked");
	row_end();
}

static void arrive_from(const char *client, struct frame *frame)
{
	const struct packet packet = UDP(client, 7000, v4_host, 8080);

	row_build(frame, &packet, FROM_UPLINK, UPLINK);
	row_expect_verdict(fixture_run(FROM_UPLINK, UPLINK, UPLINK, frame), TC_ACT_REDIRECT,
			   "a packet of a flow with a path");
}

/* Returns that second. */
static uint32_t begin_in_new_second(void)
{
	fixture_reset();
	fixture_offload_one(FAST_PATH_ESTABLISHED);
	fixture_wait_for_next_second();
	return fixture_second();
}

/* Between two clients' packets the container gets another MAC, which shows if routing is asked. */
static void inward_row(const char *says, bool asks)
{
	static const uint8_t another[MAC_SIZE] = {2, 0, 0, 0, 1, 0x77};
	struct frame frame;
	uint32_t second;

	row_begin(says);
	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		fixture_put(&MAPPED_FLOW(v4_client, 7000, LOOKED_UP_BEFORE));
		fixture_put(&MAPPED_FLOW(v4_client_other, 7000, LOOKED_UP_BEFORE));
		arrive_from(v4_client, &frame);
		host_configure("neigh replace 10.10.0.2 lladdr 02:00:00:00:01:77 dev bridge0\n");
		arrive_from(v4_client_other, &frame);
		host_configure("neigh replace 10.10.0.2 lladdr 02:00:00:00:01:13 dev bridge0\n");
		if (fixture_second() == second)
			break;
	}
	if ((memcmp(frame.bytes, another, MAC_SIZE) == 0) != asks)
		row_fail("routing was %s for the second flow", asks ? "not asked" : "asked");
	row_end();
}

/* As many flows as have each phase four times: ids follow each other, and four have one phase. */
#define PHASES 6
#define OF_EACH_PHASE 4

/* Each has its own port, so that none has another's memo. */
static void send_of_each_phase(uint32_t seen)
{
	struct frame frame;

	fixture_clear_flows();
	for (int port = 7000; port < 7000 + PHASES * OF_EACH_PHASE; port++) {
		struct packet packet = UDP(v4_client, port, v4_host, 8080);

		fixture_put(&MAPPED_FLOW(v4_client, port, .seen = {seen, seen}, .looked_up = 2));
		row_build(&frame, &packet, FROM_UPLINK, UPLINK);
		fixture_run(FROM_UPLINK, UPLINK, UPLINK, &frame);
	}
}

static void turn_row(const char *says, uint32_t seen, int phases)
{
	struct counters before, after;
	uint32_t second;

	row_begin(says);
	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		fixture_read_counters(&before);
		send_of_each_phase(seen);
		fixture_read_counters(&after);
		if (fixture_second() == second)
			break;
	}
	row_expect_number((long)(after.fast_into_container - before.fast_into_container),
			  (PHASES - phases) * OF_EACH_PHASE, "packets that skipped the stack");
	row_end();
}

/* As the container or the client sends it, before it is translated */
static struct packet packet_of(const struct entry *flow, bool out)
{
	return out ? (struct packet)UDP(flow->inside, flow->inside_port, flow->outside,
					flow->outside_port)
		   : (struct packet)UDP(flow->outside, flow->outside_port, flow->external,
					flow->external_port);
}

/* Sends a packet of a flow that has a path, which another program run may have renewed in this
 * second. Returns whether it skips the stack. */
static bool skips(const struct entry *flow, bool out)
{
	const struct packet packet = packet_of(flow, out);
	enum hook hook = out ? FROM_CONTAINER : FROM_UPLINK;
	enum device device = out ? VETH_ONE : UPLINK;
	struct counters before, after;
	struct frame frame;

	row_build(&frame, &packet, hook, device);
	fixture_read_counters(&before);
	fixture_run(hook, device, device, &frame);
	fixture_read_counters(&after);
	return after.fast_into_container + after.fast_out !=
	       before.fast_into_container + before.fast_out;
}

/* Whether the last of so many packets of a flow that was in the stack last before `seen` seconds
 * skips it, where no rule has changed for so many. */
static bool skips_when_rules_stand(const struct entry *flow, uint32_t rules_stand, int packets)
{
	const struct entry *other = &MAPPED_FLOW(v4_client, 6999, LOOKED_UP_BEFORE);
	bool skipped = false;
	uint32_t second;

	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		fixture_put(other);
		skips(other, false); /* a program looks at the rules */
		fixture_rules_stand(rules_stand);
		fixture_put(flow);
		for (int i = 0; i < packets; i++)
			skipped = skips(flow, false);
		if (fixture_second() == second)
			break;
	}
	return skipped;
}

static void settled_row(const char *says, const struct entry *flow, uint32_t rules_stand,
			int packets, bool expected)
{
	row_begin(says);
	if (skips_when_rules_stand(flow, rules_stand, packets) != expected)
		row_fail("it %s the stack", expected ? "does not skip" : "skips");
	row_end();
}

#define SETTLED_FLOW(ago) \
	MAPPED_FLOW(v4_client, 7000, .settled = true, .seen = {(ago) + 1, (ago) + 1}, \
		    .looked_up = 2)
#define MOST_COUNTED 255 /* by a memo */

static void settled_rows(void)
{
	const struct entry flow = SETTLED_FLOW(11), older = SETTLED_FLOW(24),
			   recent = SETTLED_FLOW(7);
	struct entry unsettled = SETTLED_FLOW(11);

	if (!fixture_rules_stand(60))
		return; /* this kernel does not tell */
	unsettled.settled = false;
	settled_row("a settled UDP flow skips the stack eleven seconds after it was there", &flow,
		    60, 1, true);
	settled_row("one that is not settled does not", &unsettled, 60, 1, false);
	settled_row("nor one since whose turn a rule has changed", &flow, 11, 1, false);
	settled_row("nor one whose turn was 24 seconds ago", &older, 60, 1, false);
	settled_row("one that carries little does when its last turn was seven seconds ago",
		    &recent, 60, MOST_COUNTED, true);
	settled_row("but not one that carries much", &recent, 60, MOST_COUNTED + 2, false);
	if (!host_set_conntrack_stream("40"))
		return;
	settled_row("nor one that conntrack will forget by then, since its time was lowered", &flow,
		    60, 1, false);
	host_set_conntrack_stream("120");
}

/* A command of `ip` between two packets, and the one that takes it back */
struct change {
	const char *done, *undone;
};

/* Whether a memo of one second skips the stack in the next one without its record, after `change`
 * on the host, when a packet of `confirming` (NULL: none) has been sent there. */
static bool lasts(const struct entry *flow, bool out, const struct change *change,
		  const struct entry *confirming)
{
	bool lasted = false;
	uint32_t second;

	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		fixture_put(flow);
		if (!skips(flow, out))
			row_fail("the flow has no path");
		if (change)
			host_configure(change->done);
		fixture_wait_for_next_second();
		fixture_clear_flows();
		if (confirming) {
			fixture_put(confirming);
			skips(confirming, out);
		}
		row_forget_flows();
		lasted = skips(flow, out);
		if (change)
			host_configure(change->undone);
		if (fixture_second() == second + 1)
			break;
	}
	return lasted;
}

static void lasting_row(const char *says, const struct entry *confirming, bool out,
			const struct change *change, bool expected)
{
	struct entry flow = MASQUERADED_FLOW(25000, LOOKED_UP_BEFORE);

	row_begin(says);
	if (lasts(&flow, out, change, confirming) != expected)
		row_fail("the memo is %s", expected ? "not used" : "used");
	row_end();
}

/* Sends a packet behind the stack, as it left the hook before. */
static void pass_stack(const struct entry *flow, bool out)
{
	struct packet packet = out ? (struct packet)UDP(flow->inside, flow->inside_port,
							flow->outside, flow->outside_port)
				   : (struct packet)UDP(flow->outside, flow->outside_port,
							flow->inside, flow->inside_port);

	fixture_set_mark(out ? MARK_USUAL : MARK_CONFIRM);
	row_send(out ? TO_UPLINK : TO_CONTAINER, out ? UPLINK : BRIDGE, &packet);
	fixture_set_mark(MARK_USUAL);
}

/* Of flows with memos, as many with each phase: how many go on with them when those whose turn
 * comes have been to the stack, which lets their packets through or not. */
static int with_memos_after_turn(bool out, bool lets_through)
{
	const int first = 7000, end = first + PHASES * OF_EACH_PHASE;
	int skipped = 0;
	uint32_t second;

	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		for (int port = first; port < end; port++) {
			fixture_clear_flows();
			fixture_put(&MAPPED_FLOW(v4_client, port, .seen = {4, 4}, .looked_up = 2));
			skips(&MAPPED_FLOW(v4_client, port), out);
		}
		fixture_wait_for_next_second();
		fixture_put(&MAPPED_FLOW(v4_client, first - 1, LOOKED_UP_BEFORE));
		skips(&MAPPED_FLOW(v4_client, first - 1), out);
		for (int port = first; port < end; port++) {
			fixture_clear_flows();
			fixture_put(&MAPPED_FLOW(v4_client, port, .seen = {7, 7}, .looked_up = 2));
			if (!skips(&MAPPED_FLOW(v4_client, port), out) && lets_through)
				pass_stack(&MAPPED_FLOW(v4_client, port), out);
		}
		fixture_clear_flows();
		skipped = 0;
		for (int port = first; port < end; port++)
			skipped += skips(&MAPPED_FLOW(v4_client, port), out);
		if (fixture_second() == second + 1)
			break;
	}
	return skipped;
}

static void turn_memo_row(const char *says, bool out, bool lets_through)
{
	/* One had its turn in the second before, two have it in this one. */
	int phases = lets_through ? PHASES - 1 : PHASES - 3;

	row_begin(says);
	row_expect_number(with_memos_after_turn(out, lets_through), phases * OF_EACH_PHASE,
			  "packets by their memos");
	row_end();
}

/* Flows of a container without a fast path, and what happens to their memos */
struct stack_case {
	struct entry flow; /* without ports */
	bool out;
	bool sent;      /* by the container: where it leaves is asked at the veth */
	bool confirmed; /* by another flow's packet in the next second */
	const struct change *change;
	bool refused; /* the uplink is no longer one of the container's network */
	bool at_once; /* the change comes after routing was asked, but before there are memos */
};

#define FIRST_IN_STACK 7000
#define END_IN_STACK (FIRST_IN_STACK + PHASES * OF_EACH_PHASE)

static struct entry with_port(const struct stack_case *of, int port)
{
	struct entry flow = of->flow;

	if (flow.kind == FLOW_MASQUERADE)
		flow.inside_port = flow.external_port = port;
	else
		flow.outside_port = flow.peer_port = port;
	return flow;
}

/* Whether a packet is translated on its way into the stack (out: where it leaves that), and begins
 * no record. */
static bool is_translated(const struct packet *packet, bool out)
{
	struct counters before, after;

	fixture_read_counters(&before);
	row_send(out ? TO_UPLINK : FROM_UPLINK, UPLINK, packet);
	fixture_read_counters(&after);
	return after.rewritten_destination + after.rewritten_source !=
		       before.rewritten_destination + before.rewritten_source &&
	       after.flow_mapping + after.flow_masquerade ==
		       before.flow_mapping + before.flow_masquerade;
}

/* Sends a packet of a flow; one with IP options makes no memo. Returns whether it is translated. */
static bool goes_through_stack(const struct stack_case *of, int port, bool options)
{
	const struct entry flow = with_port(of, port);
	struct packet packet = packet_of(&flow, of->out);

	packet.ipv4_options = options ? 4 : 0;
	if (of->sent)
		row_send(FROM_CONTAINER, VETH_ONE, &packet);
	return is_translated(&packet, of->out);
}

static void expect_through_stack(const struct stack_case *of, bool options)
{
	for (int port = FIRST_IN_STACK; port < END_IN_STACK; port++)
		if (!goes_through_stack(of, port, options))
			row_fail("a flow with a record is not translated");
}

/* How many of the flows are translated without their records. */
static int translated_by_memos(const struct stack_case *of)
{
	int translated = 0;

	row_forget_flows();
	for (int port = FIRST_IN_STACK; port < END_IN_STACK; port++) {
		const struct entry flow = with_port(of, port);
		const struct packet packet = packet_of(&flow, of->out);

		translated += is_translated(&packet, of->out);
	}
	return translated;
}

/* Of flows that stay in the stack, as many with each phase: how many have a memo in the second
 * after they have got one. */
static int with_memos_in_stack(const struct stack_case *of)
{
	int translated = 0;
	uint32_t second;

	for (int try = 0; try < ROW_TRIES; try++) {
		second = begin_in_new_second();
		fixture_offload_one(FAST_PATH_OFF);
		for (int port = FIRST_IN_STACK - 1; port < END_IN_STACK; port++) {
			const struct entry flow = with_port(of, port);

			fixture_put(&flow);
		}
		if (of->change && of->at_once) {
			expect_through_stack(of, true);
			host_configure(of->change->done);
		}
		expect_through_stack(of, false);
		fixture_wait_for_next_second();
		if (of->confirmed)
			goes_through_stack(of, FIRST_IN_STACK - 1, false);
		if (of->change && !of->at_once)
			host_configure(of->change->done);
		if (of->refused)
			fixture_refuse_one(UPLINK);
		translated = translated_by_memos(of);
		if (of->change)
			host_configure(of->change->undone);
		if (fixture_second() == second + 1)
			break;
	}
	return translated;
}

static void stack_memo_row(const char *says, const struct stack_case *of, bool expected)
{
	row_begin(says);
	row_expect_number(with_memos_in_stack(of), expected ? (PHASES - 1) * OF_EACH_PHASE : 0,
			  "packets by their memos");
	row_end();
}

/* Their address, or where they leave, may be another one when the host's routes have changed. */
static void stack_memo_rows(bool alone)
{
	static const struct change elsewhere = {"route add 203.0.113.200/32 dev vpn0\n",
						"route del 203.0.113.200/32 dev vpn0\n"};
	const struct entry mapped =
		MAPPED(ANSWERED, IPPROTO_UDP, v4_client, 0, v4_host, 8080, v4_container_one, 80, 0,
		       .owner = ONE, .with_data = true);
	const struct entry masqueraded =
		MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 0, v4_server, 53, v4_host, 0,
			    .owner = ONE, .with_data = true);

	stack_memo_row("a memo of inward packets in the stack lasts, but for one phase in six, too",
		       &(struct stack_case){.flow = mapped, .confirmed = true}, true);
	stack_memo_row("not if no other packet confirms it", &(struct stack_case){.flow = mapped},
		       false);
	stack_memo_row(
		"though the host's routes change",
		&(struct stack_case){.flow = mapped, .confirmed = true, .change = &elsewhere},
		true);
	for (int masquerades = 0; masquerades < 2; masquerades++) {
		struct stack_case of = {
			.flow = masquerades ? masqueraded : mapped, .out = true, .confirmed = true};

		stack_memo_row(masquerades ? "nor does one of masqueraded packets whose way was"
					     " not asked"
					   : "one of replies whose way was not asked does not",
			       &of, false);
		of.sent = true;
		stack_memo_row("where it was asked it does", &of, !alone);
		of.confirmed = false;
		stack_memo_row("not if no other packet confirms it", &of, false);
		of.confirmed = of.refused = true;
		stack_memo_row("nor if the network does not have the uplink any more", &of, false);
		of.refused = false;
		of.change = &elsewhere;
		stack_memo_row("nor once the host's routes have changed", &of, false);
		of.at_once = true;
		stack_memo_row("nor if they have since it was asked", &of, false);
	}
}

static void lasting_rows(void)
{
	static const char add[] = "route add " v4_server "/32 via 192.0.2.254 dev uplink0\n";
	static const char del[] = "route del " v4_server "/32 via 192.0.2.254 dev uplink0\n";
	static const struct change added = {add, del}, deleted = {del, add};
	const struct entry *none = NULL, *other = &MASQUERADED_FLOW(25001, LOOKED_UP_BEFORE);

	lasting_row("a memo lasts for another second if a packet of another flow confirms it",
		    other, true, NULL, true);
	lasting_row("inwards, too", other, false, NULL, true);
	lasting_row("not if none does", none, true, NULL, false);
	lasting_row("nor inwards", none, false, NULL, false);
	turn_memo_row("and until its flow's turn in the stack comes", false, false);
	turn_memo_row("outwards, too", true, false);
	turn_memo_row("and after that, where the stack lets the packet through", false, true);
	turn_memo_row("outwards, too", true, true);
	lasting_row("not after a route has been added, which its own packet might take", other,
		    true, &added, false);
	lasting_row("inwards that does not matter", other, false, &added, true);
	host_configure(add);
	lasting_row("nor after it has been deleted", other, true, &deleted, false);
	host_configure(del);
}

/* Whether a packet that the veth's container sends is dropped, because it would leave where nothing
 * translates it. */
static bool is_unclassified(const struct entry *flow)
{
	const struct packet packet = packet_of(flow, true);
	struct counters before, after;

	fixture_read_counters(&before);
	row_send(FROM_CONTAINER, VETH_ONE, &packet);
	fixture_read_counters(&after);
	return after.drop_unclassified_interface != before.drop_unclassified_interface;
}

/* Begins with a connection that has asked whether it leaves unclassified. */
static void ways_begin(const char *says, const struct entry *flow)
{
	row_begin(says);
	fixture_reset();
	fixture_offload_one(FAST_PATH_OFF);
	fixture_put(flow);
	if (is_unclassified(flow))
		row_fail("its packet is dropped at first");
}

static void ways_end(const struct entry *flow, bool expected)
{
	if (is_unclassified(flow) != expected)
		row_fail("its next packet is%s dropped", expected ? " not" : "");
	fixture_reset();
	row_end();
}

static void ways_rows(const char *says, const struct entry *flow, const struct change *elsewhere,
		      bool alone)
{
	ways_begin(says, flow);
	fixture_delete_interface(UPLINK);
	ways_end(flow, alone);
	ways_begin("but when an interface was forgotten", flow);
	fixture_delete_interface(UPLINK);
	fixture_tell_of_deletion();
	ways_end(flow, true);
	ways_begin("and when the host's routes have changed", flow);
	host_configure(elsewhere->done);
	ways_end(flow, true);
	host_configure(elsewhere->undone);
}

void renewal_rows(void)
{
	/* Where the kernel does not say by what it routes, each flow asks for itself. */
	bool alone = !fixture_sees_devices();

	share_row("what routing answers for one flow holds for another in that second",
		  &MAPPED_FLOW(v4_client, 7000, LOOKED_UP_BEFORE),
		  &MAPPED_FLOW(v4_client, 7001, LOOKED_UP_BEFORE), alone);
	share_row("the same of masqueraded ones", &MASQUERADED_FLOW(25000, LOOKED_UP_BEFORE),
		  &MASQUERADED_FLOW(25001, LOOKED_UP_BEFORE), alone);
	share_row("not for one to another address", &MAPPED_FLOW(v4_client, 7000, LOOKED_UP_BEFORE),
		  &MASQUERADED_FLOW(25001, LOOKED_UP_BEFORE), true);
	if (!alone)
		lasting_rows();
	ways_rows("whether a connection leaves unclassified is asked once",
		  &MASQUERADED_FLOW(25000),
		  &(const struct change){"route add " v4_server "/32 dev vpn0\n",
					 "route del " v4_server "/32 dev vpn0\n"},
		  alone);
	ways_rows("over IPv6, too",
		  &(const struct entry)MASQUERADED(ANSWERED, IPPROTO_UDP, v6_container_one, 25000,
						   v6_server, 53, v6_host, 25000, .owner = ONE,
						   .with_data = true),
		  &(const struct change){"route add " v6_server "/128 dev vpn0\n",
					 "route del " v6_server "/128 dev vpn0\n"},
		  alone);
	inward_row("inwards it holds for other clients", alone);
	host_configure("rule add from 203.0.113.200 lookup main\n");
	inward_row("not while there is a rule, which may look at the client", true);
	host_configure("rule del from 203.0.113.200 lookup main\n"
		       "rule add ipproto udp dport 9 lookup main\n");
	share_row("nor while a rule looks at ports",
		  &MAPPED_FLOW(v4_client, 7000, LOOKED_UP_BEFORE),
		  &MAPPED_FLOW(v4_client, 7001, LOOKED_UP_BEFORE), true);
	host_configure("rule del ipproto udp dport 9 lookup main\n");
	stack_memo_rows(alone);
	settled_rows();
	turn_row("no UDP flow goes to the stack again two seconds after it was there", 3, 0);
	turn_row("a second later one in six does", 4, PHASES / 6);
	turn_row("another one later half of them", 5, PHASES / 2);
	turn_row("and six seconds after they were there all", 7, PHASES);
}

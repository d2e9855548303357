/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * memo_tcp_rows.c - TCP connections past the stack whose packets use memos (memo.h): which do, and
 * that what closes a connection is judged by the numbers of all its packets.
 *
 * A packet that uses a memo is counted there, and not in the record.
 */
#define _GNU_SOURCE
#include <err.h>
#include <sched.h>

#include "../../include/lifetime.h"
#include "row.h"

#define CLIENT_FIRST 0xffffff00u /* wraps */
#define SERVER_FIRST 70000u

/* A packet of the connection at hand. sent, acknowledged: counted from the initial numbers */
struct segment {
	enum way way;
	unsigned int flags;
	uint32_t sent, acknowledged;
	unsigned int payload;
};

static unsigned int segment_size; /* of GSO; 0: none */
static const char *client, *host, *container;

static bool skips(const struct segment *segment)
{
	bool in = segment->way == INWARDS;
	const struct packet packet = {
		.protocol = IPPROTO_TCP,
		.from = in ? client : container,
		.from_port = in ? 40000 : 80,
		.to = in ? host : client,
		.to_port = in ? 8080 : 40000,
		.tcp_flags = segment->flags,
		.sequence = (in ? CLIENT_FIRST : SERVER_FIRST) + segment->sent,
		.acknowledgment = (in ? SERVER_FIRST : CLIENT_FIRST) + segment->acknowledged,
		.payload = segment->payload,
		.empty = !segment->payload,
		.segment_size = segment_size,
	};
	enum device device = in ? UPLINK : VETH_ONE;
	struct counters before, after;
	struct frame frame;

	row_build(&frame, &packet, in ? FROM_UPLINK : FROM_CONTAINER, device);
	fixture_read_counters(&before);
	fixture_run(in ? FROM_UPLINK : FROM_CONTAINER, device, device, &frame);
	fixture_read_counters(&after);
	return after.fast_into_container + after.fast_out !=
	       before.fast_into_container + before.fast_out;
}

static void in(unsigned int flags, uint32_t sent, uint32_t acknowledged, unsigned int payload)
{
	skips(&(struct segment){INWARDS, flags, sent, acknowledged, payload});
}

static void out(unsigned int flags, uint32_t sent, uint32_t acknowledged, unsigned int payload)
{
	skips(&(struct segment){OUTWARDS, flags, sent, acknowledged, payload});
}

/* A connection that skips the stack in both directions. Only one with data has memos. */
static void begin_with(unsigned int payload)
{
	segment_size = 0;
	fixture_reset();
	fixture_offload_one(FAST_PATH_ESTABLISHED);
	for (int i = 0; i < 3; i++) {
		row_send(FROM_UPLINK, UPLINK,
			 &(const struct packet)TCP(client, 40000, host, 8080, ACK,
						   .sequence = CLIENT_FIRST,
						   .acknowledgment = SERVER_FIRST, .empty = true));
		row_send(TO_UPLINK, UPLINK,
			 &(const struct packet)TCP(container, 80, client, 40000, ACK,
						   .sequence = SERVER_FIRST,
						   .acknowledgment = CLIENT_FIRST, .empty = true));
	}
	fixture_let_leave_stack();
	for (int i = 0; i < 3; i++) {
		in(ACK, 0, 0, payload);
		out(ACK, 0, 0, payload);
	}
}

static void begin(void)
{
	begin_with(1);
}

static void begin_without_data(void)
{
	begin_with(0);
}

/* The record, or one of zeros */
static struct connection record(void)
{
	static struct stored_entries stored;

	fixture_read_flows(&stored);
	return stored.count == 1 ? stored.entries[0].connection : (struct connection){0};
}

/* Returns whether the segment skips the stack by a memo. */
static bool uses_memo(const struct segment *segment)
{
	uint32_t before = record().packets[segment->way];

	return skips(segment) && record().packets[segment->way] == before;
}

static bool memos_were_used;

/* Data of the client that memos alone see, as a memo is for more packets, and its acknowledgments
 */
#define TRANSFERRED 280000

static void transfer(void)
{
	struct connection before = record(), after;

	for (uint32_t sent = 0; sent < TRANSFERRED; sent += 1400) {
		in(ACK, sent, 0, 1400);
		out(ACK, 0, sent + 1400, 0);
	}
	after = record();
	memos_were_used = after.packets[INWARDS] == before.packets[INWARDS] &&
			  after.packets[OUTWARDS] == before.packets[OUTWARDS];
}

/* The client acknowledges half of it. */
static void answer(void)
{
	out(ACK, 1, 1, 1000);
	out(ACK, 1001, 1, 1000);
	memos_were_used = uses_memo(&(struct segment){INWARDS, ACK, 1, 1001, 0});
}

struct memo_case {
	const char *says;
	void (*given)(void);
	struct segment then;
	uint32_t expected; /* of these bits of the record's state */
};

#define CLOSING (STATE_FIN_OUTSIDE | STATE_FIN_INSIDE | STATE_AWAITED)

static void run_case(const struct memo_case *row)
{
	uint32_t second, state;

	row_begin(row->says);
	for (int i = 0; i < ROW_TRIES; i++) {
		second = fixture_second();
		begin();
		memos_were_used = false;
		row->given();
		skips(&row->then);
		if (fixture_second() == second)
			break;
	}
	if (!memos_were_used)
		row_fail("no memo was used");
	state = record().state;
	if (!(state & STATE_ASSURED))
		row_fail("it is not assured");
	if ((state & CLOSING) != row->expected)
		row_fail("its state is %#x, expected of that %#x", state, row->expected);
	records_check();
	row_end();
}

/* given: what comes before */
static void run_use(const char *says, void (*given)(void), const struct segment *segment,
		    bool expected)
{
	uint32_t second;
	bool got = false;

	row_begin(says);
	for (int i = 0; i < ROW_TRIES; i++) {
		second = fixture_second();
		begin();
		if (given)
			given();
		got = uses_memo(segment);
		if (fixture_second() == second)
			break;
	}
	if (got != expected)
		row_fail("it %s a memo", got ? "uses" : "does not use");
	row_end();
}

/* Goes to another processor, where there is one, or back. */
static void move(void)
{
	static cpu_set_t all;
	static int home = -1;
	cpu_set_t to;

	if (home < 0) {
		home = sched_getcpu();
		if (sched_getaffinity(0, sizeof(all), &all))
			err(1, "sched_getaffinity");
	}
	CPU_ZERO(&to);
	CPU_SET(home, &to);
	if (sched_getcpu() == home) {
		to = all;
		if (CPU_COUNT(&all) > 1)
			CPU_CLR(home, &to);
	}
	if (sched_setaffinity(0, sizeof(to), &to))
		err(1, "sched_setaffinity");
}

/* Its packets come to another processor for a while. */
static void wander(void)
{
	in(ACK, 0, 0, 1000);
	move();
	in(ACK, 1000, 0, 1000);
	memos_were_used = uses_memo(&(struct segment){INWARDS, ACK, 2000, 0, 1000});
	move();
}

/* An RST that its receiver has ignored, or answered (RFC 5961 3.2); the client goes on. */
static void be_reset(void)
{
	memos_were_used = uses_memo(&(struct segment){INWARDS, ACK, 1, 1, 0});
	in(RST, 1, 0, 0);
	in(ACK, 1, 1, 100);
}

static void half_close(void)
{
	in(FIN | ACK, 1, 1, 0);
}

/* The client has closed, and begins anew with the same port. */
static void connect_again(void)
{
	in(RST, 1, 0, 0);
	in(SYN, 5000, 0, 0);
	row_send(TO_UPLINK, UPLINK,
		 &(const struct packet)TCP(container, 80, client, 40000, SYN | ACK,
					   .sequence = SERVER_FIRST + 1000,
					   .acknowledgment = CLIENT_FIRST + 5001, .empty = true));
}

static void change_id(struct assured *place)
{
	place->id++;
}

static void change_peer(struct assured *place)
{
	place->key.outside[15]++;
}

static void give_place_to_another_one(void)
{
	fixture_change_places(change_id);
}

static void give_place_to_another_peer(void)
{
	fixture_change_places(change_peer);
}

static const struct memo_case cases[] = {
	{"an RST with the number after what only memos have counted closes",
	 transfer,
	 {INWARDS, RST, TRANSFERRED, 0, 0},
	 STATE_AWAITED},
	{"so does one of the container with what only a memo has seen acknowledged",
	 answer,
	 {OUTWARDS, RST, 1001, 0, 0},
	 STATE_AWAITED},
	{"one with a number of before that does not", transfer, {INWARDS, RST, 0, 0, 0}, 0},
	{"a FIN behind data after what only memos have counted half-closes",
	 transfer,
	 {INWARDS, FIN | ACK, TRANSFERRED, 0, 10},
	 STATE_FIN_OUTSIDE},
	{"so does the container's, which acknowledges it",
	 transfer,
	 {OUTWARDS, FIN | ACK, 0, TRANSFERRED, 0},
	 STATE_FIN_INSIDE},
	{"one far behind the last number does not", transfer, {INWARDS, FIN | ACK, 0, 0, 0}, 0},
	{"the number that another processor's memo has seen is the last one",
	 wander,
	 {INWARDS, RST, 3000, 0, 0},
	 STATE_AWAITED},
	{"a connection of which both sides go on after an RST is open again",
	 be_reset,
	 {OUTWARDS, ACK, 1, 101, 100},
	 0},
};

static const struct {
	const char *says;
	struct segment segment;
	bool expected;
} uses[] = {
	{"data to the container uses a memo", {INWARDS, ACK, 0, 0, 500}, true},
	{"with PSH, too", {INWARDS, ACK | 0x08, 0, 0, 500}, true},
	{"so does the container's", {OUTWARDS, ACK, 0, 0, 500}, true},
	{"and an acknowledgment", {INWARDS, ACK, 1, 1, 0}, true},
	{"and what is retransmitted", {INWARDS, ACK, (uint32_t)-1000, 0, 500}, true},
	{"not what is far ahead", {INWARDS, ACK, 80000000, 0, 500}, false},
	{"nor far behind", {INWARDS, ACK, (uint32_t)-100000, 0, 500}, false},
	{"nor what acknowledges more than the container has sent",
	 {INWARDS, ACK, 0, 2, 500},
	 false},
	{"nor less than before", {INWARDS, ACK, 0, (uint32_t)-1, 500}, false},
	{"nor a SYN", {INWARDS, SYN, 0, 0, 0}, false},
	{"nor a SYN-ACK", {OUTWARDS, SYN | ACK, 0, 0, 0}, false},
	{"nor a FIN", {INWARDS, FIN | ACK, 0, 0, 0}, false},
	{"nor an RST", {INWARDS, RST, 0, 0, 0}, false},
	{"nor a segment without ACK", {INWARDS, 0, 0, 0, 100}, false},
};

static void send_by_gso(void)
{
	segment_size = 500;
}

/* Then the segment has no memo. */
static const struct {
	const char *says;
	void (*given)(void);
	struct segment segment;
} lost[] = {
	{"nor where another connection has the memo's place",
	 give_place_to_another_one,
	 {INWARDS, ACK, 0, 0, 500}},
	{"nor where another peer has it", give_place_to_another_peer, {INWARDS, ACK, 0, 0, 500}},
	{"nor in a connection without data", begin_without_data, {INWARDS, ACK, 0, 0, 500}},
	{"nor what GSO is to segment", send_by_gso, {INWARDS, ACK, 0, 0, 1000}},
	{"nor what the container sends after the client's FIN",
	 half_close,
	 {OUTWARDS, ACK, 1, 2, 500}},
	{"nor the acknowledgment of a SYN-ACK that answers the next connection of the client's "
	 "port",
	 connect_again,
	 {INWARDS, ACK, 5001, 1001, 0}},
};

static void run_all(void)
{
	for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++)
		run_use(uses[i].says, NULL, &uses[i].segment, uses[i].expected);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		run_case(&cases[i]);
	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		run_use(lost[i].says, lost[i].given, &lost[i].segment, false);
	run_use("after another processor's packets, too", wander,
		&(struct segment){INWARDS, ACK, 3000, 0, 500}, true);
}

void memo_tcp_rows(void)
{
	static const struct {
		const char *client, *host, *container;
	} families[] = {{v4_client, v4_host, v4_container_one},
			{v6_client, v6_host, v6_container_one}};
	cpu_set_t before;

	if (sched_getaffinity(0, sizeof(before), &before))
		err(1, "sched_getaffinity");
	move(); /* which remembers where home is */
	move();
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		client = families[i].client;
		host = families[i].host;
		container = families[i].container;
		run_all();
	}
	if (sched_setaffinity(0, sizeof(before), &before))
		err(1, "sched_setaffinity");
}

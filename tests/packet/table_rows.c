/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table_rows.c - the table of answered flows: full, nearly full, and who may have how much. */
#include <linux/pkt_cls.h>
#include <stdlib.h>

#include "row.h"

#define PAIRS (FLOW_PAIRS(MIN_FLOWS) - 1)
#define IDLE 100000
#define PORTS 4096

static struct counters before, now;

#define COUNTED(name) (fixture_read_counters(&now), now.name - before.name)

static const char *crowd_address(int nth)
{
	static const char *const addresses[] = {"198.51.100.20", "198.51.100.21", "198.51.100.22"};

	return addresses[nth / PORTS];
}

/* The nth established connection to container two, which has the nth pair. */
static void put_in_crowd(int nth, uint32_t idle)
{
	const char *from = crowd_address(nth);
	int port = 1024 + nth % PORTS;
	struct entry pair[] = {MAPPED(ANSWERED, IPPROTO_TCP, from, port, v4_host_other, 9090,
				      v4_container_two, 91, port)};

	pair[0].owner = TWO;
	pair[0].pair = pair[1].pair = (uint32_t)nth;
	fixture_put_pair(pair, TWO, false, idle, STATE_ESTABLISHED);
	fixture_take_flow_pair(&pair[0]);
}

static void fill_table(int dead_percent)
{
	host_close_sockets();
	fixture_reset();
	srandom(7);
	for (int nth = 1; nth <= PAIRS; nth++)
		put_in_crowd(nth, random() % 100 < dead_percent ? IDLE : 0);
	fixture_read_counters(&before);
}

static void expect_verdict(int got, int expected, const char *whose)
{
	if (got != expected)
		row_fail("%s: verdict is %d, expected %d", whose, got, expected);
}

static void expect_number(long got, long expected, const char *what)
{
	if (got != expected)
		row_fail("%s: %ld, expected %ld", what, got, expected);
}

static int send_to(int host_port, int port, unsigned int flags)
{
	const struct packet packet = TCP(v4_client, port, v4_host, host_port, flags);

	return row_send(FROM_UPLINK, UPLINK, &packet);
}

static void begin_with_one(int port)
{
	const struct packet answer = TCP(v4_container_one, 80, v4_client, port, SYN | ACK);

	expect_verdict(send_to(8080, port, SYN), TC_ACT_UNSPEC, "a SYN");
	row_send(TO_UPLINK, UPLINK, &answer);
}

static int connect_to_one(int port)
{
	begin_with_one(port);
	return send_to(8080, port, ACK);
}

static void full_table(void)
{
	const struct packet answer = UDP(v4_server, 53, v4_host, 8080);

	row_begin("a full table refuses the packet that answers a flow, and counts it");
	fill_table(0);
	expect_verdict(connect_to_one(40000), TC_ACT_SHOT, "the third packet");
	expect_number(COUNTED(drop_table_full), 1, "drop_table_full");
	row_end();

	row_begin("and keeps every flow that it has");
	for (int nth = 1; nth <= PAIRS; nth += 7) {
		const struct packet data =
			TCP(crowd_address(nth), 1024 + nth % PORTS, v4_host_other, 9090, ACK);

		expect_verdict(row_send(FROM_UPLINK, UPLINK, &data), TC_ACT_UNSPEC, "an old flow");
	}
	expect_number(COUNTED(flow_mapping), 1, "flow_mapping");
	row_end();

	row_begin("[i08] but lets the host's own flows pass half-open");
	host_bind_udp(v4_host, 8080);
	for (int i = 0; i < 3; i++) {
		const struct packet ask = UDP(v4_host, 8080, v4_server, 53);

		row_send_of_host(TO_UPLINK, UPLINK, &ask);
		expect_verdict(row_send(FROM_UPLINK, UPLINK, &answer), TC_ACT_UNSPEC, "an answer");
	}
	expect_number((long)COUNTED(drop_table_full), 1, "drop_table_full");
	row_end();

	row_begin("where an old flow has ended, the refused one has its place when it tries again");
	put_in_crowd(PAIRS / 3, IDLE);
	fixture_let_second_pass();
	send_to(8080, 40000, ACK);
	expect_verdict(send_to(8080, 40000, ACK), TC_ACT_UNSPEC, "tried again");
	expect_number(COUNTED(flow_promoted), 1, "flow_promoted");
	row_end();
}

/* As many newcomers as leave one pair in a hundred dead. */
static void nearly_full_table(void)
{
	int refused = 0;

	row_begin("a table of which 95 % are alive refuses next to nobody");
	fill_table(5);
	for (int i = 0; i < 4 * PAIRS / 100; i++)
		refused += connect_to_one(20000 + i) != TC_ACT_UNSPEC;
	if (refused > 2)
		row_fail("%d of %d are refused", refused, 4 * PAIRS / 100);
	expect_number(fixture_flow_pairs_of(ONE), 4 * PAIRS / 100 - refused, "flows of one");
	row_end();
}

static const struct entry connected_one[] = {
	MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 1000, v4_host, 8080, v4_container_one, 80, 1000)};

static void limit_of_one(void)
{
	const struct packet ask = UDP(v4_container_one, 5000, v4_server, 53),
			    direct = UDP(v4_client, 5000, v4_container_one, 53),
			    neighbour = UDP(v4_container_two, 5000, v4_container_one, 53);

	row_begin("[T32] a container has as many flows as it may have");
	host_close_sockets();
	fixture_reset();
	fixture_set_policy(ONE, (struct policy){.max_flows = 3});
	fixture_read_counters(&before);
	for (int port = 1000; port < 1003; port++)
		expect_verdict(connect_to_one(port), TC_ACT_UNSPEC, "a flow within its limit");
	expect_number(fixture_flow_pairs_of(ONE), 3, "flows of one");
	row_end();

	row_begin("[T32] the next that begins is refused, through a mapping or masqueraded");
	expect_verdict(send_to(8080, 1003, SYN), TC_ACT_SHOT, "a mapped flow");
	expect_verdict(row_send(TO_UPLINK, UPLINK, &ask), TC_ACT_SHOT, "a masqueraded flow");
	expect_number(COUNTED(drop_flow_limit), 2, "drop_flow_limit");
	row_end();

	row_begin("[T32] what it has goes on, also with a half lost");
	fixture_remove(&connected_one[0]);
	for (int i = 0; i < 2; i++)
		expect_verdict(send_to(8080, 1000, ACK), TC_ACT_UNSPEC, "an old flow");
	expect_number(fixture_flow_pairs_of(ONE), 3, "flows of one");
	row_end();

	row_begin("[T32] who reaches it by its own address is not refused");
	for (int i = 0; i < 2; i++)
		expect_verdict(row_send(FROM_UPLINK, UPLINK, &direct), TC_ACT_UNSPEC, "direct");
	expect_verdict(row_send(FROM_CONTAINER, VETH_TWO, &neighbour), TC_ACT_UNSPEC,
		       "a neighbour");
	expect_number((long)COUNTED(drop_flow_limit), 2, "drop_flow_limit");
	row_end();

	row_begin("[T32] other containers may begin flows");
	expect_verdict(send_to(7070, 1004, SYN), TC_ACT_UNSPEC, "another container's flow");
	row_end();
}

static void limit_to_one(void)
{
	host_close_sockets();
	fixture_reset();
	fixture_set_policy(ONE, (struct policy){.max_flows = 1});
}

static uint32_t only_pair(void)
{
	struct stored_entries stored;

	fixture_read_flows(&stored);
	for (int i = 0; i < stored.count; i++)
		if (stored.entries[i].flow.pair)
			return stored.entries[i].flow.pair;
	return 0;
}

/* Is there room for another flow, where one in this state is all that container one may have? */
static void expect_room_beside(enum flow_state state, uint32_t idle, bool room)
{
	uint32_t pair = only_pair();

	for (int i = 0; i < 2; i++) {
		struct entry entry = connected_one[i];

		entry.pair = pair;
		entry.owner = ONE;
		entry.idle = idle;
		entry.state = state;
		fixture_put(&entry);
		fixture_take_flow_pair(&entry);
	}
	fixture_let_second_pass();
	send_to(8080, 1002, SYN);
	expect_number(fixture_flow_pairs_of(ONE), !room, "flows of one");
	if (room)
		expect_verdict(connect_to_one(1002), TC_ACT_UNSPEC, "tried again");
	else
		expect_verdict(send_to(8080, 1002, SYN), TC_ACT_SHOT, "tried again");
	expect_number(fixture_flow_pairs_of(ONE), 1, "flows of one");
}

/* Half-open when the others became answered. */
static void limit_of_half_open(void)
{
	row_begin("[T32] nor may a half-open flow be answered beyond the limit");
	limit_to_one();
	begin_with_one(1001);
	fixture_read_counters(&before);
	expect_verdict(connect_to_one(1000), TC_ACT_UNSPEC, "the first");
	expect_verdict(send_to(8080, 1001, ACK), TC_ACT_SHOT, "the second");
	expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	row_end();

	row_begin("[T32] a flow that has ended counts no more once somebody is refused");
	expect_room_beside(STATE_ESTABLISHED, IDLE, true);
	row_end();

	row_begin("[T32] nor does one that has closed some seconds ago: connections come and go by "
		  "the "
		  "thousand");
	limit_to_one();
	connect_to_one(1000);
	expect_room_beside(STATE_CLOSING, 11, true);
	row_end();

	row_begin("[T32] but one that has just closed, or stands half-closed, does");
	limit_to_one();
	connect_to_one(1000);
	expect_room_beside(STATE_CLOSING, 5, false);
	limit_to_one();
	connect_to_one(1000);
	expect_room_beside(STATE_FIN, 11, false);
	row_end();
}

/* A pair that an older generation took says nothing of the new one's count. */
static void limit_of_renewed(void)
{
	row_begin("a container added anew begins at none");
	host_close_sockets();
	fixture_reset();
	expect_verdict(connect_to_one(1000), TC_ACT_UNSPEC, "before");
	fixture_renew(ONE);
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_one, 80, ONE);
	fixture_set_endpoint(v4_container_one, ONE, 16, true);
	expect_number(fixture_flow_pairs_of(ONE), 0, "flows of one");
	expect_verdict(connect_to_one(1000), TC_ACT_UNSPEC, "after");
	expect_number(fixture_flow_pairs_of(ONE), 1, "flows of one");
	row_end();
}

static void default_limit(void)
{
	row_begin("[T32] by default nobody has more than half of all");
	host_close_sockets();
	fixture_reset();
	for (int i = 0; i < PAIRS / 2 && connect_to_one(1000 + i) == TC_ACT_UNSPEC; i++)
		;
	expect_number(fixture_flow_pairs_of(ONE), PAIRS / 2, "flows of one");
	expect_verdict(send_to(8080, 60000, SYN), TC_ACT_SHOT, "one more");
	row_end();
}

void table_rows(void)
{
	full_table();
	nearly_full_table();
	limit_of_one();
	limit_of_half_open();
	limit_of_renewed();
	default_limit();
	fixture_reset();
}

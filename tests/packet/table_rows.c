/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table_rows.c - the table when it is full or nearly full, and each owner's share of it. */
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "row.h"

#define PLACES MIN_ASSURED
#define HOG (PLACES / 16)
#define RING MIN_HALF_OPEN
#define LIMITED_HALF_CLOSED 15
#define DEAD 8000 /* seconds: longer than any connection lives */
#define PORTS 4096
#define TCP_IN(container) fixture_share_of(container).flows[ACCOUNT_PROVEN]
#define TCP_OUT(container) fixture_share_of(container).flows[ACCOUNT_PROVEN | ACCOUNT_OUT]

static void start_afresh(void)
{
	host_close_sockets();
	fixture_reset();
}

/* Addresses and ports of the nth client of a crowd */
static const char *crowd_address(int nth)
{
	static char address[32];

	snprintf(address, sizeof(address), "198.51.%d.%d", 101 + nth / PORTS / 200,
		 1 + nth / PORTS % 200);
	return address;
}

static int crowd_port(int nth)
{
	return 1024 + nth % PORTS;
}

/* The nth connection to a container's mapped port, which the fixture has mapped */
static void put_nth(enum container owner, int nth, struct entry like)
{
	static const struct {
		const char *host, *container;
		int host_port, container_port;
	} mappings[] = {
		[ONE] = {v4_host, v4_container_one, 8080, 80},
		[TWO] = {v4_host_other, v4_container_two, 9090, 91},
		[QUIET] = {v4_host, v4_container_quiet, 7070, 70},
		[ROUTED] = {v4_host, v4_container_routed, 5050, 50},
	};

	like.protocol = like.protocol ?: IPPROTO_TCP;
	like.inside = mappings[owner].container;
	like.inside_port = mappings[owner].container_port;
	like.outside = crowd_address(nth);
	like.outside_port = like.peer_port = crowd_port(nth);
	like.external = mappings[owner].host;
	like.external_port = mappings[owner].host_port;
	like.kind = FLOW_MAPPING;
	like.owner = owner;
	fixture_put(&like);
}

static void put_crowd(enum container owner, int count, struct entry like)
{
	for (int nth = 0; nth < count; nth++)
		put_nth(owner, nth, like);
}

#define ASSURED(state_, ...) ((struct entry){.stage = ANSWERED, .state = state_, ##__VA_ARGS__})
#define ESTABLISHED(...) ASSURED(STATE_ESTABLISHED, ##__VA_ARGS__)

static int send_from(const char *client, int host_port, int port, unsigned int flags)
{
	return ARRIVE(TCP(client, port, v4_host, host_port, flags));
}

static int send_to(int host_port, int port, unsigned int flags)
{
	return send_from(v4_client, host_port, port, flags);
}

static void begin_from(const char *client, int port)
{
	row_expect_passed(send_from(client, 8080, port, SYN), "a SYN");
	LEAVE(TCP(v4_container_one, 80, client, port, SYN | ACK));
}

static int connect_from(const char *client, int port)
{
	begin_from(client, port);
	return send_from(client, 8080, port, ACK);
}

static int connect_to_one(int port)
{
	return connect_from(v4_client, port);
}

/* To QUIET or ROUTED */
static int connect_to(enum container owner, int port)
{
	const struct packet answer_of_quiet =
		TCP(v4_container_quiet, 70, v4_client, port, SYN | ACK);
	const struct packet answer_of_routed =
		TCP(v4_container_routed, 50, v4_client, port, SYN | ACK);
	int host_port = owner == QUIET ? 7070 : 5050;

	send_to(host_port, port, SYN);
	row_send(TO_UPLINK, UPLINK, owner == QUIET ? &answer_of_quiet : &answer_of_routed);
	return send_to(host_port, port, ACK);
}

/* A connection that container one begins */
static int connect_from_one(int port)
{
	int verdict = LEAVE(TCP(v4_container_one, port, v4_server, 443, SYN));

	if (verdict != TC_ACT_UNSPEC)
		return verdict;
	ARRIVE(TCP(v4_server, 443, v4_host, port, SYN | ACK));
	return LEAVE(TCP(v4_container_one, port, v4_server, 443, ACK));
}

static int crowd_goes_on(int nth)
{
	const struct packet data =
		TCP(crowd_address(nth), crowd_port(nth), v4_host_other, 9090, ACK);

	return row_send(FROM_UPLINK, UPLINK, &data);
}

static void fill_table(struct entry like)
{
	start_afresh();
	put_crowd(TWO, PLACES, like);
}

static void hosts_in_full_table(void)
{
	const struct packet ask = UDP(v4_host, 8080, v4_server, 53);
	const struct packet answer = UDP(v4_server, 53, v4_host, 8080);

	row_begin_counting("the host's own packets pass, half-open");
	host_open_socket(&(const struct host_socket){
		.protocol = IPPROTO_UDP, .address = v4_host, .port = 8080});
	for (int i = 0; i < 3; i++) {
		row_send_of_host(TO_UPLINK, UPLINK, &ask);
		row_expect_passed(row_send(FROM_UPLINK, UPLINK, &answer), "an answer");
	}
	row_expect_number(COUNTED(drop_table_full), 0, "drop_table_full");
	row_end_checked();
}

static void direct_in_full_table(void)
{
	const struct packet ask = UDP(v4_client, 5000, v4_container_one, 53);
	const struct packet answer = UDP(v4_container_one, 53, v4_client, 5000);

	row_begin_counting("and packets that are not translated");
	for (int i = 0; i < 3; i++) {
		row_expect_passed(row_send(FROM_UPLINK, UPLINK, &ask), "a question");
		row_send(TO_CONTAINER, BRIDGE, &ask);
		row_expect_passed(row_send(TO_UPLINK, UPLINK, &answer), "an answer");
	}
	row_expect_number(COUNTED(drop_table_full), 0, "drop_table_full");
	row_expect_number(COUNTED(flow_masquerade), 0, "flow_masquerade");
	row_end_checked();
}

/* A refused packet searches at most so many places, and only once a millisecond. */
#define REFUSALS_A_ROUND (PLACES / 1024)

/* Sends until the packet passes. Returns how often it was refused. */
static int send_again(int port, unsigned int flags)
{
	int refused = 0;

	while (send_to(8080, port, flags) != TC_ACT_UNSPEC && refused <= REFUSALS_A_ROUND) {
		refused++;
		usleep(2000);
	}
	return refused;
}

static void place_of_ended(void)
{
	int refused;

	row_begin_counting(
		"once an old flow has ended, the refused one gets its place when it tries again");
	put_nth(TWO, PLACES / 3, ESTABLISHED(.idle = DEAD));
	fixture_wait_for_next_second();
	refused = send_again(40000, ACK);
	if (refused > REFUSALS_A_ROUND)
		row_fail("it is refused %d times", refused);
	row_expect_number(COUNTED(flow_promoted), 1, "flow_promoted");
	row_expect_number(TCP_IN(TWO), PLACES - 1, "connections of two");
	row_expect_number(fixture_usage().assured, PLACES, "all connections");
	row_end_checked();
}

static void full_table(void)
{
	fill_table(ESTABLISHED());
	row_begin_counting(
		"a full table drops the packet that would make a flow assured, and counts it");
	row_expect_dropped(connect_to_one(40000), "the third packet");
	row_expect_number(COUNTED(drop_table_full), 1, "drop_table_full");
	row_end_checked();

	row_begin_counting("and keeps all its flows");
	for (int nth = 0; nth < PLACES; nth += 7)
		row_expect_passed(crowd_goes_on(nth), "an old one");
	row_expect_number(COUNTED(flow_mapping), 0, "flow_mapping");
	row_expect_number(fixture_usage().assured, PLACES, "all connections");
	row_end_checked();

	hosts_in_full_table();
	direct_in_full_table();
	place_of_ended();
}

/* So many newcomers that one place in a hundred stays dead. */
static void nearly_full_table(void)
{
	int refused = 0;

	start_afresh();
	srandom(7);
	for (int nth = 0; nth < PLACES; nth++)
		put_nth(TWO, nth, ESTABLISHED(.idle = random() % 100 < 5 ? DEAD : 0));
	row_begin_counting("a table with 95 % live flows refuses hardly any new one");
	for (int i = 0; i < 4 * PLACES / 100; i++)
		refused += connect_to_one(20000 + i) != TC_ACT_UNSPEC;
	if (refused > 2)
		row_fail("%d of %d are refused", refused, 4 * PLACES / 100);
	row_expect_number(TCP_IN(ONE), 4 * PLACES / 100 - refused, "connections of one");
	row_end_checked();
}

/* Whether a table full of such records has room for a newcomer */
static void check_room(const char *says, struct entry like, bool room)
{
	fill_table(like);
	row_begin_counting(says);
	row_expect_verdict(connect_to_one(40000), room ? TC_ACT_UNSPEC : TC_ACT_SHOT,
			   "the newcomer");
	row_expect_number(COUNTED(drop_table_full), !room, "drop_table_full");
	row_end_checked();
}

/* It was assured by its packets, which protect its place until then. */
static void dataless_in_full_table(void)
{
	int refused;

	start_afresh();
	put_crowd(TWO, PLACES - 1, ESTABLISHED(.with_data = true));
	row_begin_counting("a minute after its handshake, too");
	row_expect_passed(connect_to_one(1000), "the last place's");
	fixture_age_flows(61);
	fixture_wait_for_next_second();
	begin_from(v4_client, 1001);
	refused = send_again(1001, ACK);
	if (refused > REFUSALS_A_ROUND)
		row_fail("the newcomer is refused %d times", refused);
	row_expect_number(TCP_IN(ONE), 1, "connections of one");
	row_end_checked();
}

/* Of a container that may have more */
static void half_closed_in_full_table(void)
{
	start_afresh();
	put_crowd(TWO, PLACES - 1, ESTABLISHED(.with_data = true));
	put_nth(QUIET, 0, ASSURED(STATE_FIN, .idle = 90, .with_data = true));
	begin_from(v4_client, 1000);
	row_begin_counting("half-closed flows keep their places for two minutes at least");
	row_expect_number(send_again(1000, ACK), REFUSALS_A_ROUND + 1, "refusals");
	row_end_checked();
	row_begin_counting("and then give way, while places are short");
	fixture_age_flows(31);
	fixture_wait_for_next_second();
	if (send_again(1000, ACK) > REFUSALS_A_ROUND)
		row_fail("the newcomer is refused");
	row_end_checked();
}

static void who_gives_way(void)
{
	check_room("closed flows give way at once, if there is no other room",
		   ASSURED(STATE_CLOSING), true);
	row_begin_counting("and no longer count");
	row_expect_number(fixture_usage().assured, 1, "all connections");
	row_expect_number(TCP_IN(TWO), 0, "connections of two");
	row_end_checked();
	row_begin_counting("closed flows translate late segments until their place is taken");
	row_expect_passed(crowd_goes_on(PLACES / 2), "a late ACK");
	row_expect_number(COUNTED(rewritten_destination), 1, "rewritten_destination");
	row_expect_number(COUNTED(flow_mapping), 0, "flow_mapping");
	row_end_checked();
	check_room("flows that have been dead for half a day give way",
		   ESTABLISHED(.idle = 12 * 3600), true);
	half_closed_in_full_table();
	check_room("in a full table TCP that never carried data gives way after a minute",
		   ESTABLISHED(.idle = 61), true);
	dataless_in_full_table();
	check_room("not before", ESTABLISHED(.idle = 30), false);
	check_room("TCP that carried data keeps its place",
		   ESTABLISHED(.idle = 3600, .with_data = true), false);
	check_room("for 2 h 4 min", ESTABLISHED(.idle = 7500, .with_data = true), true);
}

/* A third of the places is free. */
static void without_pressure(void)
{
	int refused = 0, alive = 0;

	start_afresh();
	for (int nth = 0; nth < PLACES; nth++)
		put_nth(TWO, nth, ESTABLISHED(.idle = nth % 2 ? 3600 : 90000));
	for (int nth = 0; nth < PLACES; nth += 3) {
		const struct entry gone =
			MAPPED(ANSWERED, IPPROTO_TCP, crowd_address(nth), crowd_port(nth),
			       v4_host_other, 9090, v4_container_two, 91, crowd_port(nth));

		fixture_remove(&gone);
		alive += 2;
	}
	alive = (int)TCP_IN(TWO);
	row_begin_counting("while there is room no flow gives way");
	for (int i = 0; i < 500; i++)
		refused += connect_to_one(20000 + i) != TC_ACT_UNSPEC;
	row_expect_number(refused, 0, "refused");
	row_expect_number(TCP_IN(TWO), alive, "connections of two");
	row_end_checked();
}

static void limit_of_one(void)
{
	const struct packet direct = UDP(v4_client, 5000, v4_container_one, 53),
			    neighbour = UDP(v4_container_two, 5000, v4_container_one, 53);

	start_afresh();
	fixture_set_policy(ONE, (struct policy){.max_flows = 3});
	row_begin_counting("maxFlows limits both directions of a container together");
	row_expect_passed(connect_to_one(1000), "the first");
	row_expect_passed(connect_to_one(1001), "the second");
	row_expect_passed(connect_from_one(25000), "the third, which it begins");
	row_expect_number(TCP_IN(ONE), 2, "begun by others");
	row_expect_number(TCP_OUT(ONE), 1, "begun by it");
	row_end_checked();

	row_begin_counting("another new flow is refused, mapped or masqueraded");
	row_expect_dropped(send_to(8080, 1003, SYN), "a mapped one");
	row_expect_dropped(LEAVE(UDP(v4_container_one, 5000, v4_server, 53)), "a masqueraded one");
	row_expect_number(COUNTED(drop_flow_limit), 2, "drop_flow_limit");
	row_end_checked();

	row_begin_counting("existing flows continue");
	for (int i = 0; i < 2; i++)
		row_expect_passed(send_to(8080, 1000, ACK), "an old one");
	row_expect_number(COUNTED(flow_mapping), 0, "flow_mapping");
	row_end_checked();

	row_begin_counting("connections to its own address are not refused");
	for (int i = 0; i < 3; i++) {
		row_expect_passed(row_send(FROM_UPLINK, UPLINK, &direct), "direct");
		row_send(TO_CONTAINER, BRIDGE, &direct);
		LEAVE(UDP(v4_container_one, 53, v4_client, 5000));
	}
	row_expect_passed(row_send(FROM_CONTAINER, VETH_TWO, &neighbour), "of a container");
	row_expect_number(COUNTED(drop_flow_limit), 0, "drop_flow_limit");
	row_end_checked();

	row_begin_counting("other containers may begin some");
	row_expect_passed(send_to(7070, 1004, SYN), "another container's");
	row_end_checked();
}

static void limit_to_one(void)
{
	start_afresh();
	fixture_set_policy(ONE, (struct policy){.max_flows = 1});
}

static void close_first(void)
{
	send_to(8080, 1000, FIN | ACK);
	LEAVE(TCP(v4_container_one, 80, v4_client, 1000, FIN | ACK));
}

/* All flows that the container may have are dead. */
static void dead_of_one(void)
{
	int refused;

	row_begin_counting("and no longer counts once it is dead and a new flow was refused");
	fixture_age_flows(125);
	fixture_wait_for_next_second();
	refused = send_again(1001, SYN);
	if (refused == 0 || refused > REFUSALS_A_ROUND)
		row_fail("it is refused %d times", refused);
	row_expect_number(TCP_IN(ONE), 0, "connections of one");
	row_expect_passed(connect_to_one(1002), "another");
	row_end_checked();
}

/* Protected for hours, until one side closes */
static const struct entry with_data =
	MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 1000, v4_host, 8080, v4_container_one, 80, 1000,
	       .owner = ONE, .state = STATE_ESTABLISHED, .with_data = true);

static void limit_of_half_open(void)
{
	limit_to_one();
	begin_from(v4_client, 1001);
	row_begin_counting("no half-open flow becomes assured beyond the limit");
	row_expect_passed(connect_to_one(1000), "the first");
	row_expect_dropped(send_to(8080, 1001, ACK), "the second");
	row_expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	row_end_checked();

	row_begin_counting("a closed flow no longer counts");
	close_first();
	row_expect_number(TCP_IN(ONE), 0, "connections of one");
	row_expect_passed(send_to(8080, 1001, ACK), "the second again");
	row_end_checked();

	limit_to_one();
	row_begin_counting("a half-closed flow counts");
	fixture_put(&with_data);
	send_to(8080, 1000, FIN | ACK);
	row_expect_dropped(send_to(8080, 1001, SYN), "the second");
	row_end_checked();

	dead_of_one();
}

/* All others' connections are dead. */
static void search_in_steps(void)
{
	int found;

	fill_table(ESTABLISHED(.idle = DEAD));
	fixture_set_policy(QUIET, (struct policy){.max_flows = 1});
	row_begin_counting("a refused packet searches for dead flows for microseconds");
	row_expect_passed(connect_to(QUIET, 1000), "the first");
	found = (int)fixture_usage().assured;
	row_expect_dropped(send_to(7070, 1001, SYN), "the second");
	found -= (int)fixture_usage().assured;
	if (found < 1 || found > 400)
		row_fail("it has found %d", found);
	row_end_checked();

	row_begin_counting("and those that follow search on");
	for (int i = 0; fixture_usage().assured > 1 && i < PLACES; i++)
		usleep(send_to(7070, 1001, SYN) == TC_ACT_SHOT ? 1100 : 0);
	row_expect_number(fixture_usage().assured, 1, "connections that are left");
	row_end_checked();
}

/* An older generation's flows do not count for the new one. */
static void limit_of_renewed(void)
{
	start_afresh();
	row_begin_counting("a container added anew begins with a count of 0");
	row_expect_passed(connect_to_one(1000), "before");
	row_expect_passed(connect_to_one(1001), "another before");
	fixture_add_again(ONE);
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_one, 80, ONE);
	row_expect_passed(connect_to_one(1000), "after");
	row_expect_number(TCP_IN(ONE), 1, "connections of one");
	row_end_checked();
}

/* The clients are so many that none of them reaches its share. */
static void one_takes_half(void)
{
	start_afresh();
	row_begin_counting("one hog leaves half of the table to the next");
	put_crowd(ONE, PLACES / 2 - 2, ESTABLISHED());
	for (int i = 0; i < 2; i++)
		row_expect_passed(connect_to_one(1000 + i), "one of its half");
	row_expect_dropped(send_to(8080, 1002, SYN), "one more");
	row_expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	row_expect_number(fixture_usage().hogs, 1, "hogs");
	row_end_checked();

	row_begin_counting("flows that it begins itself are another account");
	row_expect_passed(connect_from_one(25000), "its own");
	row_expect_number(TCP_OUT(ONE), 1, "begun by it");
	row_end_checked();
}

/* With n hogs each may grow while more than 1/(n+1) of the table is free. */
static void others_take_their_parts(void)
{
	int taken = PLACES / 2 + 1, part = PLACES - PLACES / 3 - taken;

	row_begin_counting("two hogs leave a third");
	put_crowd(QUIET, part - 1, ESTABLISHED());
	row_expect_passed(connect_to(QUIET, 1000), "the last of its part");
	row_expect_number(fixture_usage().hogs, 2, "hogs");
	row_expect_dropped(send_to(7070, 1001, SYN), "one more");
	row_end_checked();

	row_begin_counting("three hogs leave a quarter");
	taken += part;
	part = PLACES - PLACES / 4 - taken;
	put_crowd(TWO, part - 1, ESTABLISHED());
	row_expect_number(fixture_usage().hogs, 3, "hogs");
	put_nth(TWO, part, ESTABLISHED());
	row_expect_dropped(ARRIVE(TCP(v4_client, 1001, v4_host_other, 9090, SYN)), "one more");
	row_end_checked();

	row_begin_counting("a container with few flows is not refused because of them");
	for (int i = 0; i < 200; i++)
		row_expect_passed(connect_to(ROUTED, 1000 + i), "a small one's");
	row_expect_number(TCP_IN(ROUTED), 200, "flows of that container");
	row_expect_number(fixture_usage().hogs, 3, "hogs");
	row_end_checked();
}

static void hogs_become_none(void)
{
	row_begin_counting("a hog whose connections close is no longer one");
	for (int nth = 0; nth < PLACES / 2 - HOG; nth++)
		put_nth(ONE, nth, ASSURED(STATE_CLOSING));
	row_expect_number(fixture_usage().hogs, 3, "hogs");
	for (int nth = PLACES / 2 - HOG; nth < PLACES / 2 - HOG + 3; nth++) {
		if (nth >= PLACES / 2 - 2)
			break;
		ARRIVE(TCP(crowd_address(nth), crowd_port(nth), v4_host, 8080, FIN | ACK));
		LEAVE(TCP(v4_container_one, 80, crowd_address(nth), crowd_port(nth), FIN | ACK));
	}
	row_expect_number(fixture_usage().hogs, 2, "hogs");
	row_end_checked();
}

static void share_of_client(void)
{
	struct entry record =
		MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 0, v4_host, 8080, v4_container_one, 80, 0,
		       .owner = ONE, .state = STATE_ESTABLISHED);
	int most = PLACES / 4;

	start_afresh();
	for (int i = 0; i < most - 1; i++) {
		record.peer_port = record.outside_port = 1024 + i;
		fixture_put(&record);
	}
	row_begin_counting("one client has half of what a container can have");
	row_expect_passed(connect_to_one(40000), "the last of its share");
	row_expect_dropped(send_to(8080, 40001, SYN), "one more");
	row_expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	row_end_checked();

	row_begin_counting("and does not affect other clients");
	row_expect_passed(connect_from(v4_client_other, 40001), "another client");
	row_end_checked();

	row_begin_counting("nor its own connections to another container");
	row_expect_passed(connect_to(QUIET, 40001), "another container's");
	row_end_checked();
}

static int ask_over_ipv6(const char *client)
{
	return ARRIVE(TCP(client, 40000, v6_host, 8080, SYN));
}

/* The nth forged client of a mapped UDP port */
static void put_datagram(int nth, const char *client)
{
	struct entry record = MAPPED(ANSWERED, IPPROTO_UDP, client, crowd_port(nth), v4_host, 8080,
				     v4_container_one, 80, crowd_port(nth), .owner = ONE);

	fixture_put(&record);
}

/* What may have a forged address takes nothing from what cannot have. */
static void share_of_proven(void)
{
	start_afresh();
	row_begin_counting("clients that may be forged leave those of TCP what they had");
	for (int nth = 0; nth < PLACES / 2; nth++)
		put_datagram(nth, crowd_address(nth));
	row_expect_dropped(ARRIVE(UDP(v4_client, 5000, v4_host, 8080)), "one more datagram's");
	for (int i = 0; i < 50; i++)
		row_expect_passed(connect_to_one(40000 + i), "a TCP client's");
	row_expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	row_end_checked();

	start_afresh();
	row_begin_counting("also where they have forged the address of one of these");
	for (int nth = 0; nth < PORTS; nth++)
		put_datagram(nth, v4_client);
	row_expect_dropped(ARRIVE(UDP(v4_client, 1000, v4_host, 8080)), "one more datagram");
	row_expect_passed(connect_to_one(40000), "its connection");
	row_end_checked();

	start_afresh();
	fixture_set_policy(ONE, (struct policy){.max_flows = 100});
	row_begin_counting("and where maxFlows limits them");
	for (int nth = 0; nth < 100; nth++)
		put_datagram(nth, crowd_address(nth));
	row_expect_dropped(ARRIVE(UDP(v4_client, 5000, v4_host, 8080)), "one more datagram's");
	row_expect_passed(connect_to_one(40000), "a TCP client's");
	row_expect_passed(LEAVE(UDP(v4_container_one, 5000, v4_server, 53)), "its own question");
	row_end_checked();
}

/* A place that was taken while another CPU reset its owner's share */
static void uncounted_place(void)
{
	start_afresh();
	row_begin_counting("a half-open flow that was not counted is not taken off the count");
	begin_from(v4_client, 1000);
	begin_from(v4_client, 1001);
	fixture_uncount(ONE);
	row_expect_passed(send_to(8080, 1000, ACK), "the first");
	row_expect_passed(send_to(8080, 1001, ACK), "the second");
	row_expect_number(fixture_share_of(ONE).half_open[0], 0, "half-open flows");
	row_end_checked();
}

/* Of one client's connections to one, half of which are closed by one side */
static void fill_share_of_client(unsigned int idle)
{
	struct entry record =
		MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 0, v4_host, 8080, v4_container_one, 80, 0,
		       .owner = ONE, .idle = idle, .with_data = true);

	start_afresh();
	for (int i = 0; i < PLACES / 4; i++) {
		record.state = i % 2 ? STATE_FIN : STATE_ESTABLISHED;
		record.peer_port = record.outside_port = 1024 + i;
		fixture_put(&record);
	}
	put_nth(ONE, 0, ASSURED(STATE_FIN, .idle = idle, .with_data = true));
	put_nth(QUIET, 0, ASSURED(STATE_FIN, .idle = idle, .with_data = true));
}

/* Forged addresses, or a client whose connections have all failed, come back. */
static void half_closed_at_limit(void)
{
	int refused;

	fill_share_of_client(LIMITED_HALF_CLOSED + 1);
	row_begin_counting("where a client has all it may have, its half-closed flows give way");
	refused = send_again(40000, SYN);
	if (refused == 0 || refused > REFUSALS_A_ROUND)
		row_fail("it is refused %d times", refused);
	for (int i = 0; i < 20; i++)
		row_expect_passed(send_to(8080, 40001 + i, SYN), "another one");
	row_end_checked();

	row_begin_counting("and nobody else's");
	row_expect_number(TCP_IN(QUIET), 1, "connections of another container");
	row_expect_passed(send_from(crowd_address(0), 8080, crowd_port(0), ACK), "another client");
	row_expect_number(COUNTED(flow_mapping), 0, "flow_mapping");
	row_end_checked();

	fill_share_of_client(LIMITED_HALF_CLOSED + 1);
	row_begin_counting("also those whose FIN is repeated, as nobody acknowledges it");
	for (int i = 1; i < PLACES / 4; i += 2)
		row_expect_passed(send_to(8080, 1024 + i, FIN | ACK), "a FIN once more");
	refused = send_again(40000, SYN);
	if (refused == 0 || refused > REFUSALS_A_ROUND)
		row_fail("it is refused %d times", refused);
	row_end_checked();

	fill_share_of_client(LIMITED_HALF_CLOSED - 5);
	row_begin_counting("not before they were silent for 15 seconds");
	row_expect_number(send_again(40000, SYN), REFUSALS_A_ROUND + 1, "refusals");
	row_end_checked();

	start_afresh();
	fixture_set_policy(ONE, (struct policy){.max_flows = 100});
	put_crowd(ONE, 100, ASSURED(STATE_FIN, .idle = LIMITED_HALF_CLOSED + 1, .with_data = true));
	row_begin_counting("the same where maxFlows is the limit");
	refused = send_again(40000, SYN);
	if (refused == 0 || refused > REFUSALS_A_ROUND)
		row_fail("it is refused %d times", refused);
	row_end_checked();
}

/* Answered datagrams from forged addresses to three containers fill so much of the table. */
static void fill_by_forgers(int count)
{
	static const enum container flooded[] = {ONE, QUIET, ROUTED};

	start_afresh();
	put_nth(TWO, 0, ESTABLISHED(.idle = 3600));
	for (int nth = 0; nth < count; nth++)
		put_nth(flooded[nth % 3], nth,
			(struct entry){.stage = ANSWERED, .protocol = IPPROTO_UDP});
}

/* Refused as often as it takes to look at every place */
static void refuse_datagrams(void)
{
	for (int i = 0; i < REFUSALS_A_ROUND; i++) {
		row_expect_dropped(ARRIVE(UDP(v4_client, 5000, v4_host, 8080)), "a datagram");
		usleep(2000);
	}
}

static void forgers_of_many(void)
{
	const struct packet to_two = UDP(v4_client, 5000, v4_host_other, 9090);

	fill_by_forgers(PLACES - PLACES / 8);
	row_begin_counting("forgers at several containers end no TCP that never carried data");
	refuse_datagrams();
	row_expect_number(TCP_IN(TWO), 1, "connections of two");
	row_end_checked();

	fill_by_forgers(PLACES - 3 * PLACES / 16);
	row_begin_counting("not even of a container that has a sixteenth of the table");
	put_crowd(TWO, HOG + 1, ESTABLISHED(.idle = 3600));
	refuse_datagrams();
	row_expect_number(TCP_IN(TWO), HOG + 1, "connections of two");
	row_end_checked();

	fill_by_forgers(PLACES - PLACES / 16);
	fixture_map_port(IPPROTO_UDP, "0.0.0.0", 9090, v4_container_two, 91, TWO);
	row_begin_counting("what may be forged takes no place of the last sixteenth");
	row_expect_dropped(row_send(FROM_UPLINK, UPLINK, &to_two), "a datagram to the next one");
	row_expect_number(COUNTED(drop_flow_limit), 1, "drop_flow_limit");
	for (int i = 0; i < 50; i++)
		row_expect_passed(connect_to_one(40000 + i), "a TCP client's");
	row_expect_number(TCP_IN(TWO), 1, "connections of two");
	row_end_checked();

	fill_by_forgers(PLACES - PLACES / 16);
	put_crowd(TWO, HOG - 1, ESTABLISHED(.idle = 3600));
	row_begin_counting("but beside them TCP that never carried data gives way to other TCP");
	for (int i = 0; i < 50; i++) {
		begin_from(v4_client, 40000 + i);
		if (send_again(40000 + i, ACK) > REFUSALS_A_ROUND)
			row_fail("client %d is refused", i);
	}
	row_expect_number(TCP_IN(ONE), 50, "connections of one");
	row_end_checked();
}

static void share_of_network(void)
{
	char client[64];
	struct entry record =
		MAPPED(ANSWERED, IPPROTO_TCP, client, 4000, v6_host, 8080, v6_container_one, 80,
		       4000, .owner = ONE, .state = STATE_ESTABLISHED);

	start_afresh();
	for (int i = 0; i < PLACES / 4; i++) {
		snprintf(client, sizeof(client), "2001:db8:99::1:%x", i);
		fixture_put(&record);
	}
	row_begin_counting("over IPv6 a /64 is one client");
	row_expect_dropped(ask_over_ipv6(v6_client), "an address of its network");
	row_expect_passed(ask_over_ipv6("2001:db8:9a::7"), "one of another");
	row_end_checked();
}

/* A hostile container could fill another one's share by pinging its address. */
static void charged_to_beginner(void)
{
	start_afresh();
	row_begin_counting(
		"a flow to another container's own address counts for the one that began it");
	for (int turn = 0; turn < 2 * (HOG + 100); turn++) {
		int id = 1 + turn % (HOG + 100);
		const struct packet ping =
			PING4(v4_container_two, v4_container_one, id, .to_mac = MAC_CONTAINER_ONE);
		const struct packet pong =
			PONG4(v4_container_one, v4_container_two, id, .to_mac = MAC_CONTAINER_TWO);

		row_send(FROM_CONTAINER, VETH_TWO, &ping);
		row_send(FROM_CONTAINER, VETH_ONE, &pong);
		if (id == HOG + 100)
			fixture_age_flows(2);
	}
	row_expect_number(fixture_share_of(TWO).flows[ACCOUNT_OUT], HOG + 100, "begun by two");
	row_expect_number(fixture_share_of(TWO).flows[0], 0, "begun towards two");
	row_expect_number(fixture_share_of(ONE).flows[0], 0, "towards one");
	row_expect_passed(connect_to_one(40000), "a client of one");
	row_end_checked();
}

/* Every fourth place of the ring belongs to an owner with fewer. */
static void half_open_flood(void)
{
	const int newcomers = 3000;

	start_afresh();
	for (int nth = 0; nth < RING; nth++)
		put_nth(nth % 4 == 3 ? QUIET : ONE, nth, (struct entry){.stage = NEW});
	row_begin_counting("a flood pushes out half-open flows of the owner that has most");
	for (int i = 0; i < newcomers; i++)
		send_to(8080, 1000 + i, SYN);
	row_expect_number(COUNTED(flow_pushed_out), newcomers, "flow_pushed_out");
	row_expect_number(COUNTED(flow_mapping), newcomers, "flow_mapping");
	row_expect_number(fixture_share_of(QUIET).half_open[0], RING / 4,
			  "half-open flows of the smaller owner");
	row_expect_number(fixture_share_of(ONE).half_open[0], RING - RING / 4,
			  "of the flooded owner");
	row_end_checked();

	row_begin_counting("so that flows of another container become assured during the flood");
	for (int i = 0; i < 20; i++) {
		send_to(7070, 60000 + i, SYN);
		for (int forged = 0; forged < 50; forged++)
			send_from(v4_client_other, 8080, 1000 + 50 * i + forged, SYN);
		LEAVE(TCP(v4_container_quiet, 70, v4_client, 60000 + i, SYN | ACK));
		send_to(7070, 60000 + i, ACK);
	}
	row_expect_number(COUNTED(flow_promoted), 20, "flow_promoted");
	row_end_checked();
}

/* What others begin and what the container begins are two accounts. */
static void half_open_flood_of_own(void)
{
	const int own = 20;

	start_afresh();
	put_crowd(ONE, RING, (struct entry){.stage = NEW});
	row_begin_counting("a flood to a container does not push out what it begins itself");
	for (int i = 0; i < own; i++)
		LEAVE(TCP(v4_container_one, 25000 + i, v4_server, 443, SYN));
	for (int i = 0; i < RING + own; i++)
		send_from(i % 2 ? v4_client : v4_client_other, 8080, 1024 + i / 2, SYN);
	row_expect_number(fixture_share_of(ONE).half_open[1], own, "half-open flows of its own");
	row_expect_number(fixture_share_of(ONE).half_open[0], RING - own, "of others");
	row_end_checked();
}

/* A full ring of half-open flows: this many of the smaller owner, the others of one that has
 * flooded */
static void ring_fill(int of_quiet)
{
	start_afresh();
	for (int nth = 0; nth < RING; nth++)
		put_nth(nth < of_quiet ? QUIET : ONE, nth, (struct entry){.stage = NEW});
}

/* The next places of the ring all belong to an owner that began many at once. */
static void half_open_burst(void)
{
	const int burst = 12, newcomers = 2 * RING;

	ring_fill(burst);
	row_begin_counting("not even if an owner with fewer began many at once");
	for (int i = 0; i < newcomers; i++)
		send_from(i % 2 ? v4_client : v4_client_other, 8080, 1024 + i / 2, SYN);
	row_expect_number(COUNTED(flow_pushed_out), newcomers, "flow_pushed_out");
	row_expect_number(fixture_share_of(QUIET).half_open[0], burst,
			  "half-open flows of the smaller owner");
	row_end_checked();

	ring_fill(1000);
	row_begin_counting(
		"a flow that finds only those of smaller owners takes a place elsewhere");
	for (int i = 0; i < 1000; i++)
		send_to(8080, 1000 + i, SYN);
	row_expect_number(COUNTED(drop_table_full), 0, "drop_table_full");
	row_expect_number(fixture_share_of(QUIET).half_open[0], 1000,
			  "half-open flows of the smaller owner");
	row_end_checked();

	ring_fill(RING / 2 - 1);
	row_begin_counting(
		"after floods of two owners both can begin flows, where they stand alike");
	for (int i = 0; i < 1000; i++)
		send_to(8080, 1000 + i, SYN);
	row_expect_number(COUNTED(drop_table_full) > 50, 0, "more than 50 of 1000 refused");
	row_expect_number(fixture_share_of(QUIET).half_open[0], RING / 2 - 1,
			  "half-open flows of the smaller owner");
	row_end_checked();

	ring_fill(RING / 4);
	fixture_renew(ONE);
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_one, 80, ONE);
	row_begin_counting("half-open flows of a predecessor in the slot do not count");
	send_to(8080, 1000, SYN);
	row_expect_number(COUNTED(flow_pushed_out), 1, "flow_pushed_out");
	row_expect_number(fixture_share_of(ONE).half_open[0], 1, "of the successor");
	row_end_checked();
}

/* Every fourth place of the ring belongs to an owner with fewer, the others to a deleted one. */
static void half_open_of_gone(void)
{
	const int newcomers = RING / 2;

	start_afresh();
	for (int nth = 0; nth < RING; nth++)
		put_nth(nth % 4 == 3 ? QUIET : ONE, nth, (struct entry){.stage = NEW});
	fixture_renew(ONE);
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_one, 80, ONE);
	send_to(8080, 1000, SYN);
	row_begin_counting(
		"half-open flows of a deleted owner are pushed out first, however many its "
		"successor has");
	for (int i = 0; i < newcomers; i++)
		send_to(5050, 1000 + i, SYN);
	row_expect_number(COUNTED(flow_pushed_out), newcomers, "flow_pushed_out");
	row_expect_number(fixture_share_of(QUIET).half_open[0], RING / 4,
			  "half-open flows of the smaller owner");
	row_expect_number(fixture_share_of(ONE).half_open[0], 1, "of the successor");
	row_end_checked();

	row_begin_counting("also without a successor");
	fixture_kill(ROUTED);
	for (int i = 0; i < newcomers; i++)
		send_to(7070, 1000 + i, SYN);
	row_expect_number(fixture_share_of(QUIET).half_open[0], RING / 4 + newcomers,
			  "half-open flows of the smaller owner");
	row_expect_number(fixture_share_of(ONE).half_open[0], 1, "of one");
	row_end_checked();
}

void table_rows(void)
{
	full_table();
	nearly_full_table();
	who_gives_way();
	without_pressure();
	limit_of_one();
	limit_of_half_open();
	limit_of_renewed();
	search_in_steps();
	one_takes_half();
	others_take_their_parts();
	hogs_become_none();
	share_of_client();
	share_of_network();
	share_of_proven();
	half_closed_at_limit();
	forgers_of_many();
	uncounted_place();
	charged_to_beginner();
	half_open_flood();
	half_open_flood_of_own();
	half_open_burst();
	half_open_of_gone();
	fixture_reset();
}

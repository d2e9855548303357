/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_share_rows.c - each container's share of the masquerade ports towards one server port. */
#include <linux/pkt_cls.h>

#include "row.h"

#define SET 4096            /* ports; smaller sets are not shared out */
#define RESERVED (SET / 16) /* for containers that have few */
#define FIRST_PORT 20000
#define SPREAD 1597 /* odd, so that its multiples are all ports of the set */
#define TRIES 5

static int ask_from(const char *container, int port, int server_port)
{
	return LEAVE(UDP(container, port, v4_server, server_port));
}

static int answer_to(int port)
{
	return ARRIVE(UDP(v4_server, 53, v4_host, port));
}

/* Sends a datagram from each of so many ports; returns how many got a masquerade port. */
static int take_from(const char *container, int first, int times)
{
	int taken = 0;

	for (int i = 0; i < times; i++)
		taken += ask_from(container, first + i, 53) == TC_ACT_UNSPEC;
	return taken;
}

static int take(const char *container, int times)
{
	return take_from(container, 2000, times);
}

/* How many ports a container has towards a port of the server */
static int ports_at(enum container container, int server_port)
{
	return fixture_ports_of(container, v4_server, server_port, v4_host);
}

static int ports_of(enum container container)
{
	return ports_at(container, 53);
}

static const struct entry new_of_one =
	MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 0, v4_server, 53, v4_host, 0, .owner = ONE);
static const struct entry new_of_two =
	MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 0, v4_server, 53, v4_host, 0, .owner = TWO);

/* Has as many records like this, whose ports are spread over the set as those that the search
 * chooses. To send from thousands takes an emulated kernel longer than the time after which their
 * flows give way. */
static void put_ports(struct entry record, int begin, int end)
{
	for (int i = begin; i < end; i++) {
		record.inside_port = 10000 + i;
		record.external_port = FIRST_PORT + i * SPREAD % SET;
		fixture_put(&record);
	}
}

static void set_ports(int count)
{
	host_close_sockets();
	fixture_reset();
	fixture_set_masquerade_ports(FIRST_PORT, (uint16_t)(FIRST_PORT + count - 1));
}

static void shares_of_ports(void)
{
	int taken;

	set_ports(SET);
	put_ports(new_of_one, 0, SET - 2 * RESERVED);
	row_begin_counting("one container can have all ports towards one server port but the last "
			   "sixteenth");
	/* More than there are, because the search may miss the last free ones. */
	row_expect_number(take(v4_container_one, SET / 4), RESERVED, "ports taken");
	row_end_checked();

	row_begin_counting("which is reserved for other containers");
	taken = take(v4_container_two, 100);
	if (taken < 85)
		row_fail("another one gets %d of 100", taken);
	taken = take(v4_container_routed, 50);
	if (taken < 35)
		row_fail("the third gets %d of 50", taken);
	row_end_checked();

	row_begin_counting("towards another port of the server there are as many again");
	row_expect_passed(ask_from(v4_container_one, 2000, 54), "another port");
	row_end_checked();
}

static void given_up_ports(void)
{
	set_ports(SET);
	put_ports(new_of_one, 0, SET - RESERVED);
	row_begin_counting(
		"a container that has its share gets no other's port, nor its own again");
	row_expect_dropped(ask_from(v4_container_one, 7000, 53), "one more");
	row_expect_number(COUNTED(flow_evicted), 0, "flow_evicted");
	row_end_checked();

	row_begin_counting("unanswered UDP flows to port 53 give up their port after 10 s");
	fixture_age_flows(11);
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_one, 7001, 53), "one more");
	row_expect_number(COUNTED(flow_evicted), 1, "flow_evicted");
	row_expect_number(COUNTED(flow_masquerade), 1, "flow_masquerade");
	row_end_checked();
}

/* Answers all that were asked. */
static void answer_all(void)
{
	for (int port = FIRST_PORT; port < FIRST_PORT + SET; port++)
		answer_to(port);
}

/* Fills the set with questions, the oldest of which are five seconds old when one more is sent,
 * however long it takes to put them all; returns false when a second began meanwhile. */
static bool oldest_are_five_seconds_old(int *verdict)
{
	uint32_t oldest, second;

	set_ports(SET);
	oldest = fixture_second();
	put_ports(new_of_two, 0, 2 * RESERVED);
	put_ports(new_of_one, 2 * RESERVED, SET - RESERVED);
	fixture_wait_for_next_second();
	second = fixture_second();
	fixture_age_flows(oldest + 5 - second); /* makes them younger when more have passed */
	*verdict = ask_from(v4_container_two, 30000, 53);
	return fixture_second() == second;
}

/* One that has as many as the reserve, and more, is not small, but has fewer than the other. */
static void fullest_pays(void)
{
	int before, verdict = 0;

	set_ports(SET);
	take(v4_container_two, 2 * RESERVED);
	take(v4_container_one, SET);
	answer_all();
	row_begin_counting("the fullest container's answered UDP flows give way at once to one "
			   "that has fewer, never the reverse");
	fixture_age_flows(2);
	fixture_wait_for_next_second();
	row_expect_number(take_from(v4_container_two, 30000, 300), 300, "more of the smaller one");
	row_expect_number(COUNTED(flow_evicted), 300, "flow_evicted");
	before = ports_of(TWO);
	row_expect_number(take_from(v4_container_one, 30000, 300), 300, "more of the fullest");
	row_expect_number(ports_of(TWO), before, "ports of the smaller one");
	row_end_checked();

	row_begin_counting("but not those that may still be answered, for 5 s");
	for (int i = 0; i < ROW_TRIES && !oldest_are_five_seconds_old(&verdict); i++)
		;
	row_expect_dropped(verdict, "the first");
	fixture_age_flows(2);
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_two, 30001, 53), "the second");
	row_end_checked();
}

/* What is idle for longer goes to anyone: but who has used its share leaves it to the others. */
static void fullest_leaves(void)
{
	int before;

	set_ports(SET);
	put_ports(new_of_two, SET - RESERVED, SET - RESERVED / 2);
	fixture_age_flows(11);
	put_ports(new_of_one, 0, SET - RESERVED);
	row_begin_counting("what another one has given up is not added to a used share");
	before = ports_of(ONE);
	take_from(v4_container_one, 30000, 300);
	row_expect_number(ports_of(ONE), before, "ports of the fullest");
	row_expect_number(take_from(v4_container_two, 30000, 100), 100, "of the other one");
	row_end_checked();
}

/* Every sixteenth port is free. */
static void scattered_ports(void)
{
	struct entry record = MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 0, v4_server, 53,
					  v4_host, 0, .owner = ONE);

	set_ports(SET);
	for (int i = 0; i < SET; i++) {
		record.inside_port = 2000 + i;
		record.external_port = FIRST_PORT + i;
		if (i % 16)
			fixture_put(&record);
	}
	row_begin_counting("no search ends while a port in thirty is free");
	row_expect_number(take(v4_container_two, RESERVED / 2), RESERVED / 2, "ports");
	row_end_checked();

	row_begin_counting("and no assured flow pays");
	row_expect_number(COUNTED(flow_evicted), 0, "flow_evicted");
	row_expect_number(ports_of(ONE), SET - RESERVED, "ports of the fullest");
	row_end_checked();
}

static void answered_ports(int server_port, int seconds, const char *says)
{
	set_ports(3);
	LEAVE(UDP(v4_container_two, 2000, v4_server, server_port));
	LEAVE(UDP(v4_container_one, 2001, v4_server, server_port));
	LEAVE(UDP(v4_container_one, 2002, v4_server, server_port));
	for (int port = FIRST_PORT; port < FIRST_PORT + 3; port++)
		ARRIVE(UDP(v4_server, server_port, v4_host, port));
	fixture_age_flows((uint32_t)seconds - 1);
	row_begin_counting(says);
	row_expect_passed(ask_from(v4_container_one, 5000, server_port), "one in place of its own");
	row_expect_number(ports_at(TWO, server_port), 1, "ports of the other one");
	fixture_age_flows(2);
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_one, 5001, server_port), "another");
	row_expect_passed(ask_from(v4_container_one, 5002, server_port), "and another");
	row_expect_number(ports_at(TWO, server_port), 0, "ports of the other one");
	row_expect_number(COUNTED(flow_evicted), 3, "flow_evicted");
	row_end_checked();
}

static const struct entry of_two[] = {
	MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_two, 2000, v4_server, 53, v4_host,
		    FIRST_PORT, .owner = TWO, .state = STATE_ESTABLISHED),
	MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_two, 2001, v4_server, 53, v4_host,
		    FIRST_PORT + 1, .owner = TWO, .state = STATE_ESTABLISHED),
};

/* The second try is in the same second, but ports are free by then. */
static bool refused_twice(int *first, int *again)
{
	uint32_t second;

	set_ports(2);
	fixture_put(&of_two[0]);
	fixture_put(&of_two[1]);
	second = fixture_second();
	*first = ask_from(v4_container_one, 5000, 53);
	fixture_remove(&of_two[0]);
	fixture_remove(&of_two[1]);
	*again = ask_from(v4_container_one, 5001, 53);
	return second == fixture_second();
}

static void none_left(void)
{
	int first = 0, again = 0;

	row_begin("a failed search for a port is remembered to the end of the second");
	for (int i = 0; i < TRIES && !refused_twice(&first, &again); i++)
		;
	row_expect_dropped(first, "the first");
	row_expect_dropped(again, "in the same second");
	row_end_checked();

	row_begin_counting("only for that container");
	row_expect_passed(ask_from(v4_container_two, 5002, 53), "another one");
	row_end_checked();

	row_begin_counting("and not in the next second");
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_one, 5001, 53), "the same again");
	row_end_checked();
}

/* A stray ACK must not cost a longer search than a SYN. */
static void stray_acks(void)
{
	const struct packet stray = TCP(v4_container_one, 5000, v4_server, 443, ACK);

	set_ports(SET);
	row_begin_counting("a stray ACK gets a port at the first try, as a SYN does");
	row_expect_passed(row_send(TO_UPLINK, UPLINK, &stray), "the container's");
	row_expect_number(COUNTED(masquerade_tries_1) + COUNTED(masquerade_tries_2_to_4), 1,
			  "tries");
	row_end_checked();

	row_begin_counting("a stray ACK to a mapped port takes no more than a place in the ring");
	for (int i = 0; i < 3; i++)
		row_expect_passed(ARRIVE(TCP(v4_client, 5000, v4_host, 8080, ACK)), "a client's");
	row_expect_number(COUNTED(flow_mapping), 1, "flow_mapping");
	row_expect_number(COUNTED(flow_promoted), 0, "flow_promoted");
	row_end_checked();
}

void port_share_rows(void)
{
	shares_of_ports();
	given_up_ports();
	fullest_pays();
	fullest_leaves();
	scattered_ports();
	answered_ports(53, 11, "answered UDP flows to port 53 give up their port after 10 s");
	answered_ports(5300, 31, "those to an unprivileged port after 30 s");
	none_left();
	stray_acks();
	fixture_reset();
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_share_rows.c - each container's share of the masquerade ports towards one server port. */
#include <linux/pkt_cls.h>

#include "row.h"

#define SET 4096            /* ports; smaller sets are not shared out */
#define RESERVED (SET / 16) /* for containers that have few */
#define FIRST_PORT 20000
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
static int take(const char *container, int times)
{
	int taken = 0;

	for (int i = 0; i < times; i++)
		taken += ask_from(container, 2000 + i, 53) == TC_ACT_UNSPEC;
	return taken;
}

/* More than there are, because the search may miss the last free ones. */
static void take_all(const char *container)
{
	row_expect_number(take(container, SET + SET / 4), SET - RESERVED, "ports taken");
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
	row_begin_counting(
		"[T10] one container can have all ports towards one server port but the last "
		"sixteenth");
	take_all(v4_container_one);
	row_end_checked();

	row_begin_counting("[T10] which is reserved for other containers");
	taken = take(v4_container_two, 100);
	if (taken < 85)
		row_fail("another one gets %d of 100", taken);
	taken = take(v4_container_routed, 50);
	if (taken < 35)
		row_fail("the third gets %d of 50", taken);
	row_end_checked();

	row_begin_counting("[T10] towards another port of the server there are as many again");
	row_expect_passed(ask_from(v4_container_one, 2000, 54), "another port");
	row_end_checked();
}

static void given_up_ports(void)
{
	set_ports(SET);
	row_begin_counting(
		"[T10] a container that has its share gets no other's port, nor its own again");
	take_all(v4_container_one);
	fixture_wait_for_next_second();
	row_expect_dropped(ask_from(v4_container_one, 7000, 53), "one more");
	row_expect_number(COUNTED(flow_evicted), 0, "flow_evicted");
	row_end_checked();

	row_begin_counting("[T10] unanswered UDP flows give up their port after 30 s");
	fixture_age_flows(31);
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_one, 7001, 53), "one more");
	row_expect_number(COUNTED(flow_evicted), 1, "flow_evicted");
	row_expect_number(COUNTED(flow_masquerade), 1, "flow_masquerade");
	row_end_checked();
}

static void answered_ports(void)
{
	set_ports(2);
	ask_from(v4_container_two, 2000, 53);
	ask_from(v4_container_two, 2001, 53);
	for (int port = FIRST_PORT; port < FIRST_PORT + 2; port++)
		answer_to(port);
	fixture_age_flows(31);
	row_begin_counting("[T10] answered ones do not");
	row_expect_dropped(ask_from(v4_container_one, 5000, 53), "one more");
	row_expect_number(COUNTED(flow_evicted), 0, "flow_evicted");
	row_end_checked();

	row_begin_counting("[T10] until they are dead");
	fixture_age_flows(121);
	fixture_wait_for_next_second();
	row_expect_passed(ask_from(v4_container_one, 5000, 53), "one more");
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

	row_begin("[T10] a failed search for a port is remembered to the end of the second");
	for (int i = 0; i < TRIES && !refused_twice(&first, &again); i++)
		;
	row_expect_dropped(first, "the first");
	row_expect_dropped(again, "in the same second");
	row_end_checked();

	row_begin_counting("[T10] only for that container");
	row_expect_passed(ask_from(v4_container_two, 5002, 53), "another one");
	row_end_checked();

	row_begin_counting("[T10] and not in the next second");
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
	answered_ports();
	none_left();
	stray_acks();
	fixture_reset();
}

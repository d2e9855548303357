/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lifetime_rows.c - records that are of a deleted container, idle, or without their alias. */
#include "row.h"

/* Longer than any time-out of a half-open or a UDP connection, shorter than TCP's. */
#define IDLE 1000

/* From the client to host_other's mapped port; the packets of the rows go to another address. */
#define BY_OTHER_ADDRESS(table, protocol, port) \
	MAPPED(table, protocol, v4_client, port, v4_host_other, 8080, v4_container_one, 80, port)
#define BY_ADDRESS(table, protocol, port, ...) \
	MAPPED(table, protocol, v4_client, port, v4_host, 8080, v4_container_one, 80, port, \
	       ##__VA_ARGS__)

static const struct entry mapped_other = BY_OTHER_ADDRESS(ANSWERED, IPPROTO_TCP, 40000);
static const struct entry mapped_udp_other = BY_OTHER_ADDRESS(ANSWERED, IPPROTO_UDP, 5000);
static const struct entry half_open_other = BY_OTHER_ADDRESS(NEW, IPPROTO_UDP, 5000);
static const struct entry mapped = BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000);
/* An established TCP connection may be idle for five days, and either side may go on. */
#define DAYS 431000
#define TOO_LONG 432100

static const struct entry mapped_to_two =
	MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_two, 33, 40000);
static const struct entry masqueraded_two =
	MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53, v4_host, 21000);

static const struct entry mapped_udp = BY_ADDRESS(NEW, IPPROTO_UDP, 5000);
static const struct entry masqueraded_days =
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 30000, v4_server, 443, v4_host, 30000);

static void given_older_generation(void)
{
	fixture_put_as(&mapped_to_two, TWO, true, 0, STATE_ESTABLISHED);
}

static void given_older_udp(void)
{
	fixture_put_as(&mapped_udp_other, ONE, true, 0, STATE_ESTABLISHED);
}

static void given_older_half_open(void)
{
	fixture_put_as(&half_open_other, ONE, true, 0, STATE_NEW);
}

static void given_older_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_as(&masqueraded_two, TWO, true, 0, STATE_NEW);
}

static void given_idle_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_as(&masqueraded_two, TWO, false, IDLE, STATE_NEW);
}

static void given_fresh_masquerade(void)
{
	fixture_set_masquerade_ports(21000, 21000);
	fixture_put_as(&masqueraded_two, TWO, false, 0, STATE_NEW);
}

static void given_renewed(void)
{
	fixture_renew(ONE);
}

static void given_idle_udp(void)
{
	fixture_put_as(&mapped_udp_other, ONE, false, IDLE, STATE_ESTABLISHED);
}

static void given_idle_half_open(void)
{
	fixture_put_as(&half_open_other, ONE, false, IDLE, STATE_NEW);
}

static void given_idle_tcp(void)
{
	fixture_put_as(&mapped, ONE, false, IDLE, STATE_ESTABLISHED);
}

static void given_idle_stream(void)
{
	fixture_put_as(&mapped_udp, ONE, false, 1, STATE_NEW); /* began long before */
}

static void given_tcp_of_days(void)
{
	fixture_put_as(&mapped, ONE, false, DAYS, STATE_ESTABLISHED);
}

static void given_masqueraded_of_days(void)
{
	fixture_put_as(&masqueraded_days, TWO, false, DAYS, STATE_ESTABLISHED);
}

static void given_tcp_of_too_many_days(void)
{
	fixture_put_as(&mapped_other, ONE, false, TOO_LONG, STATE_ESTABLISHED);
}

static void given_idle_closing_tcp(void)
{
	fixture_put_as(&mapped_other, ONE, false, IDLE, STATE_CLOSING);
}

static void given_half_closed(void)
{
	fixture_put_as(&mapped, ONE, false, 110, STATE_FIN);
}

static void given_long_half_closed(void)
{
	fixture_put_as(&mapped_other, ONE, false, 121, STATE_FIN);
}

static void given_idle_ping(void)
{
	static const struct entry record =
		MASQUERADED(ANSWERED, IPPROTO_ICMP, v4_container_two, 5, v4_server, 0, v4_host, 5);

	fixture_put_as(&record, TWO, false, IDLE, STATE_ESTABLISHED);
}

static const struct row void_rows[] = {
	{.says = "[i06] a record of an older generation is a miss: the mapping decides",
	 .given = given_older_udp,
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000)},
	 .counts = {"flow_mapping", "rewritten_destination"}},
	{.then = "[i06] the new container's reply",
	 LEAVES(UDP(v4_container_one, 80, v4_client, 5000)),
	 .out = UDP(v4_host, 8080, v4_client, 5000)},
	{.then = "[i06] and the next request",
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_UDP, 5000)}},
	{.says = "[i06] a half-open record of an older generation is a miss",
	 .given = given_older_half_open,
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000)}},
	{.says = "[i06] a reply of an older generation is masqueraded like a new flow",
	 .given = given_older_generation,
	 LEAVES(TCP(v4_container_two, 33, v4_client, 40000, ACK)),
	 .out = TCP(v4_host, 33, v4_client, 40000, ACK),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "[i06] a masquerade port of an older generation is free",
	 .given = given_older_masquerade,
	 LEAVES(UDP(v4_container_one, 21000, v4_server, 53)),
	 .out = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "[i06] a mapped connection",
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000)}},
	{.then = "[i06] ends at once when its container is added anew",
	 .given = given_renewed,
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080))},
};

static const struct row idle_rows[] = {
	{.says = "an idle UDP connection is a miss",
	 .given = given_idle_udp,
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000)}},
	{.says = "an idle half-open one is a miss",
	 .given = given_idle_half_open,
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080)),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000)}},
	{.says = "an idle ping is a miss",
	 .given = given_idle_ping,
	 ARRIVES(PONG4(v4_server, v4_host, 5)),
	 .flows = {MASQUERADED(ANSWERED, IPPROTO_ICMP, v4_container_two, 5, v4_server, 0, v4_host,
			       5)}},
	{.says = "an established TCP connection as idle as that still lives",
	 .given = given_idle_tcp,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000)},
	 .counts = {"rewritten_destination"}},
	{.says = "and after five days its client goes on",
	 .given = given_tcp_of_days,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000)},
	 .counts = {"rewritten_destination"}},
	{.says = "or its server does",
	 .given = given_tcp_of_days,
	 LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK)),
	 .out = TCP(v4_host, 8080, v4_client, 40000, ACK),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000)}},
	{.says = "or the server of a masqueraded container",
	 .given = given_masqueraded_of_days,
	 ARRIVES(TCP(v4_server, 443, v4_host, 30000, ACK)),
	 .out = TCP(v4_server, 443, v4_container_two, 30000, ACK),
	 .flows = {THIS_MASQUERADED(ANSWERED)}},
	{.says = "later it is a miss",
	 .given = given_tcp_of_too_many_days,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_TCP, 40000)}},
	{.says = "UDP replies that go on for two seconds make a connection assured",
	 .given = given_idle_stream,
	 LEAVES(UDP(v4_container_one, 80, v4_client, 5000)),
	 .out = UDP(v4_host, 8080, v4_client, 5000),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_UDP, 5000)},
	 .counts = {"flow_promoted"}},
	{.says = "a closed one as idle as that is a miss",
	 .given = given_idle_closing_tcp,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_TCP, 40000)}},
	{.says = "a half-closed one lives for two minutes",
	 .given = given_half_closed,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .state = STATE_FIN)},
	 .counts = {"rewritten_destination"}},
	{.says = "and is a miss then",
	 .given = given_long_half_closed,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {BY_ADDRESS(NEW, IPPROTO_TCP, 40000)}},
	{.says = "an idle connection's masquerade port is free",
	 .given = given_idle_masquerade,
	 LEAVES(UDP(v4_container_one, 21000, v4_server, 53)),
	 .out = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "[i10] a recent one's is not",
	 .given = given_fresh_masquerade,
	 LEAVES(UDP(v4_container_one, 21000, v4_server, 53)),
	 DROPPED_AS("drop_no_tuple"),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53, v4_host,
			       21000)}},
};

#define MASQUERADED_ONE \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 40000, v4_server, 443, v4_host, 23456)
#define MASQUERADED_TWO \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 40000, v4_server, 443, v4_host, 23456)
#define MAPPED_MOVED \
	MAPPED(ANSWERED, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80, 50000)
#define HOSTS OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53)

static const struct entry masqueraded_one = MASQUERADED_ONE;
static const struct entry masqueraded_with_its_port = MASQUERADED_TWO;
static const struct entry mapped_moved = MAPPED_MOVED;
static const struct entry hosts = HOSTS;

static void given_without_alias(void)
{
	fixture_put_as(&masqueraded_one, ONE, false, 30, STATE_ESTABLISHED);
	fixture_lose_alias(&masqueraded_one);
}

static void given_moved_without_alias(void)
{
	fixture_put_as(&mapped_moved, ONE, false, 30, STATE_ESTABLISHED);
	fixture_lose_alias(&mapped_moved);
}

static void given_hosts_without_alias(void)
{
	host_bind_udp(v4_host, 8080);
	fixture_put_as(&hosts, NOBODY, false, 30, STATE_NEW);
	fixture_lose_alias(&hosts);
}

static void given_alias_taken(void)
{
	given_without_alias();
	fixture_put_as(&masqueraded_with_its_port, TWO, false, 30, STATE_ESTABLISHED);
}

static const struct row alias_rows[] = {
	{.says = "[i05] an alias that is lost is put back in the next second, with the same port",
	 .given = given_without_alias,
	 LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK)),
	 .out = TCP(v4_host, 23456, v4_server, 443, ACK),
	 .flows = {MASQUERADED_ONE},
	 .counts = {"rewritten_source"}},
	{.then = "[i05] so that the reply reaches the container",
	 ARRIVES(TCP(v4_server, 443, v4_host, 23456, ACK)),
	 .out = TCP(v4_server, 443, v4_container_one, 40000, ACK),
	 .counts = {"rewritten_destination"}},
	{.says = "[i05] that of a client whose port was changed",
	 .given = given_moved_without_alias,
	 LEAVES(TCP(v6_container_one, 80, v6_client, 50000, ACK)),
	 .out = TCP(v6_host, 8080, v6_client, 40000, ACK),
	 .flows = {MAPPED_MOVED},
	 .counts = {"rewritten_source"}},
	{.then = "[i05] so that the client's next packet finds it",
	 ARRIVES(TCP(v6_client, 40000, v6_host, 8080, ACK)),
	 .out = TCP(v6_client, 50000, v6_container_one, 80, ACK),
	 .counts = {"rewritten_destination"}},
	{.says = "[i08] that of a socket of the host",
	 .given = given_hosts_without_alias,
	 .of_the_host = true,
	 LEAVES(UDP(v4_host, 8080, v4_server, 53)),
	 .flows = {HOSTS}},
	{.says = "[i10] if another connection has the tuple by now, the connection ends, and a new"
		 " one gets another port",
	 .given = given_alias_taken,
	 LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK)),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, ACK),
	 .flows = {MASQUERADED_TWO, THIS_MASQUERADED(NEW)},
	 .counts = {"flow_masquerade", "flow_moved_port", "rewritten_source"}},
	{.then = "[i10] replies to the old port belong to the other",
	 ARRIVES(TCP(v4_server, 443, v4_host, 23456, ACK)),
	 .out = TCP(v4_server, 443, v4_container_two, 40000, ACK),
	 .counts = {"rewritten_destination"}},
};

void lifetime_rows(void)
{
	ROWS_RUN(void_rows);
	ROWS_RUN(idle_rows);
	ROWS_RUN(alias_rows);
}

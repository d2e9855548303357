/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lifetime_rows.c - records that are of a deleted container, idle, or without their alias. */
#include "row.h"

/* Longer than any time-out of a half-open or a UDP connection, shorter than TCP's. */
#define IDLE 1000

/* An established TCP connection may be idle for five days, and either side may go on. */
#define DAYS 431000
#define TOO_LONG 432100

/* From the client to host_other's mapped port; the packets of the rows go to another address. */
#define BY_OTHER_ADDRESS(table, protocol, port, ...) \
	MAPPED(table, protocol, v4_client, port, v4_host_other, 8080, v4_container_one, 80, port, \
	       .owner = ONE, ##__VA_ARGS__)
#define BY_ADDRESS(table, protocol, port, ...) \
	MAPPED(table, protocol, v4_client, port, v4_host, 8080, v4_container_one, 80, port, \
	       .owner = ONE, ##__VA_ARGS__)
#define MASQUERADED_OF_TWO(...) \
	MASQUERADED(NEW, IPPROTO_UDP, v4_container_two, 21000, v4_server, 53, v4_host, 21000, \
		    .owner = TWO, ##__VA_ARGS__)
#define HALF_CLOSED_OF_TWO(...) \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 21000, v4_server, 443, v4_host, \
		    21000, .owner = TWO, .state = STATE_FIN, ##__VA_ARGS__)
#define ONE_PORT .masquerade_ports = {21000, 21000}

static const struct row void_rows[] = {
	{.says = "a record of an older generation is a miss: the mapping decides",
	 .holds = {BY_OTHER_ADDRESS(ANSWERED, IPPROTO_UDP, 5000, .older_generation = true)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .counts = {"flow_mapping", "rewritten_destination"}},
	{.then = "the new container's reply",
	 AS(v4_host, 8080, LEAVES(UDP(v4_container_one, 80, v4_client, 5000)))},
	{.then = "and the next request",
	 AFTER(fixture_let_last, ONE),
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .flows = {THIS_MAPPED(ANSWERED)}},
	{.says = "a half-open record of an older generation is a miss",
	 .holds = {BY_OTHER_ADDRESS(NEW, IPPROTO_UDP, 5000, .older_generation = true)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
	{.says = "a reply of an older generation is masqueraded like a new flow",
	 .holds = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_two,
			  33, 40000, .owner = TWO, .older_generation = true)},
	 MASQUERADED_AS(v4_host, 33, LEAVES(TCP(v4_container_two, 33, v4_client, 40000, ACK)))},
	{.says = "a masquerade port of an older generation is free",
	 ONE_PORT,
	 .holds = {MASQUERADED_OF_TWO(.older_generation = true)},
	 MASQUERADED_AS(v4_host, 21000, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "a mapped connection",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
	{.then = "ends at once when its container is added anew",
	 AFTER(fixture_renew, ONE),
	 ARRIVES(UDP(v4_client, 5000, v4_host, 8080))},
};

static const struct row idle_rows[] = {
	{.says = "an idle UDP connection is a miss",
	 .holds = {BY_OTHER_ADDRESS(ANSWERED, IPPROTO_UDP, 5000, .idle = IDLE)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
	{.says = "an idle half-open one is a miss",
	 .holds = {BY_OTHER_ADDRESS(NEW, IPPROTO_UDP, 5000, .idle = IDLE)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
	{.says = "an idle ping is a miss",
	 .holds = {MASQUERADED(ANSWERED, IPPROTO_ICMP, v4_container_two, 5, v4_server, 0, v4_host,
			       5, .owner = TWO, .idle = IDLE)},
	 ARRIVES(PONG4(v4_server, v4_host, 5))},
	{.says = "an established TCP connection as idle as that still lives",
	 .holds = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = IDLE)},
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .counts = {"rewritten_destination"}},
	{.says = "and after five days its client goes on",
	 .holds = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = DAYS)},
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .counts = {"rewritten_destination"}},
	{.says = "or its server does",
	 .holds = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = DAYS)},
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK)))},
	{.says = "or the server of a masqueraded container",
	 .holds = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 30000, v4_server, 443,
			       v4_host, 30000, .owner = TWO, .idle = DAYS)},
	 TO(v4_container_two, 30000, ARRIVES(TCP(v4_server, 443, v4_host, 30000, ACK)))},
	{.says = "later it is a miss",
	 .holds = {BY_OTHER_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = TOO_LONG)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)))},
	{.says = "a UDP request one second after the first does not make a connection assured",
	 .holds = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000, .idle = 1, .replied = true)},
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .flows = {THIS_MAPPED(NEW)}},
	{.says = "one two seconds after it does, as with netfilter",
	 .holds = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000, .idle = 2, .replied = true)},
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .flows = {THIS_MAPPED(ANSWERED)},
	 .counts = {"flow_promoted"}},
	{.says = "but not if nobody has answered",
	 .holds = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000, .idle = 2)},
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .flows = {THIS_MAPPED(NEW)}},
	{.says = "UDP replies that go on for two seconds make a connection assured",
	 .holds = {BY_ADDRESS(NEW, IPPROTO_UDP, 5000, .idle = 2)},
	 AS(v4_host, 8080, LEAVES(UDP(v4_container_one, 80, v4_client, 5000))),
	 .flows = {THIS_MAPPED(ANSWERED)},
	 .counts = {"flow_promoted"}},
	{.says = "a closed one as idle as that is a miss",
	 .holds = {BY_OTHER_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = IDLE,
				    .state = STATE_CLOSING)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.says = "a half-closed one lives for two hours and four minutes",
	 .holds = {BY_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = 7430, .state = STATE_FIN)},
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .counts = {"rewritten_destination"}},
	{.says = "and is a miss then",
	 .holds = {BY_OTHER_ADDRESS(ANSWERED, IPPROTO_TCP, 40000, .idle = 7441,
				    .state = STATE_FIN)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)))},
	{.says = "an idle connection's masquerade port is free",
	 ONE_PORT,
	 .holds = {MASQUERADED_OF_TWO(.idle = IDLE)},
	 MASQUERADED_AS(v4_host, 21000, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "that of half-closed TCP is free after two minutes where all others are taken",
	 ONE_PORT,
	 .holds = {HALF_CLOSED_OF_TWO(.idle = 121)},
	 MASQUERADED_AS(v4_host, 21000, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "and not before",
	 ONE_PORT,
	 .holds = {HALF_CLOSED_OF_TWO(.idle = 110)},
	 LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "a recent one's is not",
	 ONE_PORT,
	 .holds = {MASQUERADED_OF_TWO()},
	 LEAVES(UDP(v4_container_one, 21000, v4_server, 53)),
	 DROPPED_AS("drop_no_tuple")},
};

#define MASQUERADED_ONE \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 40000, v4_server, 443, v4_host, \
		    23456, .owner = ONE, .idle = 30)
#define MASQUERADED_TWO \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 40000, v4_server, 443, v4_host, \
		    23456, .owner = TWO, .idle = 30)
#define MAPPED_MOVED \
	MAPPED(ANSWERED, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80, \
	       50000, .owner = ONE, .idle = 30)
#define HOSTS OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53, .idle = 30)

static const struct row alias_rows[] = {
	{.says = "an alias that is lost is put back in the next second, with the same port",
	 .holds = {MASQUERADED_ONE},
	 .loses_alias = true,
	 AS(v4_host, 23456, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK))),
	 .counts = {"rewritten_source"}},
	{.then = "so that the reply reaches the container",
	 TO(v4_container_one, 40000, ARRIVES(TCP(v4_server, 443, v4_host, 23456, ACK))),
	 .counts = {"rewritten_destination"}},
	{.says = "that of a client whose port was changed",
	 .holds = {MAPPED_MOVED},
	 .loses_alias = true,
	 LEAVES(TCP(v6_container_one, 80, v6_client, 50000, ACK)),
	 .out = TCP(v6_host, 8080, v6_client, 40000, ACK),
	 .counts = {"rewritten_source"}},
	{.then = "so that the client's next packet finds it",
	 ARRIVES(TCP(v6_client, 40000, v6_host, 8080, ACK)),
	 .out = TCP(v6_client, 50000, v6_container_one, 80, ACK),
	 .counts = {"rewritten_destination"}},
	{.says = "that of a socket of the host",
	 SOCKET(UDP, v4_host, 8080),
	 .holds = {HOSTS},
	 .loses_alias = true,
	 OF_THE_HOST(LEAVES(UDP(v4_host, 8080, v4_server, 53)))},
	{.says = "if another connection has the tuple by now, the connection ends, and a new"
		 " one gets another port",
	 .holds = {MASQUERADED_ONE, MASQUERADED_TWO},
	 .loses_alias = true,
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK))),
	 .flows = {MASQUERADED_TWO, THIS_MASQUERADED(NEW)},
	 .counts = {"flow_masquerade", "flow_moved_port", "rewritten_source"}},
	{.then = "replies to the old port belong to the other",
	 TO(v4_container_two, 40000, ARRIVES(TCP(v4_server, 443, v4_host, 23456, ACK))),
	 .counts = {"rewritten_destination"}},
};

void lifetime_rows(void)
{
	ROWS_RUN(void_rows);
	ROWS_RUN(idle_rows);
	ROWS_RUN(alias_rows);
}

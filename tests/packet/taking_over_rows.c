/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* taking_over_rows.c - while an upgrade takes connections over: those that are known go on, no
 * other begins, and no packet leaves untranslated for want of one. */
#include "row.h"

#define WAITS .verdict = DROPPED, .counts = {"drop_taking_over"}

static const struct row rows[] = {
	{.says = "while connections are taken over, a SYN to a mapped port waits",
	 .given = fixture_take_over,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 WAITS},
	{.says = "and data that may be of a connection not known yet, to the port",
	 .given = fixture_take_over,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 WAITS},
	{.says = "and data from the port",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, ACK),
	 WAITS},
	{.says = "and a datagram that would be masqueraded",
	 .given = fixture_take_over,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 25000, v4_server, 53),
	 WAITS},
	{.says = "and one of a container without masquerade",
	 .given = fixture_take_over,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_quiet, 25000, v4_server, 53),
	 WAITS},
	{.says = "and one of the host from a published port",
	 .given = fixture_take_over,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 8080, v4_server, 53),
	 WAITS},
	{.says = "what is forwarded for others passes",
	 .given = fixture_take_over,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_client, 40000, v4_server, 53)},
	{.says = "a masqueraded connection begins before",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 25000, v4_server, 53),
	 .out = UDP(v4_host, 25000, v4_server, 53),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host,
			       25000)},
	 .afterwards = fixture_take_over},
	{.says = "and goes on: its reply comes in",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 25000),
	 .out = UDP(v4_server, 53, v4_container_one, 25000)},
	{.says = "and its next datagram leaves",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 25000, v4_server, 53),
	 .out = UDP(v4_host, 25000, v4_server, 53),
	 .flows_unchecked = true},
};

void taking_over_rows(void)
{
	ROWS_RUN(rows);
}

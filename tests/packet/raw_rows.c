/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * raw_rows.c - packets that begin with the IP header: tun, WireGuard, PPP.
 *
 * The kernel takes the ethertype of a test packet from bytes 12 and 13, which are part of
 * the source address here. So sources are 8.0.x.x (0x0800) and 2001:db8:86dd::x (0x86dd).
 */
#include "row.h"

#define v4_peer "8.0.0.7"
#define v4_peer_other "8.0.0.8"
#define v6_peer "2001:db8:86dd::7"
#define v4_inside "8.0.1.2" /* a container's */
#define v6_inside "2001:db8:86dd:1::2"

static void containers_with_odd_addresses(void)
{
	fixture_set_endpoint(v4_inside, ONE, 24, true);
	fixture_set_endpoint(v6_inside, ONE, 64, true);
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 8080, v4_inside, 80, ONE);
	fixture_map_port(IPPROTO_UDP, "::", 8080, v6_inside, 80, ONE);
}

static const struct row rows[] = {
	{.says = "TCP to a mapped port, without a link header",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = TCP(v4_peer, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_peer, 40000, v4_inside, 80, SYN),
	 .flows = {THIS_MAPPED(NEW)}},
	{.then = "its answer gets the host's address",
	 AT(TO_UPLINK_RAW, UPLINK),
	 .in = TCP(v4_inside, 80, v4_peer, 40000, SYN | ACK),
	 .out = TCP(v4_host, 8080, v4_peer, 40000, SYN | ACK)},
	{.says = "UDP to a mapped port, IPv6",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = UDP(v6_peer, 5000, v6_host, 8080),
	 .out = UDP(v6_peer, 5000, v6_inside, 80),
	 .flows = {THIS_MAPPED(NEW)}},
	{.then = "its answer",
	 AT(TO_UPLINK_RAW, UPLINK),
	 .in = UDP(v6_inside, 80, v6_peer, 5000),
	 .out = UDP(v6_host, 8080, v6_peer, 5000)},
	{.then = "an error about it",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = ERROR6(1, 4, v6_peer, v6_host, UDP(v6_host, 8080, v6_peer, 5000)),
	 .out = ERROR6(1, 4, v6_peer, v6_inside, UDP(v6_inside, 80, v6_peer, 5000))},
	{.says = "a container's datagram gets the uplink's address",
	 AT(TO_UPLINK_RAW, UPLINK),
	 .in = UDP(v4_inside, 25000, v4_server, 53),
	 .out = UDP(v4_host, 25000, v4_server, 53),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "a packet that cannot be translated does not leave there either",
	 AT(TO_UPLINK_RAW, UPLINK),
	 .in = {.protocol = 33, .from = v4_inside, .to = v4_server, .payload = 40},
	 DROPPED_AS("drop_untranslatable")},
	{.says = "without a link header: a port that is not mapped",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = TCP(v4_peer, 40000, v4_host, 8081, SYN)},
	{.says = "without a link header: the mapped port of another machine",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = TCP(v4_peer, 40000, v4_elsewhere, 8080, SYN)},
	{.says = "a header that says IP version 6 where IPv4 is announced",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = TCP(v4_peer_other, 40000, v4_host, 8080, SYN, .ip_version = 6, .payload = 60)},
};

void raw_rows(void)
{
	ROWS_RUN_GIVEN(containers_with_odd_addresses, rows);
}

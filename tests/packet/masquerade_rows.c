/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* masquerade_rows.c - packets of containers that leave with the host's address, and replies. */
#include "row.h"

static void pass_eleven_seconds(enum container container)
{
	(void)container;
	fixture_age_flows(11);
}

static const struct row tcp_rows[] = {
	{IN_BOTH_FAMILIES(
		 "masqueraded TCP gets the uplink's address, and keeps a port that is in the set"),
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "rewritten_source"}},
	{.then = "the server's SYN-ACK reaches the container",
	 TO(v4_container_one, 25000, ARRIVES(TCP(v4_server, 443, v4_host, 25000, SYN | ACK))),
	 .counts = {"rewritten_destination"}},
	{.then = "the container's ACK makes the flow assured",
	 AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, ACK))),
	 .flows = {THIS_MASQUERADED(ANSWERED)},
	 .counts = {"flow_promoted"}},
	{.says = "a port outside the set is replaced by one of the set",
	 MASQUERADED_AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "a retransmitted SYN gets the same port",
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN))),
	 .counts = {"rewritten_source"}},
	{.then = "its reply goes to the container's port",
	 TO(v4_container_one, 40000, ARRIVES(TCP(v4_server, 443, v4_host, CHOSEN, SYN | ACK)))},
	{.then = "a packet from another port of the server is no reply",
	 ARRIVES(TCP(v4_server, 444, v4_host, CHOSEN, SYN | ACK))},
	{.says = "a port of the container that is below 1024, which servers may demand, is kept",
	 MASQUERADED_AS(v4_host, 80, LEAVES(TCP(v4_container_one, 80, v4_server, 443, SYN)))},
	{IN_BOTH_FAMILIES("through the second uplink, with that one's address"),
	 MASQUERADED_AS(v4_second_uplink, 25000,
			LEAVES_BY(SECOND_UPLINK,
				  TCP(v4_container_one, 25000, v4_server_second, 443, SYN)))},
	{.says = "TCP in mid-connection whose record is lost gets the host's address",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, ACK)))},
	{IN_BOTH_FAMILIES("a SYN-ACK whose SYN is not known takes no port"),
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN | ACK)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a late RST gets the host's address, too",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, RST)))},
	{.then = "but has its port for ten seconds only",
	 AFTER(pass_eleven_seconds, ONE),
	 .flows_unchecked = true,
	 ARRIVES(TCP(v4_server, 443, v4_host, 25000, ACK))},
};

static const struct row udp_rows[] = {
	{.says = "masqueraded UDP",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53))),
	 .counts = {"flow_masquerade"}},
	{.then = "a reply leaves the flow half-open",
	 TO(v4_container_one, 25000, ARRIVES(UDP(v4_server, 53, v4_host, 25000))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{IN_BOTH_FAMILIES("masqueraded UDP, checksum 0, another port"),
	 MASQUERADED_AS(
		 v4_host, CHOSEN,
		 LEAVES(UDP(v4_container_one, 50000, v4_server, 53, .without_checksum = true)))},
	{.then = "its reply, with a checksum",
	 TO(v4_container_one, 50000, ARRIVES(UDP(v4_server, 53, v4_host, CHOSEN))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "the same port again for another destination",
	 AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_elsewhere, 53))),
	 .adds = THIS_MASQUERADED(NEW)},
};

/* A fragment of a datagram that the checksum covers as a whole */
#define COVERED(which, offset, size) \
	.coverage = 600, .payload = 592, .fragment = which, .piece_offset = offset, \
	.piece_size = size

static const struct row udp_lite_rows[] = {
	{.says = "a masqueraded container's UDP-Lite: the checksum covers all",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP_LITE(v4_container_one, 25000, v4_server, 9000))),
	 .counts = {"flow_masquerade"}},
	{.then = "the same port of another container is moved; only the header is covered",
	 AS(v4_host, CHOSEN,
	    LEAVES(UDP_LITE(v4_container_two, 25000, v4_server, 9000, .coverage = 8))),
	 .adds = THIS_MASQUERADED(NEW),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "and its answer, a part of which is covered",
	 TO(v4_container_two, 25000,
	    ARRIVES(UDP_LITE(v4_server, 9000, v4_host, CHOSEN, .payload = 321, .coverage = 20)))},
	{.then = "UDP from the same port is another flow",
	 .flows_unchecked = true,
	 AS(v4_host, 25000, LEAVES(UDP(v4_container_two, 25000, v4_server, 9000)))},
	{.says = "UDP-Lite over IPv6, with extension headers",
	 MASQUERADED_AS(v6_host, CHOSEN,
			LEAVES(UDP_LITE(v6_container_one, 9000, v6_server, 9000, .coverage = 9,
					.extensions = "hd"))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "its answer",
	 .flows_unchecked = true,
	 TO(v6_container_one, 9000, ARRIVES(UDP_LITE(v6_server, 9000, v6_host, CHOSEN)))},
	{.says = "no mapping is UDP-Lite's", ARRIVES(UDP_LITE(v4_client, 40000, v4_host, 8080))},
	{.says = "its first fragment, covered as a whole",
	 MASQUERADED_AS(v4_host, CHOSEN,
			LEAVES(UDP_LITE(v4_container_one, 9000, v4_server, 9000,
					COVERED(FIRST_FRAGMENT, 0, 400)))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "its last one",
	 AS(v4_host, 9000,
	    LEAVES(UDP_LITE(v4_container_one, 9000, v4_server, 9000,
			    COVERED(LATER_FRAGMENT, 400, 200))))},
};

static const struct row echo_rows[] = {
	{IN_BOTH_FAMILIES("a masqueraded ping keeps its identifier"),
	 MASQUERADED_AS(v4_host, 77, LEAVES(PING4(v4_container_one, v4_server, 77))),
	 .counts = {"flow_masquerade"}},
	{.then = "its answer",
	 TO(v4_container_one, 0, ARRIVES(PONG4(v4_server, v4_host, 77))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "a ping with identifier 0 gets another one: with 0 it would look like a "
		 "reply",
	 MASQUERADED_AS(v4_host, CHOSEN, LEAVES(PING4(v4_container_two, v4_server, 0))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{IN_BOTH_FAMILIES("the container pings"),
	 MASQUERADED_AS(v4_host, 77, LEAVES(PING4(v4_container_one, v4_server, 77)))},
	{.then = "another container's ping with the same identifier gets another one",
	 AS(v4_host, CHOSEN, LEAVES(PING4(v4_container_two, v4_server, 77))),
	 .adds = THIS_MASQUERADED(NEW),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "and its answer gets the container's identifier",
	 ARRIVES(PONG4(v4_server, v4_host, CHOSEN)),
	 .out = PONG4(v4_server, v4_container_two, 77)},
	{.says = "a masqueraded timestamp request keeps its identifier",
	 MASQUERADED_AS(v4_host, 78, LEAVES(STAMP4(v4_container_one, v4_server, 78))),
	 .counts = {"flow_masquerade"}},
	{.then = "its answer",
	 TO(v4_container_one, 0, ARRIVES(STAMPED4(v4_server, v4_host, 78))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "an error about it",
	 ARRIVES(ERROR(IPPROTO_ICMP, 11, 0, v4_elsewhere, v4_host, STAMP4(v4_host, v4_server, 78))),
	 .out = ERROR(IPPROTO_ICMP, 11, 0, v4_elsewhere, v4_container_one,
		      STAMP4(v4_container_one, v4_server, 78))},
	{.then = "a ping with the same identifier is of the same flow, and assures it later",
	 AFTER(fixture_let_last, ONE),
	 AS(v4_host, 78, LEAVES(PING4(v4_container_one, v4_server, 78))),
	 .flows = {THIS_MASQUERADED(ANSWERED)}},
	{.says = "the container pings",
	 MASQUERADED_AS(v4_host, 77, LEAVES(PING4(v4_container_one, v4_server, 77)))},
	{.then = "another's timestamp request with its identifier gets another one",
	 AS(v4_host, CHOSEN, LEAVES(STAMP4(v4_container_two, v4_server, 77))),
	 .adds = THIS_MASQUERADED(NEW),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "and its answer gets the container's identifier",
	 ARRIVES(STAMPED4(v4_server, v4_host, CHOSEN)),
	 .out = STAMPED4(v4_server, v4_container_two, 77)},
	{.says = "a ping to the host passes untouched", ARRIVES(PING4(v4_client, v4_host, 77))},
	{.says = "an answer to a ping of the host passes untouched",
	 ARRIVES(PONG4(v4_server, v4_host, 77))},
};

#define TWO_PORTS .masquerade_ports = {21000, 21001}
#define TWO_PORTS_AND_SOCKET(...) TWO_PORTS, SOCKET(__VA_ARGS__)

static void given_published_port(void)
{
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 21000, v4_container_two, 80, TWO);
	fixture_map_port(IPPROTO_UDP, "0.0.0.0", 21000, v4_container_two, 80, TWO);
}

static void given_exactly_published_port(void)
{
	fixture_map_port(IPPROTO_TCP, v4_host, 21000, v4_container_two, 80, TWO);
}

static void given_port_published_elsewhere(void)
{
	fixture_map_port(IPPROTO_TCP, v4_host_other, 21000, v4_container_two, 80, TWO);
	fixture_map_port(IPPROTO_UDP, "0.0.0.0", 21000, v4_container_two, 80, TWO);
	fixture_map_port(IPPROTO_TCP, "::", 21000, v6_container_two, 80, TWO);
}

static const struct row port_rows[] = {
	{.says = "a published port is replaced",
	 TWO_PORTS,
	 .given = given_published_port,
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.says = "a published UDP port too",
	 TWO_PORTS,
	 .given = given_published_port,
	 MASQUERADED_AS(v4_host, 21001, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "a port published at that address only is replaced",
	 TWO_PORTS,
	 .given = given_exactly_published_port,
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "a port that is or was published anywhere is avoided while others are free",
	 TWO_PORTS,
	 .given = given_port_published_elsewhere,
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "a port on which the host listens is not taken",
	 TWO_PORTS_AND_SOCKET(TCP, "0.0.0.0", 21000),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "a port on which the host listens, IPv6",
	 TWO_PORTS_AND_SOCKET(TCP, v6_host, 21000),
	 MASQUERADED_AS(v6_host, 21001, LEAVES(TCP(v6_container_one, 21000, v6_server, 443, SYN)))},
	{.says = "a port from which the host is connected to the same server is not taken",
	 TWO_PORTS_AND_SOCKET(TCP, v4_host, 21000, WITH_PEER(v4_server, 443)),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "for another destination it is kept",
	 TWO_PORTS_AND_SOCKET(TCP, v4_host, 21000, WITH_PEER(v4_server, 443)),
	 MASQUERADED_AS(v4_host, 21000,
			LEAVES(TCP(v4_container_one, 21000, v4_elsewhere, 443, SYN)))},
	{.says = "the port of a UDP socket of the host is not taken",
	 TWO_PORTS_AND_SOCKET(UDP, v4_host, 21000),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "the port of a UDP socket of the host is not taken, IPv6",
	 TWO_PORTS_AND_SOCKET(UDP, "::", 21000),
	 MASQUERADED_AS(v6_host, 21001, LEAVES(UDP(v6_container_one, 21000, v6_server, 53)))},
	{.says = "a port on which the host listens for both families, IPv4",
	 TWO_PORTS_AND_SOCKET(TCP, "::", 21000),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "the port of a UDP socket for both families, IPv4",
	 TWO_PORTS_AND_SOCKET(UDP, "::", 21000),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "the port of an IPv6 socket that is connected over IPv4",
	 TWO_PORTS_AND_SOCKET(UDP, "::ffff:" v4_host, 21000, WITH_PEER("::ffff:" v4_server, 53)),
	 MASQUERADED_AS(v4_host, 21001, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "a port is kept although a socket listens on it for IPv6 alone",
	 TWO_PORTS_AND_SOCKET(TCP, "::", 21000, .v6_only = true),
	 MASQUERADED_AS(v4_host, 21000, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.says = "and although a UDP socket has it for IPv6 alone",
	 TWO_PORTS_AND_SOCKET(UDP, "::", 21000, .v6_only = true),
	 MASQUERADED_AS(v4_host, 21000, LEAVES(UDP(v4_container_one, 21000, v4_server, 53)))},
	{.says = "no port left: dropped and counted",
	 TWO_PORTS,
	 .given = given_published_port,
	 SOCKET(TCP, v4_host, 21001),
	 LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "no ports at all: dropped and counted",
	 .no_ports = true,
	 LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "one container's flow",
	 TWO_PORTS,
	 MASQUERADED_AS(v4_host, 21000, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN)))},
	{.then = "another container's from the same port gets another port",
	 AS(v4_host, 21001, LEAVES(TCP(v4_container_two, 21000, v4_server, 443, SYN))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.then = "a third container's is dropped: no port is left",
	 LEAVES(TCP(v4_container_routed, 21000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
	{.then = "towards another port of the server the same ports are free",
	 AS(v4_host, 21000, LEAVES(TCP(v4_container_routed, 21000, v4_server, 80, SYN))),
	 .adds = THIS_MASQUERADED(NEW)},
};

static void given_port_published_later(void)
{
	fixture_map_port(IPPROTO_TCP, "0.0.0.0", 25000, v4_container_two, 80, TWO);
}

static void given_other_address(void)
{
	host_configure("addr del 192.0.2.1/24 dev uplink0\n"
		       "addr add 192.0.2.2/24 dev uplink0\n"
		       "route replace default via 192.0.2.254 dev uplink0\n");
	fixture_set_addresses(UPLINK, v4_host_other, v6_host);
	fixture_wait_for_next_second();
}

static void address_back(void)
{
	host_configure("addr del 192.0.2.2/24 dev uplink0\n"
		       "addr add 192.0.2.1/24 dev uplink0\naddr add 192.0.2.2/24 dev uplink0\n"
		       "neigh replace 192.0.2.254 lladdr 02:00:00:00:02:54 dev uplink0\n"
		       "route replace default via 192.0.2.254 dev uplink0\n");
}

/* Another container's connection with one of the two ports, and those with both */
#define OF_TWO(from_port, port, ...) \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, from_port, v4_server, 443, v4_host, \
		    port, .owner = TWO, ##__VA_ARGS__)
#define BOTH_PORTS_TAKEN(...) \
	TWO_PORTS, .holds = {OF_TWO(5000, 21000, ##__VA_ARGS__), OF_TWO(5001, 21001, ##__VA_ARGS__)}

static const struct row reuse_rows[] = {
	{.says = "ports of established flows are not given away, idle or not",
	 BOTH_PORTS_TAKEN(.idle = 600),
	 LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "but after 2 h 4 min they are, if there is no other",
	 BOTH_PORTS_TAKEN(.idle = 7500),
	 .flows_unchecked = true,
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "flow_moved_port", "flow_evicted"}},
	{.says = "a closed flow's port is given away if there is no other",
	 BOTH_PORTS_TAKEN(.idle = 30, .state = STATE_CLOSING),
	 .flows_unchecked = true,
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "flow_moved_port", "flow_evicted"}},
	{.then = "the reply belongs to the new flow",
	 TO(v4_container_one, 40000, ARRIVES(TCP(v4_server, 443, v4_host, CHOSEN, SYN | ACK)))},
	{.says = "but not if it was closed a moment ago",
	 BOTH_PORTS_TAKEN(.idle = 1, .state = STATE_CLOSING),
	 LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN)),
	 DROPPED_AS("drop_no_tuple")},
};

static const struct row keeping_rows[] = {
	{.says = "an assured flow's port is not free either",
	 TWO_PORTS,
	 .holds = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_two, 21000, v4_server, 443,
			       v4_host, 21000, .owner = TWO)},
	 AS(v4_host, 21001, LEAVES(TCP(v4_container_one, 21000, v4_server, 443, SYN))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.says = "a masqueraded flow",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.then = "its reply reaches it even if the port has been published meanwhile",
	 .given = given_port_published_later,
	 TO(v4_container_one, 25000, ARRIVES(TCP(v4_server, 443, v4_host, 25000, SYN | ACK))),
	 .counts = {"rewritten_destination"}},
	{.then = "a flow ends when its address is not the host's any more: the next packet has the"
		 " new one",
	 .given = given_other_address,
	 AS(v4_host_other, CHOSEN, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, ACK))),
	 .flows_unchecked = true,
	 .afterwards = address_back},
};

static void lose_record(void)
{
	static const struct entry record = MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one,
						       40000, v4_server, 443, v4_host, CHOSEN);

	fixture_remove(&record);
}

static void lose_half_open_record(void)
{
	static const struct entry record = MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 40000,
						       v4_server, 53, v4_host, CHOSEN);

	fixture_remove(&record);
}

/* Records that other connections have pushed out of the table */
static const struct row healing_rows[] = {
	{.says = "a connection whose port had to move",
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, SYN))),
	 .flows_unchecked = true},
	{.then = "is answered",
	 TO(v4_container_one, 40000, ARRIVES(TCP(v4_server, 443, v4_host, CHOSEN, SYN | ACK)))},
	{.then = "and its ACK makes it assured",
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK))),
	 .flows = {THIS_MASQUERADED(ANSWERED)}},
	{.then = "after its record is lost the next packet gets the same port",
	 .given = lose_record,
	 MASQUERADED_AS(v4_host, CHOSEN,
			LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK)))},
	{.then = "the server's next packet reaches the container",
	 TO(v4_container_one, 40000, ARRIVES(TCP(v4_server, 443, v4_host, CHOSEN, ACK)))},
	{.then = "and the flow is assured again",
	 AS(v4_host, CHOSEN, LEAVES(TCP(v4_container_one, 40000, v4_server, 443, ACK))),
	 .flows = {THIS_MASQUERADED(ANSWERED)}},
	{.says = "a half-open one whose port had to move",
	 MASQUERADED_AS(v4_host, CHOSEN, LEAVES(UDP(v4_container_one, 40000, v4_server, 53)))},
	{.then = "gets the same port too after its record is lost",
	 .given = lose_half_open_record,
	 MASQUERADED_AS(v4_host, CHOSEN, LEAVES(UDP(v4_container_one, 40000, v4_server, 53)))},
};

static const struct row exception_rows[] = {
	{IN_BOTH_FAMILIES("no masquerade within the container's own subnet"),
	 LEAVES(TCP(v4_container_one, 25000, "10.10.200.5", 443, SYN))},
	{IN_BOTH_FAMILIES("the first address after the subnet is outside"),
	 MASQUERADED_AS(v4_host, 25000,
			LEAVES(TCP(v4_container_one, 25000, "10.11.0.0", 443, SYN)))},
	{.says = "traffic to another container network of the host gets the bridge's address",
	 MASQUERADED_AS(v4_bridge, 25000,
			DELIVERED(TCP(v4_container_routed, 25000, v4_container_one, 80, SYN)))},
	{IN_BOTH_FAMILIES("multicast is not masqueraded"),
	 LEAVES(UDP(v4_container_one, 25000, v4_multicast, 5353))},
	{.says = "an endpoint without masquerade leaves as it is",
	 LEAVES(TCP(v4_container_quiet, 25000, v4_server, 443, SYN))},
	{.says = "an endpoint without masquerade leaves as it is, in fragments too",
	 LEAVES(UDP(v6_container_quiet, 25000, v6_server, 53, .fragment = FIRST_FRAGMENT))},
	{.says = "what already has the host's address is left alone",
	 LEAVES(TCP(v4_host, 40000, v4_server, 443, ACK))},
	{.says = "a forwarded packet of another machine",
	 LEAVES(TCP(v4_stranger, 40000, v4_server, 443, SYN))},
	{.says = "a forwarded fragment of another machine",
	 LEAVES(UDP(v4_stranger, 40000, v4_server, 53, .fragment = LATER_FRAGMENT))},
};

#define OTHER_PROTOCOL(source, destination, number) \
	{ \
		.protocol = number, .from = source, .to = destination, .payload = 32 \
	}

static const struct row drop_rows[] = {
	{IN_BOTH_FAMILIES("a later fragment of a masqueraded container"),
	 LEAVES(UDP(v4_container_one, 25000, v4_server, 53, .fragment = LATER_FRAGMENT,
		    .ipv4_options = 4)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "ICMPv6 in IPv4",
	 LEAVES(OTHER_PROTOCOL(v4_container_one, v4_server, IPPROTO_ICMPV6)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "IPv6 without a next header",
	 AT(TO_UPLINK, UPLINK),
	 .in = {.protocol = 253, .from = v6_container_one, .to = v6_server, .extensions = "n"},
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a routing header with segments left",
	 LEAVES(TCP(v6_container_one, 25000, v6_server, 443, SYN, .extensions = "r",
		    .segments_left = 1)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "more extension headers than are understood",
	 LEAVES(TCP(v6_container_one, 25000, v6_server, 443, SYN, .extensions = "dddddddddd")),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "an ICMP error",
	 LEAVES(ICMP(IPPROTO_ICMP, 3, 3, v4_container_one, v4_server, 0)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "to an IPv4-mapped IPv6 address",
	 LEAVES(UDP(v6_container_one, 25000, "::ffff:8.8.8.8", 53)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a fragment of the stack itself, which has no ingress interface",
	 OF_THE_HOST(
		 LEAVES(UDP(v6_container_one, 25000, v6_server, 53, .fragment = LATER_FRAGMENT))),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "an information request",
	 LEAVES(ICMP(IPPROTO_ICMP, 15, 0, v4_container_one, v4_server, 5)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a timestamp reply without a request",
	 LEAVES(STAMPED4(v4_container_one, v4_server, 5)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "IPv6 has no timestamp request",
	 LEAVES(ICMP(IPPROTO_ICMPV6, 13, 0, v6_container_one, v6_server, 5)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "UDP-Lite whose checksum does not cover the header",
	 LEAVES(UDP_LITE(v4_container_one, 25000, v4_server, 9000, .coverage = 7)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "UDP-Lite whose checksum covers more than there is",
	 LEAVES(UDP_LITE(v4_container_one, 25000, v4_server, 9000, .coverage = 16)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "UDP-Lite without a checksum",
	 LEAVES(UDP_LITE(v6_container_one, 25000, v6_server, 9000, .without_checksum = true)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "an echo reply without a request",
	 LEAVES(PONG4(v4_container_one, v4_server, 5)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "TCP whose header ends too early",
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, .without_transport = true)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "TCP whose data offset is impossible",
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, .data_offset = 1)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "UDP whose header ends too early, IPv6",
	 LEAVES(UDP(v6_container_one, 25000, v6_server, 53, .without_transport = true)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "UDP whose length is impossible",
	 LEAVES(UDP(v4_container_one, 25000, v4_server, 53, .udp_length_off = -12)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a ping whose header ends too early",
	 LEAVES(PING4(v4_container_one, v4_server, 5, .without_transport = true)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a packet of a container whose attachment was just deleted",
	 AFTER(fixture_kill, ONE),
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, ACK)),
	 DROPPED_AS("drop_no_attachment")},
};

void masquerade_rows(void)
{
	ROWS_RUN(tcp_rows);
	ROWS_RUN(udp_rows);
	ROWS_RUN(udp_lite_rows);
	ROWS_RUN(echo_rows);
	ROWS_RUN(port_rows);
	ROWS_RUN(keeping_rows);
	ROWS_RUN(reuse_rows);
	ROWS_RUN(healing_rows);
	ROWS_RUN(exception_rows);
	ROWS_RUN(drop_rows);
}

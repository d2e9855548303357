/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mapping_rows.c - from outside to a mapped port, and the reply. */
#include "row.h"

static void check_one_flow(void)
{
	uint64_t flows = fixture_mapping_flows(IPPROTO_TCP, "0.0.0.0", 8080) +
			 fixture_mapping_flows(IPPROTO_TCP, "::", 8080);

	if (flows != 1)
		row_fail("the mapping counts %llu flows, expected 1", (unsigned long long)flows);
}

static const struct row tcp_rows[] = {
	{IN_BOTH_FAMILIES(
		 "a mapped TCP port: the SYN's destination is rewritten, the flow is half-open"),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .counts = {"flow_mapping", "rewritten_destination"}, .afterwards = check_one_flow},
	{.then = "a retransmitted SYN changes nothing",
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .counts = {"rewritten_destination"},
	 .afterwards = check_one_flow},
	{.then = "the SYN-ACK gets the host's address, and the flow stays half-open",
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK))),
	 .counts = {"rewritten_source"}},
	{.then = "the client's ACK makes the flow assured",
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .flows = {THIS_MAPPED(ANSWERED)},
	 .counts = {"flow_promoted", "rewritten_destination"}},
	{.then = "data of the container, an odd number of bytes",
	 AS(v4_host, 8080,
	    LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK | PSH, .payload = 1001)))},
	{.then = "data of the client, IPv4 options, TTL and padding kept",
	 TO(v4_container_one, 80,
	    ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK, .empty = true, .ipv4_options = 12,
			.padding = 6)))},
	{.then = "another client's flow does not affect it",
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client_other, 40000, v4_host, 8080, SYN))),
	 .adds = THIS_MAPPED(NEW)},
	{.says = "a SYN-ACK that answers nobody begins nothing: it is the host's",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN | ACK))},
	{.says = "nor does a RST", ARRIVES(TCP(v4_client, 40000, v4_host, 8080, RST))},
	{.says = "nor one with ACK", ARRIVES(TCP(v4_client, 40000, v4_host, 8080, RST | ACK))},
	{.says = "nor a FIN, which is late",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, FIN | ACK))},
	{.says = "but an ACK does: its connection may have lost its record",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .counts = {"flow_mapping"}},
	{.says = "IPv6 hop-by-hop, routing (travelled) and destination headers before TCP",
	 MAPPED_TO(v6_container_one, 80,
		   ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "hrd")))},
	{.says = "a long extension header, twice, and another",
	 MAPPED_TO(v6_container_one, 80,
		   ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "DDd")))},
	{.says = "as many extension headers as are understood",
	 MAPPED_TO(v6_container_one, 80,
		   ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "ddddd")))},
	{.says = "one extension header more passes untouched",
	 ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "dddddd"))},
	{.says = "a routed container's port",
	 MAPPED_TO(v4_container_routed, 50,
		   ARRIVES_BY(SECOND_UPLINK,
			      TCP(v4_server_second, 40000, v4_second_uplink, 5050, SYN)))},
	{.then = "its reply",
	 AS(v4_second_uplink, 5050,
	    LEAVES_BY(SECOND_UPLINK,
		      TCP(v4_container_routed, 50, v4_server_second, 40000, SYN | ACK)))},
	{.says = "any address of the host: the one of another interface too",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_bridge, 8080, SYN)))},
	{.says = "a port published by a container without masquerade",
	 MAPPED_TO(v4_container_quiet, 70, ARRIVES(TCP(v4_client, 40000, v4_host, 7070, SYN)))},
	{.then = "its reply gets the host's address all the same",
	 AS(v4_host, 7070, LEAVES(TCP(v4_container_quiet, 70, v4_client, 40000, SYN | ACK)))},
};

static void given_small_mtu(void)
{
	host_configure("link set uplink0 mtu 1280\n");
}

static void large_mtu_again(void)
{
	host_configure("link set uplink0 mtu 1500\n");
}

static const struct row other_uplink_rows[] = {
	{.says = "a client whose route goes through another uplink",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES_BY(SECOND_UPLINK, TCP(v4_client, 40000, v4_second_uplink, 8080, SYN)))},
	{.then = "an RST of the stack itself is not redirected: it has no ingress interface",
	 AS(v4_second_uplink, 8080,
	    OF_THE_HOST(
		    LEAVES_BY(SECOND_UPLINK, TCP(v4_container_one, 80, v4_client, 40000, RST)))),
	 .flows_unchecked = true},
	{.then = "a reply at the uplink of the client's route is not redirected after that RST",
	 AS(v4_second_uplink, 8080,
	    LEAVES(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK)))},
	{.then = "a reply at another uplink is redirected",
	 .within_a_second = true,
	 AS(v4_second_uplink, 8080,
	    LEAVES_BY(SECOND_UPLINK, TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK))),
	 .verdict = REDIRECTED,
	 .counts = {"rerouted"}},
	{.then = "so is one as large as that uplink's MTU, within the same second",
	 .given = given_small_mtu,
	 .within_a_second = true,
	 AS(v4_second_uplink, 8080,
	    LEAVES_BY(SECOND_UPLINK,
		      TCP(v4_container_one, 80, v4_client, 40000, ACK, .payload = 1240))),
	 .verdict = REDIRECTED,
	 .counts = {"rerouted"}},
	{.then = "a larger one leaves through the uplink that the stack chose",
	 AS(v4_second_uplink, 8080,
	    LEAVES_BY(SECOND_UPLINK,
		      TCP(v4_container_one, 80, v4_client, 40000, ACK, .payload = 1241))),
	 .afterwards = large_mtu_again},
};

static const struct row udp_rows[] = {
	{IN_BOTH_FAMILIES("a mapped UDP port"),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080))),
	 .counts = {"flow_mapping"}},
	{.then = "more datagrams one way leave the flow half-open",
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080, .payload = 1400))),
	 .counts = {"rewritten_destination"}},
	{.then = "one reply does so too",
	 .within_a_second = true,
	 AS(v4_host, 8080, LEAVES(UDP(v4_container_one, 80, v4_client, 5000))),
	 .flows = {THIS_MAPPED(NEW)}},
	{.says = "a UDP checksum of 0 stays 0 on the way in",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES(UDP(v4_client, 5000, v4_host, 8080, .without_checksum = true)))},
	{.then = "and on the way out",
	 AS(v4_host, 8080,
	    LEAVES(UDP(v4_container_one, 80, v4_client, 5000, .without_checksum = true))),
	 .flows = {THIS_MAPPED(NEW)}},
	{.says = "an empty datagram",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES(UDP(v4_client, 5000, v4_host, 8080, .empty = true, .padding = 18)))},
};

static void given_tcp_unmapped(void)
{
	fixture_unmap_port(IPPROTO_TCP, "0.0.0.0", 8080);
}

static const struct row choice_rows[] = {
	{.says = "a mapping of one host address precedes that of all addresses",
	 MAPPED_TO(v4_container_two, 91, ARRIVES(TCP(v4_client, 40000, v4_host_other, 9090, SYN)))},
	{.says = "the mapping of all addresses is for the others",
	 MAPPED_TO(v4_container_one, 90, ARRIVES(TCP(v4_client, 40000, v4_host, 9090, SYN)))},
	{.says = "a mapping of one address whose owner is dead does not hide it",
	 AFTER(fixture_kill, TWO),
	 MAPPED_TO(v4_container_one, 90, ARRIVES(TCP(v4_client, 40000, v4_host_other, 9090, SYN)))},
	{.says = "a port mapped for IPv4 only is not for IPv6",
	 ARRIVES(TCP(v6_client, 40000, v6_host, 4444, SYN))},
	{.says = "a port mapped for IPv6 only is not for IPv4",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 6666, SYN))},
	{.says = "a port mapped for UDP only is not for TCP",
	 .given = given_tcp_unmapped,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))},
	{.says = "a port that is not mapped", ARRIVES(TCP(v4_client, 40000, v4_host, 8081, SYN))},
	{.says = "a container's port is not a port of the host",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 80, SYN))},
	{IN_BOTH_FAMILIES("a packet that only passes through to the same port, TCP"),
	 ARRIVES_BY(SECOND_UPLINK, TCP(v4_server_second, 40000, v4_elsewhere, 8080, SYN))},
	{.says = "a packet that only passes through to the same port, UDP",
	 ARRIVES_BY(SECOND_UPLINK, UDP(v4_server_second, 40000, v4_elsewhere, 8080))},
	{.says = "a TCP flow",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.then = "is not found without its mapping: DEL removes both",
	 .given = given_tcp_unmapped,
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))},
};

static void given_excluded_address(void)
{
	fixture_exclude(v4_host_other);
	fixture_exclude(v6_host);
}

static const struct row excluded_rows[] = {
	{.says = "the address of an excluded interface is not mapped",
	 ARRIVES(TCP(v4_client, 40000, v4_host_other, 8080, SYN))},
	{.says = "a mapping of that address is meant",
	 MAPPED_TO(v4_container_two, 91, ARRIVES(UDP(v4_client, 5000, v4_host_other, 9090)))},
	{.says = "nor for a container on the bridge, IPv6",
	 SENT_BY(VETH_TWO, UDP(v6_container_two, 5000, v6_host, 8080))},
	{.says = "the host's other addresses are mapped",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
};

static void given_rules_of_nat(void)
{
	fixture_leave_to_nat(PROTOCOL_TCP, v4_host, 8080, NAT_FROM_OUTSIDE | NAT_FROM_HOST);
	fixture_leave_to_nat(PROTOCOL_UDP, "::", 8080, NAT_FROM_OUTSIDE);
	fixture_leave_to_nat(PROTOCOL_TCP, "::", 8080, NAT_FROM_HOST);
}

static void given_rule_of_nat_later(void)
{
	fixture_leave_to_nat(PROTOCOL_TCP, v4_host_other, 8080, NAT_FROM_OUTSIDE);
}

static const struct row nat_rows[] = {
	{.says = "the host's NAT takes the port at this address: untouched",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))},
	{.says = "so it is for another container",
	 SENT_BY(VETH_TWO, TCP(v4_container_two, 40000, v4_host, 8080, SYN))},
	{.says = "at another address the port is the container's",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host_other, 8080, SYN)))},
	{.then = "which keeps the connection when a rule comes later",
	 .given = given_rule_of_nat_later,
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host_other, 8080, ACK)))},
	{.then = "and gets no new one", ARRIVES(TCP(v4_client, 40001, v4_host_other, 8080, SYN))},
	{.says = "at any address, of another protocol, IPv6",
	 ARRIVES(UDP(v6_client, 5000, v6_host, 8080))},
	{.says = "what only the host's own processes send to the rule is not taken from clients",
	 MAPPED_TO(v6_container_one, 80, ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN)))},
};

static void given_forwarding_off(void)
{
	host_set_forwarding("uplink1", false);
}

static void forwarding_on_again(void)
{
	host_set_forwarding("uplink1", true);
}

static void given_blackhole(void)
{
	host_configure("route replace blackhole 198.18.0.0/15\n");
}

static const struct row route_rows[] = {
	{.says = "forwarding is off at the ingress interface: untouched, counted",
	 .given = given_forwarding_off,
	 ARRIVES_BY(SECOND_UPLINK, TCP(v4_server_second, 40000, v4_second_uplink, 8080, SYN)),
	 .counts = {"forwarding_disabled"},
	 .afterwards = forwarding_on_again},
	{.says = "a packet to the same port at a blackhole route's address",
	 .given = given_blackhole,
	 ARRIVES(TCP(v4_client, 40000, "198.18.0.1", 8080, SYN))},
};

static const struct row late_rows[] = {
	{.says = "the mapping of a deleted container has no effect",
	 AFTER(fixture_kill, ONE),
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))},
	{.says = "TCP in mid-connection without a record: rebuilt from the mapping",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)))},
	{.says = "also while a socket of the host listens on the port",
	 SOCKET(TCP, "0.0.0.0", 8080),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK)))},
	{IN_BOTH_FAMILIES("an established socket of the host gets its packets"),
	 SOCKET(TCP, v4_host, 8080, WITH_PEER(v4_client, 40000)),
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))},
	{.then = "RST too", ARRIVES(TCP(v4_client, 40000, v4_host, 8080, RST))},
	{.then = "another client's packets go to the container",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client_other, 40000, v4_host, 8080, SYN)))},
	{.says = "a datagram socket of the host that is connected to a client, but has not sent,"
		 " takes nothing from the container",
	 SOCKET(UDP, v4_host, 8080, WITH_PEER(v4_client, 7000)),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 7000, v4_host, 8080)))},
	{.says = "datagrams of another port go to the container",
	 SOCKET(UDP, v4_host, 8080, WITH_PEER(v4_client, 7000)),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 7001, v4_host, 8080)))},
	{.says = "a SYN goes to the container even if a process of the host listens",
	 SOCKET(TCP, "0.0.0.0", 8080),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.says = "a datagram too, even if a process has bound the port (as conmon does)",
	 SOCKET(UDP, "0.0.0.0", 8080),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
};

/* No socket is in the containers: none can be seen to serve the port, and the new one has it. */
static void given_replaced(void)
{
	fixture_replace(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_two, 80, TWO);
	fixture_replace(IPPROTO_UDP, "0.0.0.0", 8080, v4_container_two, 80, TWO);
	fixture_replace(IPPROTO_TCP, "::", 8080, v6_container_two, 80, TWO);
}

static void given_replaced_meanwhile(void)
{
	ARRIVE(TCP(v4_client, 40000, v4_host, 8080, SYN));
	LEAVE(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK));
	ARRIVE(TCP(v4_client, 40000, v4_host, 8080, ACK));
	given_replaced();
}

static void given_replaced_reset(void)
{
	ARRIVE(TCP(v4_client, 40000, v4_host, 8080, SYN, .sequence = 1000, .empty = true));
	LEAVE(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK, .sequence = 7000,
		  .acknowledgment = 1001, .empty = true));
	ARRIVE(TCP(v4_client, 40000, v4_host, 8080, ACK, .sequence = 1001, .acknowledgment = 7001,
		   .empty = true));
	ARRIVE(TCP(v4_client, 40000, v4_host, 8080, RST, .sequence = 1001, .empty = true));
	given_replaced();
}

static void given_replaced_twice_meanwhile(void)
{
	given_replaced_meanwhile();
	fixture_replace(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_quiet, 80, QUIET);
}

static void given_replaced_twice_reset(void)
{
	given_replaced_reset();
	fixture_replace(IPPROTO_TCP, "0.0.0.0", 8080, v4_container_quiet, 80, QUIET);
}

static void given_successor_without_veth(void)
{
	given_replaced();
	fixture_remove_veth(TWO);
}

static void given_replaced_without_veth(void)
{
	given_replaced();
	fixture_remove_veth(ONE);
}

static const struct row replaced_rows[] = {
	{IN_BOTH_FAMILIES("a port that another container of the workload has taken over"),
	 .given = given_replaced,
	 TO(v4_container_two, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .flows = {THIS_MAPPED(NEW, .owner = TWO)}},
	{.says = "over UDP",
	 .given = given_replaced,
	 TO(v4_container_two, 80, ARRIVES(UDP(v4_client, 40000, v4_host, 8080))),
	 .flows = {THIS_MAPPED(NEW, .owner = TWO)}},
	{.says = "a connection of the one before goes on with it",
	 .given = given_replaced_meanwhile,
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK | PSH))),
	 .flows = {THIS_MAPPED(ANSWERED)}},
	{.then = "its answers too",
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK)))},
	{.then = "while others go to the new one",
	 TO(v4_container_two, 80, ARRIVES(TCP(v4_client, 40001, v4_host, 8080, SYN))),
	 .adds = THIS_MAPPED(NEW, .owner = TWO)},
	{.then = "until its owner dies: then its packets begin one with the new one",
	 AFTER(fixture_kill, ONE),
	 TO(v4_container_two, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK))),
	 .adds = THIS_MAPPED(NEW, .owner = TWO)},
	{.says = "a client that has ended its connection with the one before begins anew with the "
		 "new one",
	 .given = given_replaced_reset,
	 TO(v4_container_two, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .flows = {THIS_MAPPED(NEW, .owner = TWO)}},
	{.says = "a connection of the first of three goes on",
	 .given = given_replaced_twice_meanwhile,
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, ACK | PSH))),
	 .flows = {THIS_MAPPED(ANSWERED)}},
	{.then = "its answers too",
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK)))},
	{.then = "while others go to the third",
	 TO(v4_container_quiet, 80, ARRIVES(TCP(v4_client, 40001, v4_host, 8080, SYN))),
	 .adds = THIS_MAPPED(NEW, .owner = QUIET)},
	{.says = "a client that has ended its connection with the first of three begins anew",
	 .given = given_replaced_twice_reset,
	 TO(v4_container_quiet, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .flows = {THIS_MAPPED(NEW, .owner = QUIET)}},
	{.says = "where the new one's veth has gone without DEL, the one before gets connections",
	 .given = given_successor_without_veth,
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.says = "and where that of the one before has, the new one",
	 .given = given_replaced_without_veth,
	 TO(v4_container_two, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))),
	 .flows = {THIS_MAPPED(NEW, .owner = TWO)}},
};

void mapping_rows(void)
{
	ROWS_RUN(tcp_rows);
	ROWS_RUN(other_uplink_rows);
	ROWS_RUN(udp_rows);
	ROWS_RUN(choice_rows);
	ROWS_RUN_GIVEN(given_excluded_address, excluded_rows);
	ROWS_RUN_GIVEN(given_rules_of_nat, nat_rows);
	ROWS_RUN(route_rows);
	ROWS_RUN(late_rows);
	ROWS_RUN(replaced_rows);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mapping_rows.c - from outside to a mapped port, and the reply. */
#include "row.h"

static void check_one_flow(void)
{
	uint64_t flows = fixture_mapping_flows(IPPROTO_TCP, "0.0.0.0", 8080);

	if (flows != 1)
		row_fail("the mapping counts %llu flows, expected 1", (unsigned long long)flows);
}

static const struct row tcp_rows[] = {
	{.says = "a mapped TCP port: the SYN's destination is rewritten, the flow is half-open",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)},
	 .counts = {"flow_mapping", "rewritten_destination"},
	 .afterwards = check_one_flow},
	{.says = "a retransmitted SYN changes nothing",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .counts = {"rewritten_destination"},
	 .afterwards = check_one_flow},
	{.says = "the SYN-ACK gets the host's address, and the flow stays half-open",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK),
	 .out = TCP(v4_host, 8080, v4_client, 40000, SYN | ACK),
	 .counts = {"rewritten_source"}},
	{.says = "the client's ACK makes the flow assured",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one,
			  80, 40000)},
	 .counts = {"flow_promoted", "rewritten_destination"}},
	{.says = "data of the container, an odd number of bytes",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, ACK | PSH, .payload = 1001),
	 .out = TCP(v4_host, 8080, v4_client, 40000, ACK | PSH, .payload = 1001)},
	{.says = "data of the client, IPv4 options, TTL and padding kept",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK, .empty = true, .ipv4_options = 12,
		   .padding = 6),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK, .empty = true, .ipv4_options = 12,
		    .padding = 6)},
	{.says = "another client's flow does not affect it",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client_other, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client_other, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(ANSWERED, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one,
			  80, 40000),
		   MAPPED(NEW, IPPROTO_TCP, v4_client_other, 40000, v4_host, 8080, v4_container_one,
			  80, 40000)}},
	{.says = "a SYN-ACK that answers nobody begins nothing: it is the host's",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN | ACK)},
	{.says = "nor does a RST",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, RST)},
	{.says = "nor one with ACK",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, RST | ACK)},
	{.says = "nor a FIN, which is late",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, FIN | ACK)},
	{.says = "but an ACK does: its connection may have lost its record",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)},
	 .counts = {"flow_mapping"}},
	{.says = "a mapped TCP port over IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN),
	 .out = TCP(v6_client, 40000, v6_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80,
			  40000)},
	 .counts = {"flow_mapping"}},
	{.says = "its SYN-ACK over IPv6",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v6_container_one, 80, v6_client, 40000, SYN | ACK),
	 .out = TCP(v6_host, 8080, v6_client, 40000, SYN | ACK)},
	{.says = "its ACK over IPv6",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, ACK),
	 .out = TCP(v6_client, 40000, v6_container_one, 80, ACK),
	 .flows = {MAPPED(ANSWERED, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one,
			  80, 40000)},
	 .counts = {"flow_promoted"}},
	{.says = "IPv6 hop-by-hop, routing (travelled) and destination headers before TCP",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "hrd"),
	 .out = TCP(v6_client, 40000, v6_container_one, 80, SYN, .extensions = "hrd"),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80,
			  40000)}},
	{.says = "a long extension header, twice, and another",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "DDd"),
	 .out = TCP(v6_client, 40000, v6_container_one, 80, SYN, .extensions = "DDd"),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80,
			  40000)}},
	{.says = "as many extension headers as are understood",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "ddddd"),
	 .out = TCP(v6_client, 40000, v6_container_one, 80, SYN, .extensions = "ddddd"),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v6_client, 40000, v6_host, 8080, v6_container_one, 80,
			  40000)}},
	{.says = "[i13] one extension header more passes untouched",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN, .extensions = "dddddd")},
	{.says = "a routed container's port",
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_server_second, 40000, v4_second_uplink, 5050, SYN),
	 .out = TCP(v4_server_second, 40000, v4_container_routed, 50, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_server_second, 40000, v4_second_uplink, 5050,
			  v4_container_routed, 50, 40000)}},
	{.says = "its reply",
	 .then = true,
	 AT(TO_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_container_routed, 50, v4_server_second, 40000, SYN | ACK),
	 .out = TCP(v4_second_uplink, 5050, v4_server_second, 40000, SYN | ACK)},
	{.says = "any address of the host: the one of another interface too",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_bridge, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_bridge, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "a port published by a container without masquerade",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 7070, SYN),
	 .out = TCP(v4_client, 40000, v4_container_quiet, 70, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 7070, v4_container_quiet, 70,
			  40000)}},
	{.says = "its reply gets the host's address all the same",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_quiet, 70, v4_client, 40000, SYN | ACK),
	 .out = TCP(v4_host, 7070, v4_client, 40000, SYN | ACK)},
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
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_client, 40000, v4_second_uplink, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_second_uplink, 8080,
			  v4_container_one, 80, 40000)}},
	{.says = "an RST of the stack itself is not redirected: it has no ingress interface",
	 .then = true,
	 AT(TO_UPLINK, SECOND_UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_container_one, 80, v4_client, 40000, RST),
	 .out = TCP(v4_second_uplink, 8080, v4_client, 40000, RST),
	 .flows_unchecked = true},
	{.says = "a reply at the uplink of the client's route is not redirected after that RST",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK),
	 .out = TCP(v4_second_uplink, 8080, v4_client, 40000, SYN | ACK),
	 .flows_unchecked = true},
	{.says = "a reply at another uplink is redirected",
	 .then = true,
	 AT(TO_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK),
	 .verdict = REDIRECTED,
	 .out = TCP(v4_second_uplink, 8080, v4_client, 40000, SYN | ACK),
	 .flows_unchecked = true,
	 .counts = {"rerouted"}},
	{.says = "so is one as large as that uplink's MTU, within the same second",
	 .then = true,
	 .given = given_small_mtu,
	 AT(TO_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, ACK, .payload = 1240),
	 .verdict = REDIRECTED,
	 .out = TCP(v4_second_uplink, 8080, v4_client, 40000, ACK, .payload = 1240),
	 .flows_unchecked = true,
	 .counts = {"rerouted"}},
	{.says = "[T28] a larger one leaves through the uplink that the stack chose",
	 .then = true,
	 AT(TO_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 40000, ACK, .payload = 1241),
	 .out = TCP(v4_second_uplink, 8080, v4_client, 40000, ACK, .payload = 1241),
	 .flows_unchecked = true,
	 .afterwards = large_mtu_again},
};

static const struct row udp_rows[] = {
	{.says = "a mapped UDP port",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)},
	 .counts = {"flow_mapping"}},
	{.says = "more datagrams one way leave the flow half-open",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080, .payload = 1400),
	 .out = UDP(v4_client, 5000, v4_container_one, 80, .payload = 1400),
	 .counts = {"rewritten_destination"}},
	{.says = "one reply does so too",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 80, v4_client, 5000),
	 .out = UDP(v4_host, 8080, v4_client, 5000),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
	{.says = "[i11] a UDP checksum of 0 stays 0 on the way in",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080, .without_checksum = true),
	 .out = UDP(v4_client, 5000, v4_container_one, 80, .without_checksum = true),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
	{.says = "[i11] and on the way out",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 80, v4_client, 5000, .without_checksum = true),
	 .out = UDP(v4_host, 8080, v4_client, 5000, .without_checksum = true),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
	{.says = "a mapped UDP port over IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_host, 8080),
	 .out = UDP(v6_client, 5000, v6_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v6_client, 5000, v6_host, 8080, v6_container_one, 80,
			  5000)}},
	{.says = "its reply over IPv6",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_one, 80, v6_client, 5000, .extensions = "d"),
	 .out = UDP(v6_host, 8080, v6_client, 5000, .extensions = "d"),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v6_client, 5000, v6_host, 8080, v6_container_one, 80,
			  5000)}},
	{.says = "an empty datagram",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080, .empty = true, .padding = 18),
	 .out = UDP(v4_client, 5000, v4_container_one, 80, .empty = true, .padding = 18),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
};

static void given_dead_exact_mapping(void)
{
	fixture_kill(TWO);
}

static void given_tcp_unmapped(void)
{
	fixture_unmap_port(IPPROTO_TCP, "0.0.0.0", 8080);
}

static const struct row choice_rows[] = {
	{.says = "[B6] a mapping of one host address precedes that of all addresses",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host_other, 9090, SYN),
	 .out = TCP(v4_client, 40000, v4_container_two, 91, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host_other, 9090, v4_container_two,
			  91, 40000)}},
	{.says = "[B6] the mapping of all addresses is for the others",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 9090, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 90, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 9090, v4_container_one, 90,
			  40000)}},
	{.says = "[i06] a mapping of one address whose owner is dead does not hide it",
	 .given = given_dead_exact_mapping,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host_other, 9090, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 90, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host_other, 9090, v4_container_one,
			  90, 40000)}},
	{.says = "a port mapped for IPv4 only is not for IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 4444, SYN)},
	{.says = "a port mapped for IPv6 only is not for IPv4",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 6666, SYN)},
	{.says = "a port mapped for UDP only is not for TCP",
	 .given = given_tcp_unmapped,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN)},
	{.says = "a port that is not mapped",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8081, SYN)},
	{.says = "a container's port is not a port of the host",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 80, SYN)},
	{.says = "[i01] a packet that only passes through to the same port, TCP",
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_server_second, 40000, v4_elsewhere, 8080, SYN)},
	{.says = "[i01] a packet that only passes through to the same port, UDP",
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = UDP(v4_server_second, 40000, v4_elsewhere, 8080)},
	{.says = "[i01] a packet that only passes through to the same port, IPv6",
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = TCP(v6_server_second, 40000, v6_elsewhere, 8080, SYN)},
	{.says = "a TCP flow",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "is not found without its mapping: DEL removes both",
	 .then = true,
	 .given = given_tcp_unmapped,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK)},
};

static void given_excluded_address(void)
{
	fixture_exclude(v4_host_other);
	fixture_exclude(v6_host);
}

static const struct row excluded_rows[] = {
	{.says = "[T02] the address of an excluded interface is not mapped",
	 .given = given_excluded_address,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host_other, 8080, SYN)},
	{.says = "[T02] not even by a mapping of that address",
	 .given = given_excluded_address,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host_other, 9090)},
	{.says = "[T02] nor for a container on the bridge, IPv6",
	 .given = given_excluded_address,
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = UDP(v6_container_two, 5000, v6_host, 8080)},
	{.says = "[T02] the host's other addresses are mapped",
	 .given = given_excluded_address,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
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
	 AT(FROM_UPLINK, SECOND_UPLINK),
	 .in = TCP(v4_server_second, 40000, v4_second_uplink, 8080, SYN),
	 .counts = {"forwarding_disabled"},
	 .afterwards = forwarding_on_again},
	{.says = "[i01] a packet to the same port at a blackhole route's address",
	 .given = given_blackhole,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, "198.18.0.1", 8080, SYN)},
};

static void given_container_one_dead(void)
{
	fixture_kill(ONE);
}

static void given_host_connection(void)
{
	host_connect_tcp(v4_host, 8080, v4_client, 40000);
}

static void given_host_connection_v6(void)
{
	host_connect_tcp(v6_host, 8080, v6_client, 40000);
}

static void given_host_datagrams_of_client(void)
{
	host_connect_udp(v4_host, 8080, v4_client, 7000);
}

static void given_host_listener(void)
{
	host_listen_tcp("0.0.0.0", 8080);
}

static void given_host_datagram_socket(void)
{
	host_bind_udp("0.0.0.0", 8080);
}

static const struct row late_rows[] = {
	{.says = "[i06] the mapping of a deleted container has no effect",
	 .given = given_container_one_dead,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN)},
	{.says = "TCP in mid-connection without a record: rebuilt from the mapping",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "also while a socket of the host listens on the port",
	 .given = given_host_listener,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, ACK),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "[i08] an established socket of the host gets its packets",
	 .given = given_host_connection,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, ACK)},
	{.says = "[i08] RST too",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, RST)},
	{.says = "[i08] another client's packets go to the container",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client_other, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client_other, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client_other, 40000, v4_host, 8080, v4_container_one,
			  80, 40000)}},
	{.says = "[i08] an established socket of the host over IPv6",
	 .given = given_host_connection_v6,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, FIN | ACK)},
	{.says = "a datagram socket of the host that is connected to a client, but has not sent,"
		 " takes nothing from the container",
	 .given = given_host_datagrams_of_client,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 7000, v4_host, 8080),
	 .out = UDP(v4_client, 7000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 7000, v4_host, 8080, v4_container_one, 80,
			  7000)}},
	{.says = "[i08] datagrams of another port go to the container",
	 .given = given_host_datagrams_of_client,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 7001, v4_host, 8080),
	 .out = UDP(v4_client, 7001, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 7001, v4_host, 8080, v4_container_one, 80,
			  7001)}},
	{.says = "a SYN goes to the container even if a process of the host listens",
	 .given = given_host_listener,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "a datagram too, even if a process has bound the port (as conmon does)",
	 .given = given_host_datagram_socket,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
};

void mapping_rows(void)
{
	ROWS_RUN(tcp_rows);
	ROWS_RUN(other_uplink_rows);
	ROWS_RUN(udp_rows);
	ROWS_RUN(choice_rows);
	ROWS_RUN(excluded_rows);
	ROWS_RUN(route_rows);
	ROWS_RUN(late_rows);
}

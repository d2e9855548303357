/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_rows.c - the host's own traffic: neither changed nor dropped, and its replies its own. */
#include "row.h"

static void given_all_dead(void)
{
	for (enum container container = ONE; container <= ROUTED; container++)
		fixture_kill(container);
}

static void given_published_socket(void)
{
	host_bind_udp(v4_host, 8080);
}

static void given_published_connected_socket(void)
{
	host_connect_udp(v6_host, 8080, v6_server, 53);
}

static void given_published_socket_routed(void)
{
	host_bind_udp("0.0.0.0", 8080);
}

static void given_published_connection(void)
{
	host_connect_tcp(v4_host, 8080, v4_server, 443);
}

static const struct row rows[] = {
	{.says = "[i08] the host sends from a published port: untouched, remembered",
	 .given = given_published_socket,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 8080, v4_server, 53),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53)},
	 .counts = {"flow_host"}},
	{.says = "[i08] and gets its reply, in spite of the mapping",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 8080),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53)}},
	{.says = "[i08] any other client is still the container's",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 53, v4_host, 8080),
	 .out = UDP(v4_client, 53, v4_container_one, 80),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53),
		   MAPPED(NEW, IPPROTO_UDP, v4_client, 53, v4_host, 8080, v4_container_one, 80,
			  53)}},
	{.says = "[i08] the host connects from a published port",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, SYN),
	 .flows = {OF_HOST(NEW, IPPROTO_TCP, v4_host, 8080, v4_server, 443)}},
	{.says = "[i08] gets its SYN-ACK",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 8080, SYN | ACK)},
	{.says = "[i08] and sends its ACK",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, ACK),
	 .flows = {OF_HOST(ANSWERED, IPPROTO_TCP, v4_host, 8080, v4_server, 443)}},
	{.says = "[i08] the host connects from a published port, IPv6",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v6_host, 8080, v6_server, 443, SYN),
	 .flows = {OF_HOST(NEW, IPPROTO_TCP, v6_host, 8080, v6_server, 443)}},
	{.says = "[i08] gets its SYN-ACK, IPv6",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_server, 443, v6_host, 8080, SYN | ACK)},
	{.says = "[i08] from a port that nobody published: nothing to remember",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 25000, v4_server, 443, SYN)},
	{.says = "[i08] from a port published for the other family only",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v6_host, 4444, v6_server, 443, SYN)},
	{.says = "[i08] the owner of the port is dead: nothing to remember",
	 .given = given_all_dead,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, SYN)},
	{.says = "[i08] the host's own GRE",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = {.protocol = 47, .from = v4_host, .to = v4_server, .payload = 20}},
	{.says = "[i08] the host's own RST from a published port leaves no trace",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, RST)},
	{.says = "[i08] somebody else's NAT gave a forwarded datagram the uplink's address: "
		 "remembered",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {FOREIGN(NEW, IPPROTO_UDP, v4_host, 21000, v4_server, 53)},
	 .counts = {"flow_host"}},
	{.says = "[i08] answered",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 21000),
	 .flows = {FOREIGN(NEW, IPPROTO_UDP, v4_host, 21000, v4_server, 53)}},
	{.says = "[i08] and going on: it takes no place among the answered flows",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_host, 21000, v4_server, 53),
	 .flows = {FOREIGN(NEW, IPPROTO_UDP, v4_host, 21000, v4_server, 53)}},
	{.says = "[i08] and a connection, IPv6",
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v6_host, 21000, v6_server, 443, SYN),
	 .flows = {FOREIGN(NEW, IPPROTO_TCP, v6_host, 21000, v6_server, 443)}},
	{.says = "a connection that it translates, in its middle: nothing to remember",
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_host, 21000, v4_server, 443, ACK)},
	{.says = "a datagram forwarded as it is: nothing to remember",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_client, 21000, v4_server, 53)},
	{.says = "[i08] the host's own packet into the bridge",
	 AT(TO_CONTAINER, BRIDGE),
	 .of_the_host = true,
	 .in = TCP(v4_bridge, 40000, v4_container_one, 80, SYN)},
	{.says = "[i08] the host's own packet into a routed veth, from a published port",
	 .given = given_published_socket_routed,
	 AT(TO_CONTAINER, VETH_ROUTED),
	 .of_the_host = true,
	 .in = UDP("10.20.0.1", 8080, v4_container_routed, 53),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, "10.20.0.1", 8080, v4_container_routed, 53)}},
	{.says = "[i08] whose reply is the host's",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_ROUTED),
	 .in = UDP(v4_container_routed, 53, "10.20.0.1", 8080),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, "10.20.0.1", 8080, v4_container_routed, 53)}},
	{.says = "a client's mapped flow",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80,
			  5000)}},
	{.says = "[i08] the host's own datagram to that client is left alone",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 8080, v4_client, 5000)},
	{.says = "[i05] and takes nothing from the flow",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_host, 8080),
	 .out = UDP(v4_client, 5000, v4_container_one, 80)},
};

/* Sockets that have gone, whose peer uses its port once more. */
static const struct row gone_rows[] = {
	{.says = "the host connects from a published port",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, SYN),
	 .flows = {OF_HOST(NEW, IPPROTO_TCP, v4_host, 8080, v4_server, 443)}},
	{.says = "[i08] a SYN from there while the socket lives is the host's",
	 .then = true,
	 .given = given_published_connection,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 8080, SYN)},
	{.says = "when it has gone, the peer that connects from the same port means the container",
	 .then = true,
	 .given = host_close_sockets,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 8080, SYN),
	 .out = TCP(v4_server, 443, v4_container_one, 80, SYN),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_server, 443, v4_host, 8080, v4_container_one, 80,
			  443)}},
	{.says = "the host connects from a published port",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 8080, v4_server, 443, SYN),
	 .flows = {OF_HOST(NEW, IPPROTO_TCP, v4_host, 8080, v4_server, 443)}},
	{.says = "[i08] what is no SYN is never the container's, socket or not",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 8080, ACK)},
	{.says = "the host sends from a published port, IPv6",
	 .given = given_published_connected_socket,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v6_host, 8080, v6_server, 53),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v6_host, 8080, v6_server, 53)}},
	{.says = "[i08] and is answered",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_server, 53, v6_host, 8080),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v6_host, 8080, v6_server, 53)}},
	{.says = "a datagram for a socket that has gone is the container's",
	 .then = true,
	 .given = host_close_sockets,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_server, 53, v6_host, 8080),
	 .out = UDP(v6_server, 53, v6_container_one, 80),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v6_server, 53, v6_host, 8080, v6_container_one, 80,
			  53)}},
	{.says = "and so is the next one, and what answers it",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_one, 80, v6_server, 53),
	 .out = UDP(v6_host, 8080, v6_server, 53),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v6_server, 53, v6_host, 8080, v6_container_one, 80,
			  53)}},
};

static void given_masqueraded_answered(void)
{
	static const struct entry entries[] = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one,
							   25000, v4_server, 443, v4_host, 25000)};

	for (int i = 0; i < 2; i++) {
		struct entry entry = entries[i];

		entry.owner = ONE;
		entry.state = STATE_ESTABLISHED;
		entry.idle = 1;
		fixture_put(&entry);
	}
	fixture_notice_port(25000);
}

#define WAY_OUT(table, protocol, port, server_port, ...) \
	ENTRY(table, DIRECTION_OUT, protocol, v4_container_one, port, v4_server, server_port, \
	      v4_host, port, server_port, FLOW_MASQUERADE, false, ##__VA_ARGS__)

/* A socket of the host's that begins later, with the port that a container's flow has. */
static const struct row later_rows[] = {
	{.says = "[i03] a masqueraded flow takes port 25000 to the server",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 25000, v4_server, 53),
	 .out = UDP(v4_host, 25000, v4_server, 53),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host,
			       25000)}},
	{.says = "[i08] the host's own datagram from that port to another server: none of its",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 25000, v4_elsewhere, 53),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host,
			       25000),
		   OF_HOST(NEW, IPPROTO_UDP, v4_host, 25000, v4_elsewhere, 53)}},
	{.says = "[i08] to the same one: untouched, and the way back becomes the host's",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 25000, v4_server, 53),
	 .flows = {WAY_OUT(NEW, IPPROTO_UDP, 25000, 53),
		   OF_HOST(NEW, IPPROTO_UDP, v4_host, 25000, v4_elsewhere, 53),
		   OF_HOST(NEW, IPPROTO_UDP, v4_host, 25000, v4_server, 53)},
	 .counts = {"flow_host", "flow_displaced"}},
	{.says = "[i08] whose answer it gets",
	 .then = true,
	 .flows_unchecked = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 25000)},
	{.says = "[i08] a connection of the host's with the port of an answered flow",
	 .given = given_masqueraded_answered,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 25000, v4_server, 443, SYN),
	 .flows = {WAY_OUT(ANSWERED, IPPROTO_TCP, 25000, 443, .state = STATE_ESTABLISHED),
		   OF_HOST(NEW, IPPROTO_TCP, v4_host, 25000, v4_server, 443)},
	 .counts = {"flow_host", "flow_displaced"}},
	{.says = "[i08] gets its SYN-ACK",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 25000, SYN | ACK)},
	{.says = "[i03] and the container's flow moves to another port with its next packet",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 25000, v4_server, 443, ACK),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, ACK),
	 .flows_unchecked = true},
	{.says = "[i08] a later packet of a connection of the host's takes nothing",
	 .given = given_masqueraded_answered,
	 .flows = {MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 25000, v4_server, 443,
			       v4_host, 25000)},
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v4_host, 25000, v4_server, 443, ACK)},
	{.says = "[i05] a forwarded packet with the host's address takes nothing: it may be forged",
	 .given = given_masqueraded_answered,
	 .flows_unchecked = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_host, 25000, v4_server, 443, SYN)},
	{.says = "[i05] and the container's flow lives",
	 .then = true,
	 .flows_unchecked = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_server, 443, v4_host, 25000, ACK),
	 .out = TCP(v4_server, 443, v4_container_one, 25000, ACK)},
	{.says = "[i08] from a port that no masqueraded flow ever had: nothing to remember",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 25000, v4_server, 443)},
};

static const struct row ping_rows[] = {
	{.says = "[i08] the host pings",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = PING4(v4_host, v4_server, 5),
	 .flows = {OF_HOST(NEW, IPPROTO_ICMP, v4_host, 5, v4_server, 0)}},
	{.says = "[i10] a container's ping with the same identifier gets another",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = PING4(v4_container_one, v4_server, 5),
	 .out = PING4(v4_host, v4_server, CHOSEN),
	 .flows = {OF_HOST(NEW, IPPROTO_ICMP, v4_host, 5, v4_server, 0),
		   MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 5, v4_server, 0, v4_host,
			       CHOSEN)}},
	{.says = "[i08] the host's answer is the host's",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = PONG4(v4_server, v4_host, 5),
	 .flows = {OF_HOST(NEW, IPPROTO_ICMP, v4_host, 5, v4_server, 0),
		   MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 5, v4_server, 0, v4_host,
			       CHOSEN)}},
	{.says = "[i08] the host answers a ping: nothing to remember",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = PONG4(v4_host, v4_client, 6)},
};

void host_rows(void)
{
	ROWS_RUN(rows);
	ROWS_RUN(gone_rows);
	ROWS_RUN(later_rows);
	ROWS_RUN(ping_rows);
}

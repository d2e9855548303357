/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_rows.c - the host's own traffic: neither changed nor dropped, and its replies its own. */
#include "row.h"

static void given_all_dead(void)
{
	for (enum container container = ONE; container <= ROUTED; container++)
		fixture_kill(container);
}

static const struct row rows[] = {
	{ .says = "[i08] the host sends from a published port: untouched, remembered",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = UDP(v4_host, 8080, v4_server, 53),
	  .flows = { OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53) },
	  .counts = { "flow_host" } },
	{ .says = "[i08] and gets its reply, in spite of the mapping", .then = true,
	  .hook = FROM_UPLINK, .device = UPLINK, .in = UDP(v4_server, 53, v4_host, 8080),
	  .flows = { OF_HOST(ANSWERED, IPPROTO_UDP, v4_host, 8080, v4_server, 53) },
	  .counts = { "flow_promoted" } },
	{ .says = "[i08] any other client is still the container's", .then = true,
	  .hook = FROM_UPLINK, .device = UPLINK, .in = UDP(v4_client, 53, v4_host, 8080),
	  .out = UDP(v4_client, 53, v4_container_one, 80),
	  .flows = { OF_HOST(ANSWERED, IPPROTO_UDP, v4_host, 8080, v4_server, 53),
		     MAPPED(NEW, IPPROTO_UDP, v4_client, 53, v4_host, 8080, v4_container_one, 80,
			    53) } },
	{ .says = "[i08] the host connects from a published port",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v4_host, 8080, v4_server, 443, SYN),
	  .flows = { OF_HOST(NEW, IPPROTO_TCP, v4_host, 8080, v4_server, 443) } },
	{ .says = "[i08] gets its SYN-ACK", .then = true, .hook = FROM_UPLINK, .device = UPLINK,
	  .in = TCP(v4_server, 443, v4_host, 8080, SYN | ACK) },
	{ .says = "[i08] and sends its ACK", .then = true,
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v4_host, 8080, v4_server, 443, ACK),
	  .flows = { OF_HOST(ANSWERED, IPPROTO_TCP, v4_host, 8080, v4_server, 443) } },
	{ .says = "[i08] the host connects from a published port, IPv6",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v6_host, 8080, v6_server, 443, SYN),
	  .flows = { OF_HOST(NEW, IPPROTO_TCP, v6_host, 8080, v6_server, 443) } },
	{ .says = "[i08] gets its SYN-ACK, IPv6", .then = true,
	  .hook = FROM_UPLINK, .device = UPLINK,
	  .in = TCP(v6_server, 443, v6_host, 8080, SYN | ACK) },
	{ .says = "[i08] from a port that nobody published: nothing to remember",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v4_host, 25000, v4_server, 443, SYN) },
	{ .says = "[i08] from a port published for the other family only",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v6_host, 4444, v6_server, 443, SYN) },
	{ .says = "[i08] the owner of the port is dead: nothing to remember",
	  .given = given_all_dead, .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v4_host, 8080, v4_server, 443, SYN) },
	{ .says = "[i08] the host's own fragments", .hook = TO_UPLINK, .device = UPLINK,
	  .of_the_host = true,
	  .in = UDP(v4_host, 8080, v4_server, 53, .fragment = FIRST_FRAGMENT) },
	{ .says = "[i08] the host's own GRE", .hook = TO_UPLINK, .device = UPLINK,
	  .of_the_host = true,
	  .in = { .protocol = 47, .from = v4_host, .to = v4_server, .payload = 20 } },
	{ .says = "[i08] the host's own RST from a published port leaves no trace",
	  .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = TCP(v4_host, 8080, v4_server, 443, RST) },
	{ .says = "[i08] the host's own packet into the bridge", .hook = TO_CONTAINER,
	  .device = BRIDGE, .of_the_host = true,
	  .in = TCP(v4_bridge, 40000, v4_container_one, 80, SYN) },
	{ .says = "[i08] the host's own packet into a routed veth, from a published port",
	  .hook = TO_CONTAINER, .device = VETH_ROUTED, .of_the_host = true,
	  .in = UDP("10.20.0.1", 8080, v4_container_routed, 53),
	  .flows = { OF_HOST(NEW, IPPROTO_UDP, "10.20.0.1", 8080, v4_container_routed, 53) } },
	{ .says = "[i08] whose reply is the host's", .then = true, .hook = FROM_CONTAINER,
	  .device = VETH_ROUTED, .in = UDP(v4_container_routed, 53, "10.20.0.1", 8080),
	  .flows = { OF_HOST(ANSWERED, IPPROTO_UDP, "10.20.0.1", 8080, v4_container_routed, 53) } },
	{ .says = "[i03] a masqueraded flow takes port 25000 to the server",
	  .hook = TO_UPLINK, .device = UPLINK,
	  .in = UDP(v4_container_one, 25000, v4_server, 53),
	  .out = UDP(v4_host, 25000, v4_server, 53),
	  .flows = { MASQUERADED(NEW, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host,
				 25000) } },
	{ .says = "[i08] the host's own datagram from that port is not changed either",
	  .then = true, .hook = TO_UPLINK, .device = UPLINK, .of_the_host = true,
	  .in = UDP(v4_host, 25000, v4_server, 53) },
};


static const struct row ping_rows[] = {
	{ .says = "[i08] the host pings", .hook = TO_UPLINK,
	  .device = UPLINK, .of_the_host = true, .in = PING4(v4_host, v4_server, 5),
	  .flows = { OF_HOST(NEW, IPPROTO_ICMP, v4_host, 5, v4_server, 0) } },
	{ .says = "[i10] a container's ping with the same identifier gets another", .then = true,
	  .hook = TO_UPLINK, .device = UPLINK, .in = PING4(v4_container_one, v4_server, 5),
	  .out = PING4(v4_host, v4_server, CHOSEN),
	  .flows = { OF_HOST(NEW, IPPROTO_ICMP, v4_host, 5, v4_server, 0),
		     MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 5, v4_server, 0, v4_host,
				 CHOSEN) } },
	{ .says = "[i08] the host's answer is the host's", .then = true, .hook = FROM_UPLINK,
	  .device = UPLINK, .in = PONG4(v4_server, v4_host, 5),
	  .flows = { OF_HOST(ANSWERED, IPPROTO_ICMP, v4_host, 5, v4_server, 0),
		     MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 5, v4_server, 0, v4_host,
				 CHOSEN) } },
	{ .says = "[i08] the host answers a ping: nothing to remember", .hook = TO_UPLINK,
	  .device = UPLINK, .of_the_host = true, .in = PONG4(v4_host, v4_client, 6) },
};

void host_rows(void)
{
	ROWS_RUN(rows);
	ROWS_RUN(ping_rows);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* host_rows.c - the host's own traffic: never changed or dropped; replies reach the host. */
#include "row.h"

static void given_all_dead(void)
{
	for (enum container container = ONE; container <= ROUTED; container++)
		fixture_kill(container);
}

static const struct row rows[] = {
	{.says = "the host sends from a published port: untouched, remembered",
	 SOCKET(UDP, v4_host, 8080),
	 OF_THE_HOST(LEAVES(UDP(v4_host, 8080, v4_server, 53))),
	 .flows = {THIS_OF_HOST(NEW)},
	 .counts = {"flow_host"}},
	{.then = "and gets its reply, in spite of the mapping",
	 ARRIVES(UDP(v4_server, 53, v4_host, 8080))},
	{.then = "any other client's packets still go to the container",
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 53, v4_host, 8080))),
	 .adds = THIS_MAPPED(NEW)},
	{IN_BOTH_FAMILIES("the host connects from a published port"),
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, SYN))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "gets its SYN-ACK", ARRIVES(TCP(v4_server, 443, v4_host, 8080, SYN | ACK))},
	{.then = "and sends its ACK",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, ACK))),
	 .flows = {THIS_OF_HOST(ANSWERED)}},
	{.says = "from a port that is not published: nothing to remember",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, SYN)))},
	{.says = "from a port published for the other family only",
	 OF_THE_HOST(LEAVES(TCP(v6_host, 4444, v6_server, 443, SYN)))},
	{.says = "the owner of the port is dead: nothing to remember",
	 .given = given_all_dead,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, SYN)))},
	{.says = "the host's own GRE",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = {.protocol = 47, .from = v4_host, .to = v4_server, .payload = 20}},
	{.says = "the host's own RST from a published port leaves no trace",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, RST)))},
	{.says = "another NAT gave a forwarded datagram the uplink's address: "
		 "remembered, of a protocol that conntrack does not tell of",
	 LEAVES(UDP_LITE(v4_host, 21000, v4_server, 53)),
	 .flows = {THIS_FOREIGN(NEW)},
	 .counts = {"flow_host"}},
	{.then = "its answer passes untouched", ARRIVES(UDP_LITE(v4_server, 53, v4_host, 21000))},
	{.then = "its next datagram does not make it assured",
	 LEAVES(UDP_LITE(v4_host, 21000, v4_server, 53))},
	{.says = "an SCTP association of another NAT is remembered too, IPv6",
	 LEAVES(SCTP(v6_host, 21000, v6_server, 443)),
	 .flows = {THIS_FOREIGN(NEW)}},
	{.says = "another NAT's TCP in mid-connection: nothing to remember",
	 LEAVES(TCP(v4_host, 21000, v4_server, 443, ACK))},
	{.says = "a datagram forwarded untranslated: nothing to remember",
	 LEAVES(UDP(v4_client, 21000, v4_server, 53))},
	{.says = "the host's own packet into the bridge",
	 OF_THE_HOST(DELIVERED(TCP(v4_bridge, 40000, v4_container_one, 80, SYN)))},
	{.says = "the host's own packet into a routed veth, from a published port",
	 SOCKET(UDP, "0.0.0.0", 8080),
	 OF_THE_HOST(DELIVERED_BY(VETH_ROUTED, UDP("10.20.0.1", 8080, v4_container_routed, 53))),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, "10.20.0.1", 8080, v4_container_routed, 53)}},
	{.then = "and the host gets the reply",
	 SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 53, "10.20.0.1", 8080))},
	{.says = "a client's mapped flow",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
	{.then = "the host's own datagram to that client is left alone",
	 OF_THE_HOST(LEAVES(UDP(v4_host, 8080, v4_client, 5000)))},
	{.then = "and does not end the flow",
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 5000, v4_host, 8080)))},
};

/* The peer of a closed socket uses its port again. */
static const struct row gone_rows[] = {
	{.says = "the host connects from a published port",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, SYN))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "a SYN of the peer goes to the host while the socket exists",
	 SOCKET(TCP, v4_host, 8080, WITH_PEER(v4_server, 443)),
	 ARRIVES(TCP(v4_server, 443, v4_host, 8080, SYN))},
	{.then = "once it is closed, the peer's SYN from the same port goes to the container",
	 .given = host_close_sockets,
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_server, 443, v4_host, 8080, SYN)))},
	{.says = "the host connects from a published port",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_server, 443, SYN))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "other packets than SYN go to the host, even without a socket",
	 ARRIVES(TCP(v4_server, 443, v4_host, 8080, ACK))},
	{.says = "the host sends from a published port, IPv6",
	 SOCKET(UDP, v6_host, 8080, WITH_PEER(v6_server, 53)),
	 OF_THE_HOST(LEAVES(UDP(v6_host, 8080, v6_server, 53))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "and is answered", ARRIVES(UDP(v6_server, 53, v6_host, 8080))},
	{.then = "a datagram for a closed socket goes to the container",
	 .given = host_close_sockets,
	 MAPPED_TO(v6_container_one, 80, ARRIVES(UDP(v6_server, 53, v6_host, 8080)))},
	{.then = "and the container's answer is translated",
	 AS(v6_host, 8080, LEAVES(UDP(v6_container_one, 80, v6_server, 53))),
	 .flows = {THIS_MAPPED(NEW)}},
};

#define FLOW_OF_ONE \
	MASQUERADED(ANSWERED, IPPROTO_TCP, v4_container_one, 25000, v4_server, 443, v4_host, \
		    25000, .owner = ONE, .idle = 1)
#define ANSWERED_BEFORE .holds = {FLOW_OF_ONE}

static void given_no_flow_of_one(void)
{
	const struct entry flow = FLOW_OF_ONE;

	fixture_remove(&flow);
}

/* A later socket of the host has the external port of a container's flow. */
static const struct row later_rows[] = {
	{.says = "a masqueraded flow has port 25000 towards the server",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53)))},
	{.then = "the host's own datagram from that port to another server does not affect "
		 "it: nothing to remember",
	 OF_THE_HOST(LEAVES(UDP(v4_host, 25000, v4_elsewhere, 53)))},
	{.then = "to the same server: untouched, and the container's flow ends",
	 OF_THE_HOST(LEAVES(UDP(v4_host, 25000, v4_server, 53))),
	 .flows = {THIS_OF_HOST(NEW)},
	 .counts = {"flow_host", "flow_displaced"}},
	{.then = "and the host gets the answer",
	 .flows_unchecked = true,
	 ARRIVES(UDP(v4_server, 53, v4_host, 25000))},
	{.says = "the host connects from the external port of an assured flow",
	 ANSWERED_BEFORE,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, SYN))),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, SYN),
	 .adds = RECORD(NEW, IPPROTO_TCP, v4_host, 25000, v4_server, 443, v4_host, CHOSEN, 443,
			FLOW_HOST, .begun_inside = true),
	 .counts = {"flow_host", "flow_moved_port"}},
	{.then = "gets its SYN-ACK at its own port",
	 ARRIVES(TCP(v4_server, 443, v4_host, CHOSEN, SYN | ACK)),
	 .out = TCP(v4_server, 443, v4_host, 25000, SYN | ACK)},
	{.then = "and sends its other packets by the other port",
	 .flows_unchecked = true,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, ACK))),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, ACK)},
	{.then = "its RST, too",
	 .flows_unchecked = true,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, RST | ACK))),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, RST | ACK)},
	{.then = "the container's flow keeps its port",
	 AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, ACK)))},
	{.then = "when that has gone, the host's connection still goes by the other port",
	 .given = given_no_flow_of_one,
	 .flows_unchecked = true,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, ACK))),
	 .out = TCP(v4_host, CHOSEN, v4_server, 443, ACK)},
	{.says = "a later packet of the host's connection ends no flow",
	 ANSWERED_BEFORE,
	 OF_THE_HOST(LEAVES(TCP(v4_host, 25000, v4_server, 443, ACK)))},
	{.says = "a forwarded packet with the host's address ends no flow: it may be forged",
	 ANSWERED_BEFORE,
	 LEAVES(TCP(v4_host, 25000, v4_server, 443, SYN))},
	{.then = "and the container's flow lives",
	 TO(v4_container_one, 25000, ARRIVES(TCP(v4_server, 443, v4_host, 25000, ACK)))},
	{.says = "from a port that no masqueraded flow has had: nothing to remember",
	 OF_THE_HOST(LEAVES(UDP(v4_host, 25000, v4_server, 443)))},
};

static const struct row ping_rows[] = {
	{.says = "the host pings",
	 OF_THE_HOST(LEAVES(PING4(v4_host, v4_server, 5))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "a container's ping with the same identifier gets another one",
	 AS(v4_host, CHOSEN, LEAVES(PING4(v4_container_one, v4_server, 5))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.then = "the host gets its answer", ARRIVES(PONG4(v4_server, v4_host, 5))},
	{.says = "the host asks for the time",
	 OF_THE_HOST(LEAVES(STAMP4(v4_host, v4_server, 5))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.says = "the host sends UDP-Lite",
	 OF_THE_HOST(LEAVES(UDP_LITE(v4_host, 25000, v4_server, 9000))),
	 .flows = {THIS_OF_HOST(NEW)}},
	{.then = "a container's from the same port gets another one",
	 AS(v4_host, CHOSEN, LEAVES(UDP_LITE(v4_container_one, 25000, v4_server, 9000))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.says = "the host answers a ping: nothing to remember",
	 OF_THE_HOST(LEAVES(PONG4(v4_host, v4_client, 6)))},
};

void host_rows(void)
{
	ROWS_RUN(rows);
	ROWS_RUN(gone_rows);
	ROWS_RUN(later_rows);
	ROWS_RUN(ping_rows);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* direct_rows.c - connections to a container's own address, and those that clash with one. */
#include "row.h"

static const struct row direct_rows_of_tcp[] = {
	{.says = "a SYN to the container's own address: untouched, recorded as unconfirmed",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "the stack has let it through: confirmed",
	 DELIVERED(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 .flows = {THIS_DIRECT(NEW)},
	 .counts = {"flow_direct"}},
	{.then = "the reply is not masqueraded",
	 LEAVES(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK))},
	{.then = "the client's ACK makes the flow assured",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, ACK)),
	 .flows = {THIS_DIRECT(ANSWERED)},
	 .counts = {"flow_promoted"}},
	{.then = "the same client and port to the mapped port: its port is changed",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)),
	 .out = TCP(v4_client, CHOSEN, v4_container_one, 80, SYN),
	 .adds = THIS_MAPPED(NEW),
	 .counts = {"flow_mapping", "flow_moved_port"}},
	{.then = "and restored in the reply",
	 LEAVES(TCP(v4_container_one, 80, v4_client, CHOSEN, SYN | ACK)),
	 .out = TCP(v4_host, 8080, v4_client, 40000, SYN | ACK)},
	{.then = "the direct connection's packets pass untouched",
	 LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK))},
	{.says = "a mapped connection",
	 MAPPED_TO(v6_container_one, 80, ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN)))},
	{.then = "the same client to another mapping of the same port: its port is changed",
	 ARRIVES(TCP(v6_client, 40000, v6_second_uplink, 8080, SYN)),
	 .out = TCP(v6_client, CHOSEN, v6_container_one, 80, SYN),
	 .adds = THIS_MAPPED(NEW)},
	{.says = "a mapped connection again",
	 MAPPED_TO(v6_container_one, 80, ARRIVES(TCP(v6_client, 40000, v6_host, 8080, SYN)))},
	{.then = "the same client, from the same port, directly: its port is changed too",
	 ARRIVES(TCP(v6_client, 40000, v6_container_one, 80, SYN)),
	 .out = TCP(v6_client, CHOSEN, v6_container_one, 80, SYN),
	 .adds = THIS_DIRECT(NEW)},
	{.then = "and restored in the reply",
	 LEAVES(TCP(v6_container_one, 80, v6_client, CHOSEN, SYN | ACK)),
	 .out = TCP(v6_container_one, 80, v6_client, 40000, SYN | ACK)},
	{.says = "a masqueraded flow from the container's published port",
	 MASQUERADED_AS(v4_host, 80, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, ACK)))},
	{.then = "its peer, from the same port, to the mapped port: its port is changed",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)),
	 .out = TCP(v4_client, CHOSEN, v4_container_one, 80, SYN),
	 .flows_unchecked = true,
	 .counts = {"flow_mapping", "flow_moved_port"}},
	{.says = "a client's SYN that the firewall refuses",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "retransmitted: still unconfirmed",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN))},
	{.then = "the firewall's RST in the container's name is not masqueraded",
	 OF_THE_HOST(LEAVES(TCP(v4_container_one, 80, v4_client, 40000, RST | ACK)))},
	{.then = "the container's own RST is masqueraded",
	 MASQUERADED_AS(v4_host, 80,
			LEAVES(TCP(v4_container_one, 80, v4_client, 40000, RST | ACK)))},
	{.then = "the same client once more: now its port is changed",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 .out = TCP(v4_client, CHOSEN, v4_container_one, 80, SYN),
	 .flows_unchecked = true,
	 .counts = {"flow_direct", "flow_moved_port"}},
	{.says = "TCP in mid-connection does not make a direct flow",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, ACK))},
	{.says = "nor does a SYN-ACK",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN | ACK))},
};

static const struct row direct_rows_of_others[] = {
	{.says = "a datagram to the container's own address",
	 ARRIVES(UDP(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED(UDP(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_DIRECT(NEW)},
	 .counts = {"flow_direct"}},
	{.then = "the next datagram", ARRIVES(UDP(v4_client, 5000, v4_container_one, 53))},
	{.then = "its reply is not masqueraded",
	 .within_a_second = true,
	 LEAVES(UDP(v4_container_one, 53, v4_client, 5000))},
	{.says = "a datagram to a routed container's own address",
	 ARRIVES(UDP(v6_client, 5000, v6_container_routed, 53)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED_BY(VETH_ROUTED, UDP(v6_client, 5000, v6_container_routed, 53)),
	 .flows = {THIS_DIRECT(NEW)}},
	{IN_BOTH_FAMILIES("a ping of the container's own address"),
	 ARRIVES(PING4(v4_client, v4_container_one, 9)),
	 .flows = {UNCONFIRMED(IPPROTO_ICMP, v4_client, 9, v4_container_one, 0)}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED(PING4(v4_client, v4_container_one, 9)),
	 .flows = {DIRECT(NEW, IPPROTO_ICMP, v4_client, 9, v4_container_one, 0)}},
	{.then = "its answer is not masqueraded", LEAVES(PONG4(v4_container_one, v4_client, 9))},
	{.says = "a timestamp request to the container's own address",
	 ARRIVES(STAMP4(v4_client, v4_container_one, 9)),
	 .flows = {UNCONFIRMED(IPPROTO_ICMP, v4_client, 9, v4_container_one, 0)}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED(STAMP4(v4_client, v4_container_one, 9)),
	 .flows = {DIRECT(NEW, IPPROTO_ICMP, v4_client, 9, v4_container_one, 0)}},
	{.then = "its answer is not masqueraded", LEAVES(STAMPED4(v4_container_one, v4_client, 9))},
	{.says = "UDP-Lite to the container's own address",
	 ARRIVES(UDP_LITE(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED(UDP_LITE(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "its answer is not masqueraded",
	 LEAVES(UDP_LITE(v4_container_one, 53, v4_client, 5000))},
	{.says = "a container on the bridge reaches a container of another network directly",
	 SENT_BY(VETH_QUIET, UDP(v4_container_quiet, 5000, v4_container_routed, 53)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "its reply is not masqueraded",
	 .within_a_second = true,
	 DELIVERED(UDP(v4_container_routed, 53, v4_container_quiet, 5000))},
	{.says = "a container that this plugin did not set up reaches one of another network",
	 CROSSES_BRIDGE(UDP(v4_stranger, 5000, v4_container_routed, 53)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED_BY(VETH_ROUTED, UDP(v4_stranger, 5000, v4_container_routed, 53)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "its reply is not masqueraded",
	 .within_a_second = true,
	 DELIVERED(UDP(v4_container_routed, 53, v4_stranger, 5000))},
};

static const struct row forged_rows[] = {
	{.says = "a forged datagram to a container, which the firewall drops after our hook",
	 ARRIVES(UDP(v4_server, 53, v4_container_one, 25000)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "and again", ARRIVES(UDP(v4_server, 53, v4_container_one, 25000))},
	{.then = "does not prevent masquerading the container's own flow to that server",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53)))},
	{.then = "nor does a reply at the hook towards the container",
	 DELIVERED(UDP(v4_server, 53, v4_container_one, 25000))},
	{.says = "a forged SYN from the bridge",
	 CROSSES_BRIDGE(TCP(v6_server, 443, v6_container_routed, 25000, SYN)),
	 .no_flows = true},
	{.then = "does not prevent it either",
	 MASQUERADED_AS(v6_host, 25000,
			LEAVES(TCP(v6_container_routed, 25000, v6_server, 443, SYN)))},
	{.says = "an unconfirmed client of a container that is deleted and added again",
	 ARRIVES(UDP(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "is not confirmed for the new one",
	 AFTER(fixture_add_again, ONE),
	 DELIVERED(UDP(v4_client, 5000, v4_container_one, 53))},
	{.then = "but recorded anew", ARRIVES(UDP(v4_client, 5000, v4_container_one, 53))},
	{.then = "and then confirmed",
	 DELIVERED(UDP(v4_client, 5000, v4_container_one, 53)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.says = "only the first packet of an unconfirmed connection confirms it",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "an ACK does not", DELIVERED(TCP(v4_client, 40000, v4_container_one, 80, ACK))},
};

/* Whether to_container confirms the note of a client that reaches a container directly. */
static bool confirms(enum mark mark, enum device came_in_by)
{
	static const struct packet packet = UDP(v4_client, 5000, v4_container_one, 80);
	struct counters before, after;
	struct frame frame;

	fixture_reset();
	row_send(FROM_UPLINK, UPLINK, &packet);
	row_build(&frame, &packet, TO_CONTAINER, BRIDGE);
	fixture_read_counters(&before);
	fixture_set_mark(mark);
	fixture_run(TO_CONTAINER, BRIDGE, came_in_by, &frame);
	fixture_set_mark(MARK_USUAL);
	fixture_read_counters(&after);
	return after.flow_direct != before.flow_direct;
}

static void done_row(void)
{
	row_begin("to_container looks for nothing if from_uplink says that it need not");
	if (confirms(MARK_DONE, UPLINK))
		row_fail("it does look");
	if (!confirms(MARK_NONE, UPLINK))
		row_fail("without that word it does not look");
	row_end();
	row_begin("but a container's word is not believed");
	if (!confirms(MARK_DONE, BRIDGE))
		row_fail("it is");
	row_end();
}

void direct_rows(void)
{
	ROWS_RUN(direct_rows_of_tcp);
	ROWS_RUN(direct_rows_of_others);
	ROWS_RUN(forged_rows);
	done_row();
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portless_rows.c - protocols of which only the addresses are translated: GRE, ESP, IP in IP, ...
 */
#include <stdio.h>

#include "row.h"

#include "keys.h"

#define IP_IN_IP 4
#define DCCP 33
#define GRE 47
#define ESP 50
#define AH 51

#define PORTLESS(number, source, destination, ...) \
	{ \
		.protocol = number, .from = source, .to = destination, .payload = 40, \
		##__VA_ARGS__ \
	}
#define HELD_BY_TWO(stage_, ...) \
	MASQUERADED(stage_, GRE, v4_container_two, 0, v4_server, 0, v4_host, 0, .owner = TWO, \
		    ##__VA_ARGS__)
#define HELD6() \
	MASQUERADED(ANSWERED, GRE, v6_container_one, 0, v6_server, 0, v6_host, 0, .owner = ONE)
#define TUNNEL_ERROR4(source, destination, inside) \
	ERROR4(3, 4, source, destination, PORTLESS(GRE, inside, v4_server), .icmp_rest = 1280)

static const struct row masquerade_row_list[] = {
	{.says = "GRE of a masqueraded container",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .counts = {"flow_masquerade"}},
	{.then = "its answer",
	 TO(v4_container_one, 0, ARRIVES(PORTLESS(GRE, v4_server, v4_host))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "the third packet does not assure it",
	 AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "but one after two seconds does",
	 AFTER(fixture_let_last, ONE),
	 AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .flows = {THIS_MASQUERADED(ANSWERED)}},
	{.then = "a router's error about it: the path's MTU",
	 ARRIVES(TUNNEL_ERROR4(v4_elsewhere, v4_host, v4_host)),
	 .out = TUNNEL_ERROR4(v4_elsewhere, v4_container_one, v4_container_one),
	 .flows = {MASQUERADED(ANSWERED, GRE, v4_container_one, 0, v4_server, 0, v4_host, 0)}},
	{.then = "of another container to the same server: its packets could not be told",
	 LEAVES(PORTLESS(GRE, v4_container_two, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.then = "its ESP is another flow",
	 .flows_unchecked = true,
	 AS(v4_host, 0, LEAVES(PORTLESS(ESP, v4_container_two, v4_server)))},
	{.says = "ESP over IPv6, with extension headers",
	 MASQUERADED_AS(v6_host, 0,
			LEAVES(PORTLESS(ESP, v6_container_one, v6_server, .extensions = "hd"))),
	 .counts = {"flow_masquerade"}},
	{.then = "its answer over IPv6",
	 TO(v6_container_one, 0, ARRIVES(PORTLESS(ESP, v6_server, v6_host))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "the first fragment of IP in IP",
	 MASQUERADED_AS(v4_host, 0,
			LEAVES(PORTLESS(IP_IN_IP, v4_container_one, v4_server,
					.fragment = FIRST_FRAGMENT)))},
	{.then = "its later one",
	 AS(v4_host, 0,
	    LEAVES(PORTLESS(IP_IN_IP, v4_container_one, v4_server, .fragment = LATER_FRAGMENT)))},
	{.then = "the answer's first fragment",
	 TO(v4_container_one, 0,
	    ARRIVES(PORTLESS(IP_IN_IP, v4_server, v4_host, .fragment = FIRST_FRAGMENT))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "and its later one",
	 TO(v4_container_one, 0,
	    ARRIVES(PORTLESS(IP_IN_IP, v4_server, v4_host, .fragment = LATER_FRAGMENT)))},
	{.says = "an unanswered flow gives way after 5 s",
	 .holds = {HELD_BY_TWO(NEW, .idle = 6)},
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .counts = {"flow_masquerade", "flow_evicted"}},
	{.says = "but not before",
	 .holds = {HELD_BY_TWO(NEW, .idle = 4)},
	 LEAVES(PORTLESS(GRE, v4_container_one, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "it does however often it is repeated",
	 .holds = {HELD_BY_TWO(NEW, .idle = 6)},
	 AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_two, v4_server)))},
	{.then = "another container's packet there has its turn",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .counts = {"flow_masquerade", "flow_evicted"}},
	{.then = "and then the time for its answer",
	 LEAVES(PORTLESS(GRE, v4_container_two, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "nor does an answered one for ten minutes",
	 .holds = {HELD_BY_TWO(ANSWERED, .idle = 590)},
	 LEAVES(PORTLESS(GRE, v4_container_one, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "then it is dead",
	 .holds = {HELD_BY_TWO(ANSWERED, .idle = 610)},
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server))),
	 .counts = {"flow_masquerade"}},
	{.says = "AH, which no address translation passes",
	 LEAVES(PORTLESS(AH, v4_container_one, v4_server)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "DCCP, which has ports",
	 LEAVES(PORTLESS(DCCP, v4_container_one, v4_server)),
	 DROPPED_AS("drop_untranslatable")},
};

static const struct row host_row_list[] = {
	{.says = "the host has a tunnel to the server",
	 OF_THE_HOST(LEAVES(PORTLESS(GRE, v4_host, v4_server))),
	 .no_flows = true},
	{.then = "a container cannot take its answers",
	 LEAVES(PORTLESS(GRE, v4_container_one, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.then = "they reach the host", ARRIVES(PORTLESS(GRE, v4_server, v4_host))},
	{.then = "the tunnel of a container to another server does not suffer",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_client)))},
	{.says = "the host receives only, IPv6",
	 ARRIVES(PORTLESS(GRE, v6_server, v6_host)),
	 .no_flows = true},
	{.then = "a container cannot take what it receives",
	 LEAVES(PORTLESS(GRE, v6_container_one, v6_server)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "a container sends to the host in the server's name",
	 CROSSES_BRIDGE(PORTLESS(GRE, v4_server, v4_host)),
	 .no_flows = true},
	{.then = "and takes the server from nobody",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server)))},
	{.says = "the peer of a container that is restarting: nobody has its packets",
	 ARRIVES(PORTLESS(GRE, v4_server, v4_host)),
	 .no_flows = true},
	{.then = "says the host to the peer",
	 OF_THE_HOST(LEAVES(ERROR4(3, 2, v4_host, v4_server, PORTLESS(GRE, v4_server, v4_host))))},
	{.then = "which goes on sending", ARRIVES(PORTLESS(GRE, v4_server, v4_host))},
	{.then = "the new container has the tunnel back",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server)))},
	{.says = "the peer of a container that has gone",
	 .holds = {HELD_BY_TWO(ANSWERED, .older_generation = true)},
	 ARRIVES(PORTLESS(GRE, v4_server, v4_host)),
	 .flows_unchecked = true},
	{.then = "the host drops it without a word; a new container has the tunnel nevertheless",
	 .flows_unchecked = true,
	 AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_server)))},
	{.says = "a container was first, and was answered",
	 .holds = {HELD_BY_TWO(ANSWERED, .idle = 1)},
	 OF_THE_HOST(LEAVES(PORTLESS(GRE, v4_host, v4_server))),
	 .no_flows = true,
	 .counts = {"flow_displaced"}},
	{.then = "the answers are the host's from now on",
	 ARRIVES(PORTLESS(GRE, v4_server, v4_host))},
	{.says = "a fragment of the host takes a container's tunnel, too",
	 .holds = {HELD6()},
	 OF_THE_HOST(LEAVES(PORTLESS(GRE, v6_host, v6_server, .fragment = FIRST_FRAGMENT))),
	 .no_flows = true,
	 .counts = {"flow_displaced"}},
	{.says = "another NAT gave a forwarded packet the uplink's address",
	 LEAVES(PORTLESS(ESP, v4_host, v4_server)),
	 .no_flows = true},
	{.then = "a container cannot take its answers either",
	 LEAVES(PORTLESS(ESP, v4_container_one, v4_server)),
	 DROPPED_AS("drop_no_tuple")},
};

static const struct row direct_row_list[] = {
	{.says = "a client's tunnel to a container's own address",
	 ARRIVES(PORTLESS(GRE, v4_client, v4_container_one)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "reaches it",
	 DELIVERED(PORTLESS(GRE, v4_client, v4_container_one)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "and what the container answers is not masqueraded",
	 LEAVES(PORTLESS(GRE, v4_container_one, v4_client)),
	 .flows_unchecked = true},
	{.says = "the container has begun a masqueraded one to the same client",
	 MASQUERADED_AS(v4_host, 0, LEAVES(PORTLESS(GRE, v4_container_one, v4_client)))},
	{.then = "whose answers could not be told from those to the client's",
	 ARRIVES(PORTLESS(GRE, v4_client, v4_container_one)),
	 DROPPED_AS("drop_no_tuple")},
};

static void peers_are_forged(void)
{
	const struct packet of_host = PORTLESS(GRE, v4_host, v4_server);
	char peer[32];

	fixture_reset();
	row_begin_counting(
		"packets of forged peers do not hide the tunnels that the host sends by");
	row_send_of_host(TO_UPLINK, UPLINK, &of_host);
	for (int i = 0; i < 4 * TUNNEL_PLACES; i++) {
		snprintf(peer, sizeof(peer), "100.64.%d.%d", i / 256, i % 256);
		ARRIVE(PORTLESS(GRE, peer, v4_host));
	}
	row_expect_dropped(LEAVE(PORTLESS(GRE, v4_container_one, v4_server)), "a container's");
	row_end_checked();
}

void portless_rows(void)
{
	ROWS_RUN(masquerade_row_list);
	ROWS_RUN(host_row_list);
	ROWS_RUN(direct_row_list);
	peers_are_forged();
}

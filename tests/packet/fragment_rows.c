/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fragment_rows.c - datagrams in fragments, in order and not. */
#include <stdio.h>
#include <string.h>

#include "row.h"

/* A datagram of 1,808 bytes in three pieces. */
#define DATAGRAM .payload = 1800
#define PIECE(fragment_, offset, size, ...) \
	DATAGRAM, .fragment = fragment_, .piece_offset = offset, .piece_size = size, ##__VA_ARGS__
#define FIRST(...) PIECE(FIRST_FRAGMENT, 0, 800, ##__VA_ARGS__)
#define MIDDLE(...) PIECE(LATER_FRAGMENT, 800, 800, ##__VA_ARGS__)
#define LAST(...) PIECE(LATER_FRAGMENT, 1600, 208, ##__VA_ARGS__)

#define REQUEST(piece, ...) UDP(v4_client, 5000, v4_host, 8080, piece(__VA_ARGS__))
#define REQUEST_IN(piece, ...) UDP(v4_client, 5000, v4_container_one, 80, piece(__VA_ARGS__))
#define ANSWER(piece, ...) UDP(v4_container_one, 80, v4_client, 5000, piece(__VA_ARGS__))
#define ANSWER_OUT(piece, ...) UDP(v4_host, 8080, v4_client, 5000, piece(__VA_ARGS__))
#define REQUEST6(piece, ...) UDP(v6_client, 5000, v6_host, 8080, piece(__VA_ARGS__))
#define REQUEST6_IN(piece, ...) UDP(v6_client, 5000, v6_container_one, 80, piece(__VA_ARGS__))
#define ANSWER6(piece, ...) UDP(v6_container_one, 80, v6_client, 5000, piece(__VA_ARGS__))
#define ANSWER6_OUT(piece, ...) UDP(v6_host, 8080, v6_client, 5000, piece(__VA_ARGS__))
#define QUERY(piece, ...) UDP(v4_container_one, 25000, v4_server, 53, piece(__VA_ARGS__))
#define QUERY_OUT(piece, ...) UDP(v4_host, 25000, v4_server, 53, piece(__VA_ARGS__))

#define MAPPED_FLOW(table) \
	MAPPED(table, IPPROTO_UDP, v4_client, 5000, v4_host, 8080, v4_container_one, 80, 5000)
#define MAPPED_FLOW6(table) \
	MAPPED(table, IPPROTO_UDP, v6_client, 5000, v6_host, 8080, v6_container_one, 80, 5000)
#define MASQUERADED_FLOW(table) \
	MASQUERADED(table, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53, v4_host, 25000)

static void given_six_seconds(void)
{
	fixture_age_fragments(6);
}

static void given_host_socket(void)
{
	host_bind_udp(v4_host, 8080);
}

static void given_no_ports(void)
{
	fixture_set_masquerade_ports(0, 0);
}

static const struct row mapped_rows[] = {
	{.says = "[T17] the first fragment to a mapped port makes the flow",
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST(FIRST),
	 .out = REQUEST_IN(FIRST),
	 .flows = {MAPPED_FLOW(NEW)},
	 .counts = {"flow_mapping"}},
	{.says = "[T17] a later one follows it",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST(MIDDLE),
	 .out = REQUEST_IN(MIDDLE)},
	{.says = "[T17] the last one too",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST(LAST),
	 .out = REQUEST_IN(LAST)},
	{.says = "[T17] the answer's first one",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER(FIRST),
	 .out = ANSWER_OUT(FIRST),
	 .flows = {MAPPED_FLOW(NEW)}},
	{.says = "[T17] the answer's later one",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER(LAST),
	 .out = ANSWER_OUT(LAST)},
	{.says = "[i04] another datagram's later one is not the same's",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER(LAST, .identification = 7),
	 .verdict = DROPPED,
	 .counts = {"drop_untranslatable"}},
	{.says = "[i04] nor is another protocol's",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 80, v4_client, 5000, ACK, LAST()),
	 .verdict = DROPPED,
	 .counts = {"drop_untranslatable"}},
	{.says = "[i04] nor what is older than a few seconds",
	 .then = true,
	 .given = given_six_seconds,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER(LAST),
	 .verdict = DROPPED,
	 .counts = {"drop_untranslatable"}},
	{.says = "[T17] a first fragment to a mapped port, IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST6(FIRST),
	 .out = REQUEST6_IN(FIRST),
	 .flows = {MAPPED_FLOW6(NEW)}},
	{.says = "[T17] a later one, IPv6",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST6(MIDDLE),
	 .out = REQUEST6_IN(MIDDLE)},
	{.says = "[T17] the answer's first one, IPv6",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER6(FIRST),
	 .out = ANSWER6_OUT(FIRST),
	 .flows = {MAPPED_FLOW6(NEW)}},
	{.says = "[T17] the answer's last one, behind other headers, IPv6",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = ANSWER6(LAST, .extensions = "hd"),
	 .out = ANSWER6_OUT(LAST, .extensions = "hd")},
	{.says = "[T17] without a checksum",
	 AT(FROM_UPLINK, UPLINK),
	 .in = REQUEST(FIRST, .without_checksum = true, .ipv4_options = 4),
	 .out = REQUEST_IN(FIRST, .without_checksum = true, .ipv4_options = 4),
	 .flows = {MAPPED_FLOW(NEW)}},
	{.says = "[T17] TCP in fragments",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN, FIRST()),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN, FIRST()),
	 .flows = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000)}},
	{.says = "[T17] TCP's later ones",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN, MIDDLE()),
	 .out = TCP(v4_client, 40000, v4_container_one, 80, SYN, MIDDLE())},
	{.says = "an IPv6 fragment header on what is all in one piece",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_host, 8080, .fragment = ATOMIC_FRAGMENT),
	 .out = UDP(v6_client, 5000, v6_container_one, 80, .fragment = ATOMIC_FRAGMENT),
	 .flows = {MAPPED_FLOW6(NEW)}},
	{.says = "it may have other headers around it",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_host, 8080, .fragment = ATOMIC_FRAGMENT, .extensions = "hd"),
	 .out = UDP(v6_client, 5000, v6_container_one, 80, .fragment = ATOMIC_FRAGMENT,
		    .extensions = "hd")},
};

static const struct row masqueraded_rows[] = {
	{.says = "[T17] a masqueraded datagram's first fragment",
	 AT(TO_UPLINK, UPLINK),
	 .in = QUERY(FIRST),
	 .out = QUERY_OUT(FIRST),
	 .flows = {MASQUERADED_FLOW(NEW)},
	 .counts = {"flow_masquerade"}},
	{.says = "[T17] its last one",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = QUERY(LAST),
	 .out = QUERY_OUT(LAST)},
	{.says = "[T17] the answer's first one, that came in with the same number",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 25000, FIRST()),
	 .out = UDP(v4_server, 53, v4_container_one, 25000, FIRST()),
	 .flows = {MASQUERADED_FLOW(NEW)}},
	{.says = "[T17] and its last one",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 25000, LAST()),
	 .out = UDP(v4_server, 53, v4_container_one, 25000, LAST())},
	{.says = "[T17] where the port moves, only the first one has one",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_one, 40000, v6_server, 53, FIRST()),
	 .out = UDP(v6_host, CHOSEN, v6_server, 53, FIRST()),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v6_container_one, 40000, v6_server, 53, v6_host,
			       CHOSEN)}},
	{.says = "[T17] and the later ones are nothing but the address's",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_one, 40000, v6_server, 53, MIDDLE()),
	 .out = UDP(v6_host, 40000, v6_server, 53, MIDDLE())},
	{.says = "[T17] cut anew by the stack, which came in nowhere",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v6_container_one, 25000, v6_server, 53, FIRST()),
	 .out = UDP(v6_host, 25000, v6_server, 53, FIRST()),
	 .flows = {MASQUERADED(NEW, IPPROTO_UDP, v6_container_one, 25000, v6_server, 53, v6_host,
			       25000)}},
	{.says = "[T17] the later one of these",
	 .then = true,
	 .of_the_host = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_one, 25000, v6_server, 53, LAST()),
	 .out = UDP(v6_host, 25000, v6_server, 53, LAST())},
	{.says = "[T17] a ping larger than the MTU",
	 AT(TO_UPLINK, UPLINK),
	 .in = PING4(v4_container_one, v4_server, 9, FIRST()),
	 .out = PING4(v4_host, v4_server, 9, FIRST()),
	 .flows = {MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 9, v4_server, 0, v4_host, 9)}},
	{.says = "[T17] its last fragment",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = PING4(v4_container_one, v4_server, 9, LAST()),
	 .out = PING4(v4_host, v4_server, 9, LAST())},
	{.says = "[T17] the echo's first",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = PONG4(v4_server, v4_host, 9, FIRST()),
	 .out = PONG4(v4_server, v4_container_one, 9, FIRST()),
	 .flows = {MASQUERADED(NEW, IPPROTO_ICMP, v4_container_one, 9, v4_server, 0, v4_host, 9)}},
	{.says = "[T17] the echo's last",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = PONG4(v4_server, v4_host, 9, LAST()),
	 .out = PONG4(v4_server, v4_container_one, 9, LAST())},
	{.says = "[T17] a ping larger than the MTU, IPv6",
	 AT(TO_UPLINK, UPLINK),
	 .in = PING6(v6_container_one, v6_server, 9, FIRST()),
	 .out = PING6(v6_host, v6_server, 9, FIRST()),
	 .flows = {MASQUERADED(NEW, IPPROTO_ICMPV6, v6_container_one, 9, v6_server, 0, v6_host,
			       9)}},
	{.says = "[T17] its last fragment, IPv6",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = PING6(v6_container_one, v6_server, 9, LAST()),
	 .out = PING6(v6_host, v6_server, 9, LAST())},
	{.says = "[i04] the first one could not be translated: all are dropped",
	 .given = given_no_ports,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 40000, v4_server, 53, FIRST()),
	 .verdict = DROPPED,
	 .counts = {"drop_no_tuple"}},
	{.says = "[i04] the later ones without being counted again",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 40000, v4_server, 53, LAST()),
	 .verdict = DROPPED},
	{.says = "a datagram that goes unmasqueraded to a neighbour",
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v4_container_one, 5000, v4_container_two, 53, FIRST())},
	{.says = "all of it",
	 .then = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v4_container_one, 5000, v4_container_two, 53, LAST())},
	{.says = "an endpoint without masquerade leaves as it is, in fragments too",
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_quiet, 25000, v6_server, 53, FIRST())},
	{.says = "later fragments, first one unknown, too",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v6_container_quiet, 25000, v6_server, 53, LAST(.identification = 9))},
	{.says = "the first one of a client that knows the container's address",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_container_one, 80, FIRST()),
	 .flows = {NOTED(IPPROTO_UDP, v4_client, 5000, v4_container_one, 80)}},
	{.says = "the stack lets it through: remembered",
	 .then = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v4_client, 5000, v4_container_one, 80, FIRST()),
	 .flows = {DIRECT(NEW, IPPROTO_UDP, v4_client, 5000, v4_container_one, 80)},
	 .counts = {"flow_direct"}},
	{.says = "its later one",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_container_one, 80, LAST())},
	{.says = "the answer is not masqueraded",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 80, v4_client, 5000, FIRST()),
	 .flows = {DIRECT(NEW, IPPROTO_UDP, v4_client, 5000, v4_container_one, 80)}},
	{.says = "all of it",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = UDP(v4_container_one, 80, v4_client, 5000, LAST())},
	{.says = "the first one of such a client, IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 8080, v6_container_one, 80, FIRST()),
	 .flows = {NOTED(IPPROTO_UDP, v6_client, 8080, v6_container_one, 80)}},
	{.says = "cut anew by the stack, it came in nowhere, but is the client's: remembered",
	 .then = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .of_the_host = true,
	 .in = UDP(v6_client, 8080, v6_container_one, 80, FIRST(.identification = 77)),
	 .flows = {DIRECT(NEW, IPPROTO_UDP, v6_client, 8080, v6_container_one, 80)},
	 .counts = {"flow_direct"}},
	{.says = "its later one",
	 .then = true,
	 .of_the_host = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v6_client, 8080, v6_container_one, 80, LAST(.identification = 77))},
};

static const struct row neighbour_rows_in_fragments[] = {
	{.says = "[T17] a neighbour's first fragment by a host address",
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = UDP(v4_container_two, 5000, v4_host, 8080, FIRST()),
	 .out = UDP(v4_container_two, 5000, v4_container_one, 80, FIRST()),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_container_two, 5000, v4_host, 8080, v4_container_one,
			  80, 5000)}},
	{.says = "[T17] its last",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = UDP(v4_container_two, 5000, v4_host, 8080, LAST()),
	 .out = UDP(v4_container_two, 5000, v4_container_one, 80, LAST())},
	{.says = "[T17] the answer's first is lifted",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_ONE),
	 .in = UDP(v4_container_one, 80, v4_container_two, 5000, FIRST(),
		   .to_mac = MAC_CONTAINER_TWO),
	 .out = UDP(v4_container_one, 80, v4_container_two, 5000, FIRST(), .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.says = "[T17] the answer's last too",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_ONE),
	 .in = UDP(v4_container_one, 80, v4_container_two, 5000, LAST(),
		   .to_mac = MAC_CONTAINER_TWO),
	 .out = UDP(v4_container_one, 80, v4_container_two, 5000, LAST(), .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.says = "[T17] the answer's first leaves the bridge",
	 .then = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v4_container_one, 80, v4_container_two, 5000, FIRST()),
	 .out = UDP(v4_host, 8080, v4_container_two, 5000, FIRST()),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v4_container_two, 5000, v4_host, 8080, v4_container_one,
			  80, 5000)}},
	{.says = "[T17] the answer's last leaves the bridge",
	 .then = true,
	 AT(TO_CONTAINER, BRIDGE),
	 .in = UDP(v4_container_one, 80, v4_container_two, 5000, LAST()),
	 .out = UDP(v4_host, 8080, v4_container_two, 5000, LAST())},
	{.says = "[T17] a stranger's first fragment, IPv6",
	 AT(FROM_BRIDGE, BRIDGE),
	 .in = UDP(v6_stranger, 5000, v6_host, 8080, FIRST()),
	 .out = UDP(v6_stranger, 5000, v6_container_one, 80, FIRST()),
	 .flows = {MAPPED(NEW, IPPROTO_UDP, v6_stranger, 5000, v6_host, 8080, v6_container_one, 80,
			  5000)}},
	{.says = "[T17] a stranger's last fragment, IPv6",
	 .then = true,
	 AT(FROM_BRIDGE, BRIDGE),
	 .in = UDP(v6_stranger, 5000, v6_host, 8080, LAST()),
	 .out = UDP(v6_stranger, 5000, v6_container_one, 80, LAST())},
	{.says = "neighbours among themselves are switched",
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = UDP(v4_container_quiet, 5000, v4_stranger, 99, FIRST(), .to_mac = MAC_FOREIGN)},
	{.says = "neighbours among themselves are switched, the last too",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = UDP(v4_container_quiet, 5000, v4_stranger, 99, LAST(), .to_mac = MAC_FOREIGN)},
	{.says = "a container's first fragment without ports",
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = UDP(v4_container_quiet, 5000, v4_client, 99, .fragment = FIRST_FRAGMENT,
		   .without_transport = true)},
	{.says = "the later one does not wait for another",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = UDP(v4_container_quiet, 5000, v4_client, 99, LAST())},
	{.says = "an ICMP error in fragments is none",
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = ERROR4(3, 3, v4_container_quiet, v4_client,
		      UDP(v4_client, 99, v4_container_quiet, 5000), .fragment = FIRST_FRAGMENT)},
	{.says = "its later fragment goes the same way",
	 .then = true,
	 AT(FROM_CONTAINER, VETH_QUIET),
	 .in = ICMP(IPPROTO_ICMP, 3, 3, v4_container_quiet, v4_client, 0, LAST())},
};

static const struct row host_rows_in_fragments[] = {
	{.says = "[i08] the host's own fragments leave as they are",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 5050, v4_server, 53, LAST())},
	{.says = "[i08] from a published port the first is remembered",
	 .given = given_host_socket,
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v4_host, 8080, v4_server, 53, FIRST()),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53)},
	 .counts = {"flow_host"}},
	{.says = "[i08] the answer in fragments is the host's",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 8080, FIRST()),
	 .flows = {OF_HOST(NEW, IPPROTO_UDP, v4_host, 8080, v4_server, 53)}},
	{.says = "[i08] all of it",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 8080, LAST())},
	{.says = "[i08] to a port of the host's that nobody mapped",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_host, 53, FIRST())},
	{.says = "[i08] all of it, IPv6",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_host, 53, LAST())},
	{.says = "[i08] what is not understood in fragments: GRE",
	 AT(FROM_UPLINK, UPLINK),
	 .in = {.protocol = 47,
		.from = v4_client,
		.to = v4_host,
		.payload = 40,
		.fragment = LATER_FRAGMENT}},
	{.says = "[i08] what is not understood in fragments: GRE over IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = {.protocol = 47,
		.from = v6_client,
		.to = v6_host,
		.payload = 40,
		.fragment = LATER_FRAGMENT}},
	{.says = "[i13] a first fragment without its whole TCP header",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN, PIECE(FIRST_FRAGMENT, 0, 8))},
	{.says = "[i13] its later ones are not waited for",
	 .then = true,
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN, MIDDLE())},
	{.says = "[i13] TCP's flags in a fragment of their own",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client, 40000, v4_host, 8080, SYN, PIECE(LATER_FRAGMENT, 8, 800))},
	{.says = "[i13] TCP's flags in a fragment of their own, IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v6_client, 40000, v6_host, 8080, SYN, PIECE(LATER_FRAGMENT, 8, 800))},
	{.says = "[i04] though the first one was translated",
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 25000, v4_server, 443, SYN, FIRST()),
	 .out = TCP(v4_host, 25000, v4_server, 443, SYN, FIRST()),
	 .flows_unchecked = true},
	{.says = "[i04] nobody writes over its flags",
	 .then = true,
	 AT(TO_UPLINK, UPLINK),
	 .in = TCP(v4_container_one, 25000, v4_server, 443, SYN, PIECE(LATER_FRAGMENT, 8, 800)),
	 .verdict = DROPPED,
	 .counts = {"drop_untranslatable"}},
	{.says = "[i01] forwarded fragments pass, whose first one nobody has seen",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_client, 5000, v4_elsewhere, 8080, LAST())},
	{.says = "[i01] forwarded fragments pass, IPv6",
	 AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v6_client, 5000, v6_elsewhere, 8080, LAST())},
};

/* Out of order: what is held comes out behind the first one, where that came in. */

struct disorder {
	const char *says;
	enum hook hook;
	enum device device;
	struct packet first;
	struct packet last;
	struct packet middle;
};

static bool step(const struct disorder *test, const struct packet *packet, int expected)
{
	struct frame frame;
	int verdict;

	row_build(&frame, packet, test->hook, test->device);
	verdict = fixture_run(test->hook, test->device, test->device, &frame);
	if (verdict != expected)
		row_fail("verdict %d, expected %d", verdict, expected);
	return verdict == expected;
}

static void expect_watched(const struct disorder *test, const struct packet *packet)
{
	struct frame expected, got = {0};

	row_build(&expected, packet, test->hook, test->device);
	got.length = host_watched(got.bytes, sizeof(got.bytes));
	if (got.length == 0)
		row_fail("a fragment was not sent on");
	else if (!frame_equal(&expected, &got)) {
		row_fail("a fragment that was sent on differs");
		frame_print_difference(&expected, &got);
	}
}

static void expect_no_more_watched(void)
{
	uint8_t bytes[FRAME_SIZE];

	if (host_watched(bytes, sizeof(bytes)))
		row_fail("something else was sent on");
}

#define SHOT 2
#define GOES_ON (-1)

static void run_disorder(const struct disorder *test)
{
	fixture_reset();
	host_watch(test->device);
	step(test, &test->last, SHOT);
	step(test, &test->middle, SHOT);
	if (fixture_count_held() != 2)
		row_fail("%d fragments are held, expected 2", fixture_count_held());
	expect_no_more_watched();
	step(test, &test->first, SHOT);
	expect_watched(test, &test->first);
	expect_watched(test, &test->middle);
	expect_watched(test, &test->last);
	expect_no_more_watched();
	if (fixture_count_held() != 0)
		row_fail("%d fragments are still held", fixture_count_held());
	step(test, &test->first, GOES_ON);
	step(test, &test->middle, GOES_ON);
	step(test, &test->last, GOES_ON);
	expect_no_more_watched();
	host_watch_end();
}

#define DISORDER(says_, hook_, device_, packet) \
	{ \
		.says = says_, .hook = hook_, .device = device_, .first = packet(FIRST), \
		.middle = packet(MIDDLE), .last = packet(LAST) \
	}
#define HOST_DATAGRAM(piece) UDP(v4_client, 5000, v4_host, 53, piece())
#define HOST_TCP6(piece) TCP(v6_client, 5000, v6_host, 22, ACK, piece())
#define STRANGER(piece) UDP(v4_stranger, 5000, v4_host, 8080, piece())
#define CONTAINER6(piece) UDP(v6_container_one, 5000, v6_server, 53, piece())
#define CONTAINER_PING(piece) PING4(v4_container_routed, v4_server, 53, piece())
#define NEIGHBOUR(piece) UDP(v4_container_two, 5000, v4_host, 8080, piece())

static const struct disorder disorders[] = {
	DISORDER("[T17] out of order: to a mapped port", FROM_UPLINK, UPLINK, REQUEST),
	DISORDER("[T17] out of order: to a mapped port, IPv6", FROM_UPLINK, UPLINK, REQUEST6),
	DISORDER("[T17] [i08] out of order: to the host", FROM_UPLINK, UPLINK, HOST_DATAGRAM),
	DISORDER("[T17] [i08] out of order: TCP to the host, IPv6", FROM_UPLINK, UPLINK, HOST_TCP6),
	DISORDER("[T17] out of order: a stranger on the bridge", FROM_BRIDGE, BRIDGE, STRANGER),
	DISORDER("[T17] out of order: a container's", FROM_CONTAINER, VETH_ONE, CONTAINER6),
	DISORDER("[T17] out of order: a routed container's ping", FROM_CONTAINER, VETH_ROUTED,
		 CONTAINER_PING),
	DISORDER("[T17] out of order: a neighbour's", FROM_CONTAINER, VETH_TWO, NEIGHBOUR),
};

void fragment_rows(void)
{
	ROWS_RUN(mapped_rows);
	ROWS_RUN(masqueraded_rows);
	ROWS_RUN(neighbour_rows_in_fragments);
	ROWS_RUN(host_rows_in_fragments);
	host_close_sockets();
	for (size_t i = 0; i < sizeof(disorders) / sizeof(disorders[0]); i++) {
		row_begin(disorders[i].says);
		run_disorder(&disorders[i]);
		row_end();
	}
}

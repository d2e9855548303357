/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fragment_rows.c - datagrams in fragments, in order and not. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "row.h"

/* A datagram of 1,808 bytes in three pieces. */
#define DATAGRAM .payload = 1800
#define PIECE(fragment_, offset, size, ...) \
	DATAGRAM, .fragment = fragment_, .piece_offset = offset, .piece_size = size, ##__VA_ARGS__
#define FIRST(...) PIECE(FIRST_FRAGMENT, 0, 800, ##__VA_ARGS__)
#define MIDDLE(...) PIECE(LATER_FRAGMENT, 800, 800, ##__VA_ARGS__)
#define LAST(...) PIECE(LATER_FRAGMENT, 1600, 208, ##__VA_ARGS__)

#define REQUEST(piece, ...) UDP(v4_client, 5000, v4_host, 8080, piece(__VA_ARGS__))
#define ANSWER(piece, ...) UDP(v4_container_one, 80, v4_client, 5000, piece(__VA_ARGS__))
#define REQUEST6(piece, ...) UDP(v6_client, 5000, v6_host, 8080, piece(__VA_ARGS__))
#define ANSWER6(piece, ...) UDP(v6_container_one, 80, v6_client, 5000, piece(__VA_ARGS__))
#define QUERY(piece, ...) UDP(v4_container_one, 25000, v4_server, 53, piece(__VA_ARGS__))

static void given_three_seconds(void)
{
	fixture_age_fragments(3);
}

static void given_six_seconds(void)
{
	fixture_age_fragments(6);
}

static const struct row owner_rows[] = {
	{.says = "a first fragment to a mapped port",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(REQUEST(FIRST)))},
	{.then = "after DEL a later one does not reach the address's next owner",
	 AFTER(fixture_add_again, ONE),
	 ARRIVES(REQUEST(MIDDLE)),
	 .counts = {"fragment_not_held"}},
	{.says = "a masqueraded first fragment",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(QUERY(FIRST)))},
	{.then = "and the next owner's later one is not of its datagram",
	 AFTER(fixture_add_again, ONE),
	 LEAVES(QUERY(LAST)),
	 DROPPED_AS("drop_untranslatable")},
};

static const struct row mapped_rows[] = {
	{.says = "the first fragment to a mapped port makes the flow",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(REQUEST(FIRST))),
	 .counts = {"flow_mapping"}},
	{.then = "a later one is translated likewise",
	 TO(v4_container_one, 80, ARRIVES(REQUEST(MIDDLE)))},
	{.then = "the last one too", TO(v4_container_one, 80, ARRIVES(REQUEST(LAST)))},
	{.then = "one that comes in by another interface is held: it is of another datagram",
	 ARRIVES_BY(SECOND_UPLINK, REQUEST(LAST)),
	 DROPPED_AS("fragment_held")},
	{.then = "so is one from the bridge",
	 CROSSES_BRIDGE(REQUEST(MIDDLE)),
	 DROPPED_AS("fragment_held")},
	{.then = "a repeated first one releases neither",
	 TO(v4_container_one, 80, ARRIVES(REQUEST(FIRST)))},
	{.then = "the answer's first one",
	 .within_a_second = true,
	 AS(v4_host, 8080, LEAVES(ANSWER(FIRST))),
	 .flows = {THIS_MAPPED(NEW)}},
	{.then = "the answer's later one", AS(v4_host, 8080, LEAVES(ANSWER(LAST)))},
	{.then = "a later one of another datagram is dropped",
	 LEAVES(ANSWER(LAST, .identification = 7)),
	 DROPPED_AS("drop_untranslatable")},
	{.then = "so is one of another protocol",
	 LEAVES(TCP(v4_container_one, 80, v4_client, 5000, ACK, LAST())),
	 DROPPED_AS("drop_untranslatable")},
	{.then = "a late one keeps the record alive",
	 .given = given_three_seconds,
	 AS(v4_host, 8080, LEAVES(ANSWER(MIDDLE)))},
	{.then = "and another late one",
	 .given = given_three_seconds,
	 AS(v4_host, 8080, LEAVES(ANSWER(LAST)))},
	{.then = "one that is six seconds late is dropped",
	 .given = given_six_seconds,
	 LEAVES(ANSWER(LAST)),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a first fragment to a mapped port, IPv6",
	 MAPPED_TO(v6_container_one, 80, ARRIVES(REQUEST6(FIRST)))},
	{.then = "a later one, IPv6", TO(v6_container_one, 80, ARRIVES(REQUEST6(MIDDLE)))},
	{.then = "the answer's first one, IPv6",
	 .within_a_second = true,
	 AS(v6_host, 8080, LEAVES(ANSWER6(FIRST)))},
	{.then = "the answer's last one, behind other headers, IPv6",
	 AS(v6_host, 8080, LEAVES(ANSWER6(LAST, .extensions = "hd")))},
	{.says = "headers behind the fragment header are in the first one only, IPv6",
	 MAPPED_TO(v6_container_one, 80, ARRIVES(REQUEST6(FIRST, .extensions = "fd")))},
	{.then = "the later one names the first of these headers, not UDP",
	 TO(v6_container_one, 80, ARRIVES(REQUEST6(MIDDLE, .extensions = "fd")))},
	{.then = "over IPv6 the identification counts, whatever a later one names",
	 TO(v6_container_one, 8080, ARRIVES(TCP(v6_client, 5000, v6_host, 8080, ACK, LAST())))},
	{.says = "two fragment headers",
	 ARRIVES(UDP(v6_client, 5000, v6_host, 8080, .fragment = ATOMIC_FRAGMENT,
		     .extensions = "ff"))},
	{.says = "without a checksum",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES(REQUEST(FIRST, .without_checksum = true, .ipv4_options = 4)))},
	{.says = "TCP in fragments",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN, FIRST())))},
	{.then = "TCP's later ones",
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN, MIDDLE())))},
	{.says = "an IPv6 fragment header on an unfragmented packet",
	 MAPPED_TO(v6_container_one, 80,
		   ARRIVES(UDP(v6_client, 5000, v6_host, 8080, .fragment = ATOMIC_FRAGMENT)))},
	{.then = "it may have other headers around it",
	 TO(v6_container_one, 80,
	    ARRIVES(UDP(v6_client, 5000, v6_host, 8080, .fragment = ATOMIC_FRAGMENT,
			.extensions = "hd")))},
};

static const struct row masqueraded_rows[] = {
	{.says = "a masqueraded datagram's first fragment",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(QUERY(FIRST))),
	 .counts = {"flow_masquerade"}},
	{.then = "its last one", AS(v4_host, 25000, LEAVES(QUERY(LAST)))},
	{.then = "the answer's first one, with the same identification",
	 .within_a_second = true,
	 TO(v4_container_one, 25000, ARRIVES(UDP(v4_server, 53, v4_host, 25000, FIRST())))},
	{.then = "and its last one",
	 TO(v4_container_one, 25000, ARRIVES(UDP(v4_server, 53, v4_host, 25000, LAST())))},
	{.says = "a masqueraded datagram whose port is replaced",
	 MASQUERADED_AS(v6_host, CHOSEN,
			LEAVES(UDP(v6_container_one, 40000, v6_server, 53, FIRST())))},
	{.then = "in its later fragments only the address is translated",
	 AS(v6_host, 40000, LEAVES(UDP(v6_container_one, 40000, v6_server, 53, MIDDLE())))},
	{.says = "without an ingress interface and a seal: not the host's",
	 OF_THE_HOST(LEAVES(UDP(v6_container_one, 25000, v6_server, 53, FIRST()))),
	 DROPPED_AS("drop_forged_source")},
	{.says = "fragmented again by the stack: no ingress interface",
	 .mark = MARK_SEAL,
	 MASQUERADED_AS(v6_host, 25000,
			OF_THE_HOST(LEAVES(UDP(v6_container_one, 25000, v6_server, 53, FIRST()))))},
	{.then = "its later one",
	 AS(v6_host, 25000,
	    OF_THE_HOST(LEAVES(UDP(v6_container_one, 25000, v6_server, 53, LAST()))))},
	{IN_BOTH_FAMILIES("a ping larger than the MTU"),
	 MASQUERADED_AS(v4_host, 9, LEAVES(PING4(v4_container_one, v4_server, 9, FIRST())))},
	{.then = "its last fragment",
	 AS(v4_host, 9, LEAVES(PING4(v4_container_one, v4_server, 9, LAST())))},
	{.then = "the echo's first",
	 TO(v4_container_one, 0, ARRIVES(PONG4(v4_server, v4_host, 9, FIRST()))),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.then = "the echo's last",
	 TO(v4_container_one, 0, ARRIVES(PONG4(v4_server, v4_host, 9, LAST())))},
	{.says = "a first one that cannot be translated is dropped",
	 .no_ports = true,
	 LEAVES(UDP(v4_container_one, 40000, v4_server, 53, FIRST())),
	 DROPPED_AS("drop_no_tuple")},
	{.then = "so are the later ones, without being counted again",
	 LEAVES(UDP(v4_container_one, 40000, v4_server, 53, LAST())),
	 .verdict = DROPPED},
	{.says = "a routed container's datagram to a mapped port on the bridge",
	 TO(v4_container_one, 80,
	    SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_host, 8080, FIRST()))),
	 .flows_unchecked = true},
	{.then = "is not masqueraded at the bridge",
	 DELIVERED(UDP(v4_container_routed, 5000, v4_container_one, 80, FIRST()))},
	{.then = "its later one too",
	 DELIVERED(UDP(v4_container_routed, 5000, v4_container_one, 80, LAST()))},
	{.says = "a routed container's datagram to another network of the host",
	 SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_container_quiet, 80, FIRST())),
	 .flows_unchecked = true},
	{.then = "is masqueraded at egress",
	 AS(v4_bridge, 25000,
	    DELIVERED(UDP(v4_container_routed, 25000, v4_container_quiet, 80, FIRST()))),
	 .flows_unchecked = true},
	{.then = "and nowhere else",
	 SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_container_quiet, 80, LAST()))},
	{.says = "a client whose route goes through another uplink",
	 TO(v4_container_one, 80,
	    ARRIVES_BY(SECOND_UPLINK, UDP(v4_client, 5000, v4_second_uplink, 8080))),
	 .flows_unchecked = true},
	{.then = "an answer at the uplink of the route is not redirected",
	 AS(v4_second_uplink, 8080, LEAVES(UDP(v4_container_one, 80, v4_client, 5000)))},
	{.then = "the answer's first fragment is redirected to the uplink of the route",
	 .within_a_second = true,
	 LEAVES_BY(SECOND_UPLINK, ANSWER(FIRST)),
	 .verdict = REDIRECTED,
	 .out = UDP(v4_second_uplink, 8080, v4_client, 5000, FIRST()),
	 .counts = {"rerouted"}},
	{.then = "the answer's last fragment too",
	 .within_a_second = true,
	 LEAVES_BY(SECOND_UPLINK, ANSWER(LAST)),
	 .verdict = REDIRECTED,
	 .out = UDP(v4_second_uplink, 8080, v4_client, 5000, LAST()),
	 .counts = {"rerouted"}},
	{.says = "SCTP in fragments after other headers, IPv6, port replaced: dropped",
	 .flows_unchecked = true,
	 LEAVES(SCTP(v6_container_one, 5000, v6_server, 3868, FIRST(.extensions = "fd"))),
	 DROPPED_AS("flow_masquerade", "flow_moved_port", "drop_sctp_fragment")},
	{.says = "port kept: translated",
	 .flows_unchecked = true,
	 AS(v6_host, 25000,
	    LEAVES(SCTP(v6_container_one, 25000, v6_server, 3868, FIRST(.extensions = "fd"))))},
	{.says = "an unmasqueraded datagram to another container on the bridge",
	 DELIVERED(UDP(v4_container_one, 5000, v4_container_two, 53, FIRST()))},
	{.then = "its later one too",
	 DELIVERED(UDP(v4_container_one, 5000, v4_container_two, 53, LAST()))},
	{.says = "an endpoint without masquerade leaves as it is, in fragments too",
	 LEAVES(UDP(v6_container_quiet, 25000, v6_server, 53, FIRST()))},
	{.then = "also later fragments without a first one",
	 LEAVES(UDP(v6_container_quiet, 25000, v6_server, 53, LAST(.identification = 9)))},
	{.says = "a first one to the container's own address",
	 ARRIVES(UDP(v4_client, 5000, v4_container_one, 80, FIRST())),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "let through by the stack: confirmed",
	 DELIVERED(UDP(v4_client, 5000, v4_container_one, 80, FIRST())),
	 .flows = {THIS_DIRECT(NEW)},
	 .counts = {"flow_direct"}},
	{.then = "its later one", ARRIVES(UDP(v4_client, 5000, v4_container_one, 80, LAST()))},
	{.then = "the answer is not masqueraded",
	 .within_a_second = true,
	 LEAVES(UDP(v4_container_one, 80, v4_client, 5000, FIRST()))},
	{.then = "its later one too", LEAVES(UDP(v4_container_one, 80, v4_client, 5000, LAST()))},
	{.says = "a first one to the container's own address, IPv6",
	 ARRIVES(UDP(v6_client, 8080, v6_container_one, 80, FIRST())),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "fragmented again by the stack, without an ingress interface: confirmed",
	 OF_THE_HOST(DELIVERED(
		 UDP(v6_client, 8080, v6_container_one, 80, FIRST(.identification = 77)))),
	 .flows = {THIS_DIRECT(NEW)},
	 .counts = {"flow_direct"}},
	{.then = "its later one",
	 OF_THE_HOST(DELIVERED(
		 UDP(v6_client, 8080, v6_container_one, 80, LAST(.identification = 77))))},
};

static const struct row neighbour_rows_in_fragments[] = {
	{.says = "another container on the bridge to a host address: the first fragment",
	 MAPPED_TO(v4_container_one, 80,
		   SENT_BY(VETH_TWO, UDP(v4_container_two, 5000, v4_host, 8080, FIRST())))},
	{.then = "its last",
	 TO(v4_container_one, 80,
	    SENT_BY(VETH_TWO, UDP(v4_container_two, 5000, v4_host, 8080, LAST())))},
	{.then = "the answer's first is lifted",
	 SENT_BY(VETH_ONE, UDP(v4_container_one, 80, v4_container_two, 5000, FIRST(),
			       .to_mac = MAC_CONTAINER_TWO)),
	 .out = UDP(v4_container_one, 80, v4_container_two, 5000, FIRST(), .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.then = "the answer's last too",
	 SENT_BY(VETH_ONE, UDP(v4_container_one, 80, v4_container_two, 5000, LAST(),
			       .to_mac = MAC_CONTAINER_TWO)),
	 .out = UDP(v4_container_one, 80, v4_container_two, 5000, LAST(), .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.then = "the answer's first leaves the bridge",
	 .within_a_second = true,
	 AS(v4_host, 8080, DELIVERED(UDP(v4_container_one, 80, v4_container_two, 5000, FIRST())))},
	{.then = "the answer's last leaves the bridge",
	 AS(v4_host, 8080, DELIVERED(UDP(v4_container_one, 80, v4_container_two, 5000, LAST())))},
	{.says = "a container that this plugin did not set up: the first fragment, IPv6",
	 MAPPED_TO(v6_container_one, 80,
		   CROSSES_BRIDGE(UDP(v6_stranger, 5000, v6_host, 8080, FIRST())))},
	{.then = "a container that this plugin did not set up: the last fragment, IPv6",
	 TO(v6_container_one, 80, CROSSES_BRIDGE(UDP(v6_stranger, 5000, v6_host, 8080, LAST())))},
	{.says = "fragments between containers on the bridge are switched",
	 SENT_BY(VETH_QUIET,
		 UDP(v4_container_quiet, 5000, v4_stranger, 99, FIRST(), .to_mac = MAC_FOREIGN))},
	{.then = "fragments between containers on the bridge are switched, the last too",
	 SENT_BY(VETH_QUIET,
		 UDP(v4_container_quiet, 5000, v4_stranger, 99, LAST(), .to_mac = MAC_FOREIGN))},
	{.says = "a container's first fragment that is too short for ports",
	 SENT_BY(VETH_QUIET, UDP(v4_container_quiet, 5000, v4_client, 99,
				 .fragment = FIRST_FRAGMENT, .without_transport = true))},
	{.then = "its later one is not held",
	 SENT_BY(VETH_QUIET, UDP(v4_container_quiet, 5000, v4_client, 99, LAST()))},
	{.says = "an ICMP error in fragments passes untouched",
	 SENT_BY(VETH_QUIET,
		 ERROR4(3, 3, v4_container_quiet, v4_client,
			UDP(v4_client, 99, v4_container_quiet, 5000), .fragment = FIRST_FRAGMENT))},
	{.then = "so does its later fragment",
	 SENT_BY(VETH_QUIET, ICMP(IPPROTO_ICMP, 3, 3, v4_container_quiet, v4_client, 0, LAST()))},
};

static const struct row host_rows_in_fragments[] = {
	{.says = "the host's own fragments leave untouched",
	 OF_THE_HOST(LEAVES(UDP(v4_host, 5050, v4_server, 53, LAST())))},
	{.says = "the first one from a published port is remembered",
	 SOCKET(UDP, v4_host, 8080),
	 OF_THE_HOST(LEAVES(UDP(v4_host, 8080, v4_server, 53, FIRST()))),
	 .flows = {THIS_OF_HOST(NEW)},
	 .counts = {"flow_host"}},
	{.then = "the host gets the answer in fragments",
	 ARRIVES(UDP(v4_server, 53, v4_host, 8080, FIRST()))},
	{.then = "its later one too", ARRIVES(UDP(v4_server, 53, v4_host, 8080, LAST()))},
	{.says = "to a port of the host that is not mapped",
	 ARRIVES(UDP(v6_client, 5000, v6_host, 53, FIRST()))},
	{.then = "its later one too, IPv6", ARRIVES(UDP(v6_client, 5000, v6_host, 53, LAST()))},
	{IN_BOTH_FAMILIES("fragments of a protocol that is not translated: AH"),
	 AT(FROM_UPLINK, UPLINK),
	 .in = {.protocol = 51,
		.from = v4_client,
		.to = v4_host,
		.payload = 40,
		.fragment = LATER_FRAGMENT}},
	{.says = "a first fragment with a part of the TCP header",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN, PIECE(FIRST_FRAGMENT, 0, 8)))},
	{.then = "its later ones are not held",
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN, MIDDLE()))},
	{IN_BOTH_FAMILIES("a later fragment that has the TCP flags"),
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN, PIECE(LATER_FRAGMENT, 8, 800)))},
	{.says = "after a first fragment that was translated",
	 AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, FIRST()))),
	 .flows_unchecked = true},
	{.then = "a later one that would overwrite the TCP flags is dropped",
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, PIECE(LATER_FRAGMENT, 8, 800))),
	 DROPPED_AS("drop_untranslatable")},
	{IN_BOTH_FAMILIES("forwarded fragments without a first one pass"),
	 ARRIVES(UDP(v4_client, 5000, v4_elsewhere, 8080, LAST()))},
};

/* Out of order: held fragments are sent in again after the first one, at the same interface. */

struct disorder {
	const char *says;
	enum hook hook;
	enum device device;
	struct packet first;
	struct packet last;
	struct packet middle;
};

static int run_at(const struct disorder *test, const struct packet *packet)
{
	struct frame frame;

	row_build(&frame, packet, test->hook, test->device);
	return fixture_run(test->hook, test->device, test->device, &frame);
}

static bool step(const struct disorder *test, const struct packet *packet, int expected)
{
	int verdict = run_at(test, packet);

	if (verdict != expected)
		row_fail("verdict %d, expected %d", verdict, expected);
	return verdict == expected;
}

static void expect_watched(const struct disorder *test, const struct packet *packet)
{
	struct frame expected, got = {0};

	row_build(&expected, packet, test->hook, test->device);
	got.length = host_watched(got.bytes, sizeof(got.bytes), 1000);
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

	if (host_watched(bytes, sizeof(bytes), 0))
		row_fail("something else was sent on");
}

#define SHOT 2
#define GOES_ON (-1)

static void expect_held(int expected)
{
	int count = fixture_count_held();

	if (count != expected)
		row_fail("%d fragments are held, expected %d", count, expected);
}

static void run_disorder_again(const struct disorder *test)
{
	host_watch(test->device);
	step(test, &test->last, SHOT);
	step(test, &test->middle, SHOT);
	expect_held(2);
	expect_no_more_watched();
	step(test, &test->first, SHOT);
	expect_watched(test, &test->first);
	expect_watched(test, &test->middle);
	expect_watched(test, &test->last);
	expect_no_more_watched();
	expect_held(0);
	step(test, &test->first, GOES_ON);
	step(test, &test->middle, GOES_ON);
	step(test, &test->last, GOES_ON);
	expect_no_more_watched();
	host_watch_end();
}

static void run_disorder(const struct disorder *test)
{
	fixture_reset();
	run_disorder_again(test);
}

#define DISORDER(says_, hook_, device_, packet) \
	{ \
		.says = says_, .hook = hook_, .device = device_, .first = packet(FIRST), \
		.middle = packet(MIDDLE), .last = packet(LAST) \
	}
#define HOST_DATAGRAM(piece) UDP(v4_client, 5000, v4_host, 53, piece())
#define HOST_TCP6(piece) TCP(v6_client, 5000, v6_host, 22, ACK, piece())
#define NOT_OURS(piece) UDP(v4_stranger, 5000, v4_host, 8080, piece())
#define CONTAINER6(piece) UDP(v6_container_one, 5000, v6_server, 53, piece())
#define CONTAINER_PING(piece) PING4(v4_container_routed, v4_server, 53, piece())
#define OTHER_CONTAINER(piece) UDP(v4_container_two, 5000, v4_host, 8080, piece())

static const struct disorder disorders[] = {
	DISORDER("out of order: to a mapped port", FROM_UPLINK, UPLINK, REQUEST),
	DISORDER("out of order: to a mapped port, IPv6", FROM_UPLINK, UPLINK, REQUEST6),
	DISORDER("out of order: to the host", FROM_UPLINK, UPLINK, HOST_DATAGRAM),
	DISORDER("out of order: TCP to the host, IPv6", FROM_UPLINK, UPLINK, HOST_TCP6),
	DISORDER("out of order: a container that this plugin did not set up", FROM_BRIDGE, BRIDGE,
		 NOT_OURS),
	DISORDER("out of order: a container's", FROM_CONTAINER, VETH_ONE, CONTAINER6),
	DISORDER("out of order: a routed container's ping", FROM_CONTAINER, VETH_ROUTED,
		 CONTAINER_PING),
	DISORDER("out of order: another container on the bridge", FROM_CONTAINER, VETH_TWO,
		 OTHER_CONTAINER),
};

/* Held fragments use bounded memory for a bounded time. */

#define MAX_HELD_EACH 64

static const struct disorder *const mapped = &disorders[0];
static const struct disorder *const to_host = &disorders[2];
static const struct disorder *const from_container = &disorders[5];

static uint64_t count_not_held(void)
{
	struct counters counters;

	fixture_read_counters(&counters);
	return counters.fragment_not_held;
}

/* Sends later fragments of datagrams without a first one. */
static void run_orphans(const struct disorder *test, int count, bool of_one_datagram)
{
	struct packet orphan = test->last;

	for (int i = 0; i < count; i++) {
		orphan.identification = of_one_datagram ? 9 : 1000 + (unsigned int)i;
		run_at(test, &orphan);
	}
}

static void each_datagram_has_its_share(void)
{
	uint64_t before = count_not_held();

	run_orphans(mapped, MAX_HELD_EACH, true);
	expect_held(MAX_HELD_EACH);
	run_orphans(mapped, 10, true);
	expect_held(MAX_HELD_EACH);
	if (count_not_held() - before != 10)
		row_fail("%d more were not counted", 10);
	step(mapped, &mapped->last, SHOT);
	expect_held(MAX_HELD_EACH + 1);
}

/* Fills all places; what has them is young enough to keep them. */
static void fill_held(const struct disorder *test)
{
	fixture_age_fragments(1);
	for (int i = 0; i < 4; i++) {
		run_orphans(test, 2 * MAX_HELD, false);
		fixture_age_fragments(-1);
	}
	expect_held(MAX_HELD);
}

static void flood_ends_at_the_last_place(void)
{
	fill_held(mapped);
	step(to_host, &to_host->last, GOES_ON);
	step(to_host, &to_host->first, GOES_ON);
	step(to_host, &to_host->middle, GOES_ON);
	step(mapped, &mapped->first, GOES_ON);
	step(mapped, &mapped->last, GOES_ON);
	step(from_container, &from_container->middle, GOES_ON);
}

static void expect_released(const struct disorder *test)
{
	host_watch(test->device);
	step(test, &test->first, SHOT);
	expect_watched(test, &test->first);
	expect_watched(test, &test->middle);
	expect_watched(test, &test->last);
	host_watch_end();
}

/* Each has some places of another one's flood, and keeps them while that goes on. */
static void who_has_most_gives_up_its_places(void)
{
	static const struct disorder *const each[] = {&disorders[0], &disorders[5]};

	for (size_t i = 0; i < 2; i++) {
		fixture_reset();
		run_orphans(each[i], 8 * MAX_HELD, false);
		expect_held(MAX_HELD);
		fixture_age_fragments(1);
		step(each[!i], &each[!i]->last, SHOT);
		step(each[!i], &each[!i]->middle, SHOT);
		fixture_age_fragments(1);
		run_orphans(each[i], 8 * MAX_HELD, false);
		expect_released(each[!i]);
	}
}

/* Many datagrams. What time they take is taken back, so that none ends on a slow machine. */
static void run_flood(struct packet packet)
{
	time_t began = time(NULL), now;

	for (unsigned int i = 0; i < 2 * FRAGMENT_ROWS * FRAGMENT_PLACES; i++) {
		packet.identification = 1000 + i;
		run_at(mapped, &packet);
		now = time(NULL);
		if (now == began)
			continue;
		fixture_age_fragments((int)(began - now));
		began = now;
	}
}

static void remembered_ones_stay(void)
{
	struct packet forged = UDP(v4_stranger, 5000, v4_host_other, 9090, FIRST());

	step(mapped, &mapped->first, GOES_ON);
	step(from_container, &from_container->first, GOES_ON);
	run_flood(mapped->last);
	step(mapped, &mapped->middle, GOES_ON);
	step(from_container, &from_container->middle, GOES_ON);
	run_flood(forged);
	step(mapped, &mapped->last, GOES_ON);
	step(from_container, &from_container->last, GOES_ON);
}

static void places_are_free_after_seconds(void)
{
	run_orphans(mapped, 8 * MAX_HELD, false);
	fixture_age_fragments(6);
	run_disorder_again(mapped);
}

/* By then the identification may belong to another datagram. */
static void old_ones_are_not_released(void)
{
	host_watch(mapped->device);
	step(mapped, &mapped->last, SHOT);
	fixture_age_fragments(6);
	step(mapped, &mapped->first, GOES_ON);
	step(mapped, &mapped->middle, GOES_ON);
	expect_no_more_watched();
	host_watch_end();
}

static void old_ones_in_a_living_chain_are_not(void)
{
	host_watch(mapped->device);
	step(mapped, &mapped->last, SHOT);
	fixture_age_fragments(4);
	step(mapped, &mapped->middle, SHOT);
	fixture_age_fragments(4);
	step(mapped, &mapped->first, SHOT);
	expect_watched(mapped, &mapped->first);
	expect_watched(mapped, &mapped->middle);
	expect_no_more_watched();
	host_watch_end();
}

/* If the first fragment is dropped, the held ones are not sent. */
static void dropped_first_releases_none(void)
{
	struct packet first = CONTAINER6(FIRST);

	host_watch(from_container->device);
	step(from_container, &from_container->last, SHOT);
	fixture_set_masquerade_ports(0, 0);
	fixture_kill(ONE);
	step(from_container, &first, SHOT);
	expect_no_more_watched();
	host_watch_end();
}

static void too_large_ones_go_on(void)
{
	struct packet large =
		UDP(v4_client, 5000, v4_host, 8080, .payload = 1900, .fragment = LATER_FRAGMENT,
		    .piece_offset = 8, .piece_size = 1600);
	uint64_t before = count_not_held();

	step(mapped, &large, GOES_ON);
	expect_held(0);
	if (count_not_held() != before + 1)
		row_fail("it was not counted");
	large.piece_size = HELD_SIZE - 20 - 4;
	step(mapped, &large, SHOT);
	expect_held(1);
}

static void padding_is_left_behind(void)
{
	struct packet last = UDP(v4_client, 5000, v4_host, 8080, .payload = 1595,
				 .fragment = LATER_FRAGMENT, .piece_offset = 1600, .piece_size = 3);
	struct packet padded = last;

	padded.padding = 23;
	host_watch(mapped->device);
	step(mapped, &padded, SHOT);
	step(mapped, &mapped->first, SHOT);
	expect_watched(mapped, &mapped->first);
	expect_watched(mapped, &last);
	host_watch_end();
}

static void other_datagrams_are_left(void)
{
	struct packet other = mapped->last, third = mapped->last;

	other.identification = 5;
	third.from = v4_client_other;
	host_watch(mapped->device);
	step(mapped, &other, SHOT);
	step(mapped, &third, SHOT);
	step(to_host, &to_host->last, SHOT);
	step(mapped, &mapped->first, SHOT);
	expect_watched(mapped, &mapped->first);
	expect_watched(mapped, &mapped->last);
	expect_no_more_watched();
	expect_held(2);
	host_watch_end();
}

/* The two fragments have the same length, because otherwise the kernel discards the sum. */
static void sum_follows_the_bytes(const struct disorder *test)
{
	host_watch(test->device);
	step(test, &test->middle, SHOT);
	step(test, &test->first, SHOT);
	expect_watched(test, &test->first);
	expect_watched(test, &test->middle);
	host_watch_end();
}

struct bound {
	const char *says;
	void (*run)(void);
};

static const struct bound bounds[] = {
	{"of one datagram a limited number of fragments is held", each_datagram_has_its_share},
	{"when all places are taken, fragments pass untouched", flood_ends_at_the_last_place},
	{"who has most of them gives them up to others, once they are not new",
	 who_has_most_gives_up_its_places},
	{"a flood of fragments takes nothing from datagrams of other containers",
	 remembered_ones_stay},
	{"after a flood the places become free in seconds", places_are_free_after_seconds},
	{"a fragment that was held for too long is not sent", old_ones_are_not_released},
	{"not even if younger ones of its datagram are", old_ones_in_a_living_chain_are_not},
	{"nor are held ones after a first one that was dropped", dropped_first_releases_none},
	{"fragments larger than a place pass untouched", too_large_ones_go_on},
	{"a short last fragment, padded by Ethernet", padding_is_left_behind},
	{"other datagrams' fragments stay held", other_datagrams_are_left},
};

static void run_all_disorders(void)
{
	for (size_t i = 0; i < sizeof(disorders) / sizeof(disorders[0]); i++) {
		row_begin(disorders[i].says);
		run_disorder(&disorders[i]);
		row_end();
	}
}

static void run_all_rows(void)
{
	ROWS_RUN(owner_rows);
	ROWS_RUN(mapped_rows);
	ROWS_RUN(masqueraded_rows);
	ROWS_RUN(neighbour_rows_in_fragments);
	ROWS_RUN(host_rows_in_fragments);
	host_close_sockets();
}

void fragment_rows(void)
{
	run_all_rows();
	run_all_disorders();
	for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
		row_begin(bounds[i].says);
		fixture_reset();
		bounds[i].run();
		row_end();
	}
	if (!fixture_set_checksum_complete(true))
		return;
	run_all_rows();
	row_begin("a held fragment, summed by a network card");
	fixture_reset();
	sum_follows_the_bytes(&disorders[0]);
	sum_follows_the_bytes(&disorders[1]);
	row_end();
	fixture_set_checksum_complete(false);
}

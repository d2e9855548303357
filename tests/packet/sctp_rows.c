/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sctp_rows.c - SCTP, whose CRC32c covers the ports but not the addresses. */
#include <stdio.h>

#include "row.h"

static const struct row mapped_rows[] = {
	{.says = "a mapped SCTP port: the INIT's destination is rewritten",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .payload = 20))),
	 .counts = {"flow_mapping", "rewritten_destination"}},
	{.then = "its INIT ACK leaves with the host's address and port",
	 AS(v4_host, 8080, LEAVES(SCTP(v4_container_one, 80, v4_client, 40000, .payload = 323)))},
	{.then = "its COOKIE ECHO, IPv4 options and padding kept: they belong to the stack",
	 TO(v4_container_one, 80,
	    ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .payload = 301, .ipv4_options = 8,
			 .padding = 3))),
	 .flows = {THIS_MAPPED(NEW, .path = {PATH_STACK, PATH_STACK})}},
	{.then = "two seconds later the flow is assured",
	 AFTER(fixture_let_last, ONE),
	 TO(v4_container_one, 80, ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .payload = 40))),
	 .flows = {THIS_MAPPED(ANSWERED, .path = {PATH_STACK, PATH_STACK})}},
	{.then = "the same port over UDP is another flow",
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 40000, v4_host, 8080)))},
	{.says = "a mapped SCTP port over IPv6, with extension headers",
	 MAPPED_TO(
		 v6_container_one, 80,
		 ARRIVES(SCTP(v6_client, 40000, v6_host, 8080, .extensions = "hd", .payload = 20))),
	 .counts = {"flow_mapping", "rewritten_destination"}},
	{.then = "its answer",
	 .flows_unchecked = true,
	 AS(v6_host, 8080, LEAVES(SCTP(v6_container_one, 80, v6_client, 40000)))},
	{IN_BOTH_FAMILIES("a checksum of 0 is kept: an interface computes it later"),
	 .flows_unchecked = true,
	 TO(v4_container_one, 80,
	    ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .without_checksum = true)))},
	{.says = "no chunk at all",
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .empty = true)))},
	{.says = "a port that is not mapped", ARRIVES(SCTP(v4_client, 40000, v4_host, 8081))},
	{.says = "half an SCTP header",
	 ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, .empty = true, .ip_length_off = -1))},
};

static const struct row masqueraded_rows[] = {
	{.says = "a container's association keeps a port that is in the set",
	 MASQUERADED_AS(v4_host, 25000,
			LEAVES(SCTP(v4_container_one, 25000, v4_server, 3868, .payload = 20))),
	 .counts = {"flow_masquerade", "rewritten_source"}},
	{.then = "its answer",
	 .flows_unchecked = true,
	 TO(v4_container_one, 25000,
	    ARRIVES(SCTP(v4_server, 3868, v4_host, 25000, .payload = 323)))},
	{.then = "another container's from the same port gets another port",
	 .flows_unchecked = true,
	 AS(v4_host, CHOSEN, LEAVES(SCTP(v4_container_two, 25000, v4_server, 3868))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.then = "the answer to that",
	 TO(v4_container_two, 25000, ARRIVES(SCTP(v4_server, 3868, v4_host, CHOSEN)))},
	{.says = "a port outside the set is replaced, IPv6",
	 MASQUERADED_AS(v6_host, CHOSEN, LEAVES(SCTP(v6_container_one, 3868, v6_server, 3868))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.says = "half an SCTP header is dropped",
	 LEAVES(SCTP(v4_container_one, 25000, v4_server, 3868, .empty = true, .ip_length_off = -1)),
	 DROPPED_AS("drop_untranslatable")},
};

static void given_same_port(void)
{
	fixture_map_port(IPPROTO_SCTP, "0.0.0.0", 3868, v4_container_one, 3868, ONE);
	fixture_map_port(IPPROTO_SCTP, "::", 3868, v6_container_one, 3868, ONE);
}

/* A packet of 1,812 bytes in two fragments; the CRC32c in the first covers all of it. */
#define FIRST .payload = 1800, .fragment = FIRST_FRAGMENT, .piece_offset = 0, .piece_size = 1000
#define LAST .payload = 1800, .fragment = LATER_FRAGMENT, .piece_offset = 1000, .piece_size = 812

static const struct row fragment_rows_of_sctp[] = {
	{IN_BOTH_FAMILIES("fragments to a mapped port that keeps its number"),
	 .given = given_same_port, .flows_unchecked = true,
	 TO(v4_container_one, 3868, ARRIVES(SCTP(v4_client, 40000, v4_host, 3868, FIRST)))},
	{.then = "the last one",
	 TO(v4_container_one, 3868, ARRIVES(SCTP(v4_client, 40000, v4_host, 3868, LAST)))},
	{.then = "the answer's first one",
	 .flows_unchecked = true,
	 AS(v4_host, 3868, LEAVES(SCTP(v4_container_one, 3868, v4_client, 40000, FIRST)))},
	{.then = "the answer's last one",
	 AS(v4_host, 3868, LEAVES(SCTP(v4_container_one, 3868, v4_client, 40000, LAST)))},
	{.says = "fragments to a mapped port that changes its number are dropped",
	 .flows_unchecked = true,
	 ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, FIRST)),
	 DROPPED_AS("flow_mapping", "drop_sctp_fragment")},
	{.then = "the last one too",
	 ARRIVES(SCTP(v4_client, 40000, v4_host, 8080, LAST)),
	 .verdict = DROPPED},
	{.says = "masqueraded fragments that keep their port",
	 .flows_unchecked = true,
	 AS(v4_host, 25000, LEAVES(SCTP(v4_container_one, 25000, v4_server, 3868, FIRST)))},
	{.then = "the last of them",
	 AS(v4_host, 25000, LEAVES(SCTP(v4_container_one, 25000, v4_server, 3868, LAST)))},
	{.says = "masqueraded fragments whose port is replaced are dropped",
	 .flows_unchecked = true,
	 LEAVES(SCTP(v6_container_one, 3868, v6_server, 3868, FIRST)),
	 DROPPED_AS("flow_masquerade", "flow_moved_port", "drop_sctp_fragment")},
	{.then = "the last of them too",
	 LEAVES(SCTP(v6_container_one, 3868, v6_server, 3868, LAST)),
	 .verdict = DROPPED},
};

static void given_published_in_set(void)
{
	fixture_map_port(IPPROTO_SCTP, "0.0.0.0", 25000, v4_container_two, 90, TWO);
}

/* A mapping that lets the client begin nothing */
static void given_source_range_elsewhere(void)
{
	fixture_map_port(IPPROTO_SCTP, "0.0.0.0", 9999, v4_container_one, 80, ONE);
	fixture_set_policy(
		ONE, (struct policy){.source_range_count = 1,
				     .source_ranges = {fixture_range("192.0.2.9", 32, false)}});
}

#define IDLE_FOR(seconds, stage_) \
	.holds = {MAPPED(stage_, IPPROTO_SCTP, v4_client, 40000, v4_host, 9999, v4_container_one, \
			 80, 40000, .owner = ONE, .idle = seconds)}, \
	.given = given_source_range_elsewhere

static const struct row state_rows[] = {
	{.says = "a published SCTP port is not used for masquerade",
	 .given = given_published_in_set,
	 .flows_unchecked = true,
	 AS(v4_host, CHOSEN, LEAVES(SCTP(v4_container_one, 25000, v4_server, 3868))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.says = "the host's own association from a published port is remembered",
	 OF_THE_HOST(LEAVES(SCTP(v4_host, 8080, v4_server, 3868))),
	 .flows = {THIS_OF_HOST(NEW)},
	 .counts = {"flow_host"}},
	{.then = "and the host gets the answer", ARRIVES(SCTP(v4_server, 3868, v4_host, 8080))},
	{.says = "a client that reached the container directly",
	 ARRIVES(SCTP(v4_client, 40000, v4_container_one, 80)),
	 .flows = {THIS_UNCONFIRMED}},
	{.then = "and is let through by the stack",
	 DELIVERED(SCTP(v4_client, 40000, v4_container_one, 80)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "gets an answer that is not masqueraded",
	 LEAVES(SCTP(v4_container_one, 80, v4_client, 40000))},
	{.says = "an association between heartbeats lives",
	 IDLE_FOR(299, ANSWERED),
	 TO(v4_container_one, 80, ARRIVES(SCTP(v4_client, 40000, v4_host, 9999)))},
	{.says = "one without them is a miss",
	 IDLE_FOR(302, ANSWERED),
	 ARRIVES(SCTP(v4_client, 40000, v4_host, 9999)),
	 DROPPED_AS("drop_source_range")},
	{.says = "one that is being set up lives through one retransmission",
	 IDLE_FOR(119, NEW),
	 TO(v4_container_one, 80, ARRIVES(SCTP(v4_client, 40000, v4_host, 9999)))},
	{.says = "and is a miss after two",
	 IDLE_FOR(122, NEW),
	 ARRIVES(SCTP(v4_client, 40000, v4_host, 9999)),
	 DROPPED_AS("drop_source_range")},
};

static const struct row bridge_rows[] = {
	{.says = "hairpin: the destination",
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, SENT_BY(VETH_ONE, SCTP(v4_container_one, 25000, v4_host, 8080))),
	 .counts = {"flow_mapping"}},
	{.then = "and the source, at the bridge's egress",
	 .flows_unchecked = true,
	 AS(v4_bridge, 25000, DELIVERED(SCTP(v4_container_one, 25000, v4_container_one, 80))),
	 .counts = {"flow_masquerade"}},
	{.says = "a request of another container on the bridge keeps its source",
	 .flows_unchecked = true,
	 TO(v6_container_one, 80, SENT_BY(VETH_TWO, SCTP(v6_container_two, 25000, v6_host, 8080))),
	 .counts = {"flow_mapping"}},
	{.then = "its answer is lifted into the stack",
	 SENT_BY(VETH_ONE,
		 SCTP(v6_container_one, 80, v6_container_two, 25000, .to_mac = MAC_CONTAINER_TWO)),
	 .out = SCTP(v6_container_one, 80, v6_container_two, 25000, .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.then = "and gets the host's address",
	 AS(v6_host, 8080, DELIVERED(SCTP(v6_container_one, 80, v6_container_two, 25000)))},
};

#define RANDOM_FLOWS 300
#define LONGEST_PAYLOAD 1900

/* The same numbers in each run */
static uint32_t next_random(uint32_t *state)
{
	*state = *state * 1664525u + 1013904223u;
	return *state >> 8;
}

struct random_flow {
	const char *peer;
	const char *host;
	const char *container;
	int peer_port_outside;
	int peer_port_inside;
	int host_port;
	int container_port;
};

static struct random_flow random_flow(uint32_t *state, bool ipv4)
{
	return (struct random_flow){
		.peer = ipv4 ? v4_client : v6_client,
		.host = ipv4 ? v4_host : v6_host,
		.container = ipv4 ? v4_container_one : v6_container_one,
		.peer_port_outside = (int)(next_random(state) % 65536),
		.peer_port_inside = (int)(next_random(state) % 65536),
		.host_port = (int)(next_random(state) % 65536),
		.container_port = (int)(next_random(state) % 65536),
	};
}

static void put_random_flow(const struct random_flow *flow)
{
	const struct entry record =
		MAPPED(ANSWERED, IPPROTO_SCTP, flow->peer, flow->peer_port_outside, flow->host,
		       flow->host_port, flow->container, flow->container_port,
		       flow->peer_port_inside, .owner = ONE);

	fixture_put(&record);
}

static void check_packet(enum hook hook, const struct packet *in, const struct packet *out)
{
	struct frame got, expected;
	int verdict;

	row_build(&got, in, hook, UPLINK);
	row_build(&expected, out, hook, UPLINK);
	verdict = fixture_run(hook, UPLINK, hook == FROM_UPLINK ? UPLINK : BRIDGE, &got);
	if (verdict != -1)
		row_fail("verdict %d with a payload of %u", verdict, in->payload);
	if (frame_equal(&got, &expected))
		return;
	row_fail("the packet differs with a payload of %u", in->payload);
	frame_print_difference(&expected, &got);
}

static void check_random_flow(const struct random_flow *flow, unsigned int payload, bool no_sum)
{
#define SIZED .payload = payload, .empty = payload == 0, .without_checksum = no_sum
	struct packet request =
		SCTP(flow->peer, flow->peer_port_outside, flow->host, flow->host_port, SIZED);
	struct packet request_inside = SCTP(flow->peer, flow->peer_port_inside, flow->container,
					    flow->container_port, SIZED);
	struct packet reply_inside = SCTP(flow->container, flow->container_port, flow->peer,
					  flow->peer_port_inside, SIZED);
	struct packet reply =
		SCTP(flow->host, flow->host_port, flow->peer, flow->peer_port_outside, SIZED);
#undef SIZED

	put_random_flow(flow);
	check_packet(FROM_UPLINK, &request, &request_inside);
	check_packet(TO_UPLINK, &reply_inside, &reply);
}

static void random_rows(bool ipv4, const char *state)
{
	uint32_t random = 4711;
	char says[120];

	snprintf(says, sizeof(says), "SCTP over IPv%d, %d flows, all lengths: the CRC32c%s",
		 ipv4 ? 4 : 6, RANDOM_FLOWS, state);
	row_begin(says);
	fixture_reset();
	for (unsigned int i = 0; i < RANDOM_FLOWS; i++) {
		struct random_flow flow = random_flow(&random, ipv4);
		unsigned int payload = i < 70 ? i : next_random(&random) % LONGEST_PAYLOAD;

		check_random_flow(&flow, payload, i % 8 == 7);
	}
	records_check();
	row_end();
}

void sctp_rows(void)
{
	ROWS_RUN(mapped_rows);
	ROWS_RUN(masqueraded_rows);
	ROWS_RUN(fragment_rows_of_sctp);
	ROWS_RUN(state_rows);
	ROWS_RUN(bridge_rows);
	host_close_sockets();
	for (int complete = 0; complete <= 1; complete++) {
		if (!fixture_set_checksum_complete(complete))
			break;
		random_rows(true, complete ? ", summed by a network card" : "");
		random_rows(false, complete ? ", summed by a network card" : "");
	}
	fixture_set_checksum_complete(false);
}

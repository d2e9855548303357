/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* policy_rows.c - what the options of a conflist change about its containers' flows. */
#include <stdio.h>

#include "row.h"

#define PIECE(kind, offset, size) \
	.payload = 1000, .fragment = kind, .piece_offset = offset, .piece_size = size
#define FIRST PIECE(FIRST_FRAGMENT, 0, 800)
#define LAST PIECE(LATER_FRAGMENT, 800, 208)

#define v4_source_other "203.0.113.98"

static void given_ports(void)
{
	fixture_set_policy(ONE,
			   (struct policy){.masquerade_ports = {{30000, 30000}, {31000, 31000}}});
}

static void given_no_port_left(void)
{
	given_ports();
	fixture_map_port(IPPROTO_UDP, "0.0.0.0", 31000, v4_container_two, 80, TWO);
}

static const struct row port_rows[] = {
	{.says = "masqPorts: a port of the option's set is kept",
	 MASQUERADED_AS(v4_host, 31000, LEAVES(TCP(v4_container_one, 31000, v4_server, 443, SYN))),
	 .counts = {"flow_masquerade", "masquerade_tries_1"}},
	{.says = "masqPorts: a port of the host's default set is replaced",
	 SOCKET(UDP, "0.0.0.0", 30000),
	 MASQUERADED_AS(v4_host, 31000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53))),
	 .counts = {"flow_masquerade", "flow_moved_port"}},
	{.says = "masqPorts: a socket's and a published port of the option's set are not "
		 "taken",
	 .given = given_no_port_left,
	 SOCKET(UDP, "0.0.0.0", 30000),
	 LEAVES(UDP(v4_container_one, 31000, v4_server, 53)),
	 DROPPED_AS("drop_no_tuple")},
	{.says = "masqPorts: another container has the default set",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_two, 25000, v4_server, 53)))},
	{.says = "masqPorts: so has the next container in the same slot",
	 AFTER(fixture_add_again, ONE),
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53)))},
	{.says = "masqPorts: a ping keeps its identifier",
	 MASQUERADED_AS(v4_host, 77, LEAVES(PING4(v4_container_one, v4_server, 77)))},
};

static void given_unmasqueraded(void)
{
	fixture_set_policy(
		ONE, (struct policy){.unmasqueraded_count = 5,
				     .unmasqueraded = {fixture_range(v4_server, 32, true),
						       fixture_range("2001:db8:99::", 64, false),
						       fixture_range("198.51.100.0", 24, false),
						       fixture_range("172.16.0.0", 12, false),
						       fixture_range("::", 0, true)}});
}

static void given_unmasqueraded_all_ipv6(void)
{
	fixture_set_policy(ONE, (struct policy){.unmasqueraded_count = 1,
						.unmasqueraded = {fixture_range("::", 0, false)}});
}

static void given_unmasqueraded_last(void)
{
	struct policy policy = {.unmasqueraded_count = POLICY_RANGES};

	for (int i = 0; i < POLICY_RANGES - 1; i++)
		policy.unmasqueraded[i] = fixture_range("240.0.0.0", 32, true);
	policy.unmasqueraded[POLICY_RANGES - 1] = fixture_range("0.0.0.0", 0, false);
	fixture_set_policy(ONE, policy);
}

static const struct row unmasqueraded_rows[] = {
	{IN_BOTH_FAMILIES(
		 "nonMasqueradeCIDRs: a destination in a range sees the container's own address"),
	 LEAVES(TCP(v4_container_one, 25000, v4_elsewhere, 443, SYN))},
	{.says = "nonMasqueradeCIDRs: its fragments too",
	 LEAVES(UDP(v4_container_one, 25000, v4_elsewhere, 53, .fragment = LATER_FRAGMENT))},
	{.says = "nonMasqueradeCIDRs: other protocols",
	 AT(TO_UPLINK, UPLINK),
	 .in = {.protocol = 47, .from = v4_container_one, .to = v4_elsewhere, .payload = 32}},
	{.says = "nonMasqueradeCIDRs: an exception, which comes first, is masqueraded",
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.says = "nonMasqueradeCIDRs: traffic to an address in no range is masqueraded",
	 MASQUERADED_AS(v4_second_uplink, 25000,
			LEAVES_BY(SECOND_UPLINK,
				  TCP(v4_container_one, 25000, v4_server_second, 443, SYN)))},
	{.says = "nonMasqueradeCIDRs: ::/0 matches no IPv4 address",
	 .given = given_unmasqueraded_all_ipv6,
	 MASQUERADED_AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53)))},
	{.says = "nonMasqueradeCIDRs: the last range of a full list has effect",
	 .given = given_unmasqueraded_last,
	 LEAVES(UDP(v4_container_one, 25000, v4_server, 53))},
	{.says = "nonMasqueradeCIDRs: another container's traffic is masqueraded",
	 MASQUERADED_AS(v4_host, 25000,
			LEAVES(TCP(v4_container_two, 25000, v4_elsewhere, 443, SYN)))},
	{.says = "nonMasqueradeCIDRs: it may leave through an unclassified interface",
	 SENT_BY(VETH_ONE, TCP(v4_container_one, 25000, v4_server_vpn, 443, SYN))},
};

static void given_sources(void)
{
	struct policy policy = {.source4_count = 1, .source6_count = 1};

	fixture_address(policy.sources4[0], v4_source);
	fixture_address(policy.sources6[0], v6_source);
	fixture_set_policy(ONE, policy);
}

static void given_source_of_ipv4(void)
{
	struct policy policy = {.source4_count = 1};

	fixture_address(policy.sources4[0], v4_source);
	fixture_set_policy(ONE, policy);
}

static void given_source_of_host(void)
{
	struct policy policy = {.source4_count = 1};

	fixture_address(policy.sources4[0], v4_host_other);
	fixture_set_policy(ONE, policy);
}

/* A connection's address is checked again once a second. */
static void given_other_source_and_second(void)
{
	struct policy policy = {.source4_count = 1};

	fixture_address(policy.sources4[0], v4_source_other);
	fixture_set_policy(ONE, policy);
	fixture_wait_for_next_second();
}

static const struct row source_rows[] = {
	{IN_BOTH_FAMILIES("snatAddresses: a flow gets the option's address"),
	 .given = given_sources,
	 MASQUERADED_AS(v4_source, 25000,
			LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.then = "snatAddresses: and its reply reaches the container",
	 TO(v4_container_one, 25000,
	    ARRIVES_BY(SECOND_UPLINK, TCP(v4_server, 443, v4_source, 25000, SYN | ACK)))},
	{.says = "snatAddresses: it is one of the host's addresses",
	 .given = given_source_of_host,
	 MASQUERADED_AS(v4_host_other, 25000,
			LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.then = "snatAddresses: a live flow keeps its address when the option changes",
	 .given = given_other_source_and_second,
	 AS(v4_host_other, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.says = "snatAddresses: a family without one gets the interface's address",
	 .given = given_source_of_ipv4,
	 MASQUERADED_AS(v6_host, 25000, LEAVES(UDP(v6_container_one, 25000, v6_server, 53)))},
	{.says = "snatAddresses: hairpin traffic gets the bridge's address",
	 .given = given_sources,
	 MASQUERADED_AS(v4_bridge, 25000,
			DELIVERED(TCP(v4_container_one, 25000, v4_container_one, 80, SYN)))},
};

static int source_seen(const char *container)
{
	const struct packet ping = PING4(container, v4_server, 5);
	struct frame frame;

	row_build(&frame, &ping, TO_UPLINK, UPLINK);
	fixture_run(TO_UPLINK, UPLINK, BRIDGE, &frame);
	return frame.bytes[14 + 15];
}

static void several_sources_row(void)
{
	struct policy policy = {.source4_count = 3};
	int used[3] = {0};
	char container[32];

	row_begin("snatAddresses: of several a container always gets the same, and each is used");
	fixture_reset();
	fixture_address(policy.sources4[0], "203.0.113.0");
	fixture_address(policy.sources4[1], "203.0.113.1");
	fixture_address(policy.sources4[2], "203.0.113.2");
	fixture_set_policy(ONE, policy);
	for (int i = 2; i < 62; i++) {
		int seen;

		snprintf(container, sizeof(container), "10.10.0.%d", i);
		fixture_set_endpoint(container, ONE, 16, true);
		seen = source_seen(container);
		if (seen > 2) {
			row_fail("%s left as 203.0.113.%d", container, seen);
			break;
		}
		used[seen]++;
		fixture_clear_flows();
		if (source_seen(container) != seen)
			row_fail("%s left with another address", container);
	}
	for (int i = 0; i < 3; i++)
		if (used[i] < 10)
			row_fail("203.0.113.%d is used by %d of 60", i, used[i]);
	row_end();
}

static void given_hairpin_source_kept(void)
{
	fixture_set_policy(ONE, (struct policy){.keep_hairpin_source = 1});
}

static void given_masquerade_all(void)
{
	fixture_set_policy(ONE, (struct policy){.masquerade_all = 1});
	fixture_set_policy(ROUTED, (struct policy){.masquerade_all = 1});
}

static void given_masquerade_all_without_snat(void)
{
	fixture_set_policy(ONE, (struct policy){.masquerade_all = 1, .keep_hairpin_source = 1});
}

#define MAPPED_TCP(table, client, host) \
	MAPPED(table, IPPROTO_TCP, client, 25000, host, 8080, v4_container_one, 80, 25000)
#define MASQUERADED_IN(table, client) \
	MASQUERADED(table, IPPROTO_TCP, client, 25000, v4_container_one, 80, v4_bridge, 25000)

static const struct row inward_rows[] = {
	{.says = "snat false: a container that reaches itself keeps its source",
	 .given = given_hairpin_source_kept,
	 DELIVERED(TCP(v4_container_one, 25000, v4_container_one, 80, SYN))},
	{.says = "snat false: outwards it is masqueraded as usual",
	 .given = given_hairpin_source_kept,
	 MASQUERADED_AS(v4_host, 25000, LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN)))},
	{.says = "masqAll: a client connects to a mapped port",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 25000, v4_host, 8080, SYN)))},
	{.then = "masqAll: the container sees the bridge's address",
	 AS(v4_bridge, 25000, DELIVERED(TCP(v4_client, 25000, v4_container_one, 80, SYN))),
	 .adds = THIS_MASQUERADED(NEW),
	 .counts = {"flow_masquerade"}},
	{.then = "masqAll: it answers that address",
	 TO(v4_client, 25000,
	    SENT_BY(VETH_ONE, TCP(v4_container_one, 80, v4_bridge, 25000, SYN | ACK)))},
	{.then = "masqAll: and the client sees the host's address",
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 25000, SYN | ACK)))},
	{.then = "masqAll: the client's ACK",
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 25000, v4_host, 8080, ACK)))},
	{.then = "masqAll: makes both flows assured",
	 AS(v4_bridge, 25000, DELIVERED(TCP(v4_client, 25000, v4_container_one, 80, ACK))),
	 .flows = {MAPPED_TCP(ANSWERED, v4_client, v4_host), MASQUERADED_IN(ANSWERED, v4_client)}},
	{.then = "masqAll: a client of the container's own address keeps its source",
	 DELIVERED(TCP(v4_client_other, 25000, v4_container_one, 80, SYN))},
	{.then = "masqAll: so does a server's answer to the container",
	 DELIVERED(UDP(v4_server, 53, v4_container_one, 5000))},
	{.says = "masqAll: the container's own request",
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 25000, v4_host, 8080))),
	 .flows_unchecked = true},
	{.then = "masqAll: gets the host's address",
	 .flows_unchecked = true,
	 AS(v4_host, 25000, LEAVES(UDP(v4_container_one, 25000, v4_server, 53)))},
	{.then = "masqAll: and the answer keeps the server's address",
	 DELIVERED(UDP(v4_server, 53, v4_container_one, 25000))},
	{.says = "masqAll: a datagram in fragments",
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_client, 25000, v4_host, 8080, FIRST)))},
	{.then = "masqAll: gets the bridge's address",
	 .flows_unchecked = true,
	 AS(v4_bridge, 25000, DELIVERED(UDP(v4_client, 25000, v4_container_one, 80, FIRST)))},
	{.then = "masqAll: and so do its later fragments",
	 AS(v4_bridge, 25000, DELIVERED(UDP(v4_client, 25000, v4_container_one, 80, LAST)))},
	{.says = "masqAll: another container on the bridge connects to the mapped port",
	 MAPPED_TO(v4_container_one, 80,
		   SENT_BY(VETH_TWO, TCP(v4_container_two, 25000, v4_host, 8080, SYN)))},
	{.then = "masqAll: and gets the bridge's address",
	 AS(v4_bridge, 25000, DELIVERED(TCP(v4_container_two, 25000, v4_container_one, 80, SYN))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.says = "masqAll: a routed container's client, IPv6",
	 MAPPED_TO(v6_container_routed, 50, ARRIVES(UDP(v6_client, 25000, v6_host, 5050)))},
	{.then = "masqAll: gets the veth's address",
	 AS("fd00:20::1", 25000,
	    DELIVERED_BY(VETH_ROUTED, UDP(v6_client, 25000, v6_container_routed, 50))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.then = "masqAll: a client of another container",
	 .flows_unchecked = true,
	 TO(v4_container_quiet, 70, ARRIVES(TCP(v4_client, 25000, v4_host, 7070, SYN)))},
	{.then = "masqAll: keeps its source",
	 DELIVERED(TCP(v4_client, 25000, v4_container_quiet, 70, SYN))},
	{.says = "masqAll with snat false: a client",
	 .given = given_masquerade_all_without_snat,
	 .flows_unchecked = true,
	 TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 25000, v4_host, 8080, SYN)))},
	{.then = "masqAll with snat false: keeps its source, as with portmap",
	 DELIVERED(TCP(v4_client, 25000, v4_container_one, 80, SYN))},
};

static void given_source_ranges(void)
{
	fixture_set_policy(
		ONE, (struct policy){.source_range_count = 4,
				     .source_ranges = {fixture_range(v4_client_other, 32, true),
						       fixture_range(v6_client, 128, false),
						       fixture_range("198.51.100.0", 28, false),
						       fixture_range("192.0.2.0", 24, false)}});
}

static const struct row source_range_rows[] = {
	{IN_BOTH_FAMILIES("sourceRanges: a client in a range"),
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 25000, v4_host, 8080, SYN)))},
	{IN_BOTH_FAMILIES("sourceRanges: any other is dropped and counted"),
	 ARRIVES(TCP(v4_server, 25000, v4_host, 8080, SYN)), DROPPED_AS("drop_source_range")},
	{.says = "sourceRanges: so is a client in an exception",
	 ARRIVES(UDP(v4_client_other, 25000, v4_host, 8080)),
	 DROPPED_AS("drop_source_range")},
	{.says = "sourceRanges: so is another container on the bridge",
	 SENT_BY(VETH_TWO, TCP(v4_container_two, 25000, v4_host, 8080, SYN)),
	 DROPPED_AS("drop_source_range")},
	{.says = "sourceRanges: and one that this plugin did not set up",
	 CROSSES_BRIDGE(TCP(v4_stranger, 25000, v4_host, 8080, SYN)),
	 DROPPED_AS("drop_source_range")},
	{.says = "sourceRanges: and TCP in mid-connection without a record",
	 ARRIVES(TCP(v4_server, 25000, v4_host, 8080, ACK)),
	 DROPPED_AS("drop_source_range")},
	{.says = "sourceRanges: another container's port is open",
	 TO(v4_container_quiet, 70, ARRIVES(TCP(v4_server, 25000, v4_host, 7070, SYN))),
	 .flows_unchecked = true},
	{.says = "sourceRanges: traffic to the container's own address is left to the firewall",
	 ARRIVES(TCP(v4_server, 25000, v4_container_one, 80, SYN)),
	 .flows_unchecked = true},
};

static const struct row changed_range_rows[] = {
	{.says = "a client's flow",
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_server, 25000, v4_host, 8080))),
	 .flows_unchecked = true},
	{.then = "sourceRanges: goes on if the ranges change to exclude it",
	 .given = given_source_ranges,
	 TO(v4_container_one, 80, ARRIVES(UDP(v4_server, 25000, v4_host, 8080)))},
};

static void given_excluded(void)
{
	fixture_set_policy(ONE,
			   (struct policy){.excluded_count = 3,
					   .excluded = {fixture_range(v4_host, 32, true),
							fixture_range("192.0.2.0", 24, false),
							fixture_range("2001:db8:1::", 64, false)}});
}

static const struct row excluded_rows[] = {
	{.says = "excludeCIDRs: a host address in a range is never mapped",
	 ARRIVES(TCP(v4_client, 25000, v4_host_other, 8080, SYN))},
	{.says = "excludeCIDRs: nor for UDP over IPv6",
	 ARRIVES(UDP(v6_client, 25000, v6_host, 8080))},
	{.says = "excludeCIDRs: nor for another container on the bridge",
	 SENT_BY(VETH_TWO, TCP(v4_container_two, 25000, v4_host_other, 8080, SYN))},
	{.says = "excludeCIDRs: an exception is mapped",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 25000, v4_host, 8080, SYN)))},
	{.says = "excludeCIDRs: so is an address in no range",
	 MAPPED_TO(v4_container_one, 80,
		   ARRIVES_BY(SECOND_UPLINK, TCP(v4_client, 25000, v4_second_uplink, 8080, SYN)))},
	{.says = "excludeCIDRs: another container's port there is mapped",
	 TO(v4_container_quiet, 70, ARRIVES(TCP(v4_client, 25000, v4_host_other, 7070, SYN))),
	 .flows_unchecked = true},
};

void policy_rows(void)
{
	ROWS_RUN_GIVEN(given_ports, port_rows);
	ROWS_RUN_GIVEN(given_unmasqueraded, unmasqueraded_rows);
	ROWS_RUN(source_rows);
	several_sources_row();
	ROWS_RUN_GIVEN(given_masquerade_all, inward_rows);
	ROWS_RUN_GIVEN(given_source_ranges, source_range_rows);
	ROWS_RUN(changed_range_rows);
	ROWS_RUN_GIVEN(given_excluded, excluded_rows);
}

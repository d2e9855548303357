/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* offload_rows.c - which packets skip the IP stack, and how they are rewritten. */
#include "row.h"

/* A record, and where its packets go */
#define OFFLOADED(protocol_, family, in_path, out_path, ...) \
	MAPPED(ANSWERED, protocol_, family##_client, 7000, family##_host, 8080, \
	       family##_container_one, 80, 7000, .state = STATE_ESTABLISHED, \
	       .path = {out_path, in_path}, .out = {UPLINK, VETH_ONE}, ##__VA_ARGS__)
#define BY_PATH(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_CONTAINER, PATH_OUT, ##__VA_ARGS__)
#define BY_STACK(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_STACK, PATH_STACK, ##__VA_ARGS__)
#define UNDECIDED(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_UNDECIDED, PATH_UNDECIDED, ##__VA_ARGS__)

#define WITH_PATHS(family, ...) \
	const struct entry tcp = BY_PATH(IPPROTO_TCP, family, ##__VA_ARGS__); \
	const struct entry udp = BY_PATH(IPPROTO_UDP, family, ##__VA_ARGS__); \
	fixture_set_fast_path(ONE, FAST_PATH_ESTABLISHED); \
	fixture_put_offloaded(&tcp, ONE); \
	fixture_put_offloaded(&udp, ONE)

static void with_paths(void)
{
	WITH_PATHS(v4, .seen = {1, 1}, .looked_up = 1);
}

static void with_paths_v6(void)
{
	WITH_PATHS(v6, .seen = {1, 1}, .looked_up = 1);
}

static void seen_four_seconds_ago(void)
{
	WITH_PATHS(v4, .seen = {5, 5}, .looked_up = 1);
}

static void seen_six_seconds_ago(void)
{
	WITH_PATHS(v4, .seen = {7, 7}, .looked_up = 1);
}

static void with_small_mtu(void)
{
	WITH_PATHS(v4, .seen = {1, 1}, .looked_up = 1, .path_mtu = 500);
}

static void with_offload_dropped(void)
{
	with_paths();
	fixture_drop_offload();
}

static void with_container_gone(void)
{
	with_paths();
	fixture_kill(ONE);
}

static void with_fast_path_off(void)
{
	WITH_PATHS(v4, .seen = {1, 1}, .looked_up = 2);
	fixture_set_fast_path(ONE, FAST_PATH_OFF);
}

/* The route lookup has expired; its answer has not changed. */
static void looked_up_before(void)
{
	WITH_PATHS(v4, .seen = {1, 1}, .looked_up = 2);
}

static void with_unknown_neighbour(void)
{
	WITH_PATHS(v4, .seen = {1, 1}, .looked_up = 1, .neighbour_unknown = true);
}

#define IN4(protocol, ...) protocol(v4_client, 7000, v4_host, 8080, ##__VA_ARGS__)
#define IN4_DONE(protocol, ...) protocol(v4_client, 7000, v4_container_one, 80, ##__VA_ARGS__)
#define OUT4(protocol, ...) protocol(v4_container_one, 80, v4_client, 7000, ##__VA_ARGS__)
#define OUT4_DONE(protocol, ...) protocol(v4_host, 8080, v4_client, 7000, ##__VA_ARGS__)
#define IN6(protocol, ...) protocol(v6_client, 7000, v6_host, 8080, ##__VA_ARGS__)
#define IN6_DONE(protocol, ...) protocol(v6_client, 7000, v6_container_one, 80, ##__VA_ARGS__)
#define OUT6(protocol, ...) protocol(v6_container_one, 80, v6_client, 7000, ##__VA_ARGS__)
#define OUT6_DONE(protocol, ...) protocol(v6_host, 8080, v6_client, 7000, ##__VA_ARGS__)

#define ONE_HOP_LESS (TIME_TO_LIVE - 1)
#define TO_ONE .hop_limit = ONE_HOP_LESS, .to_mac = MAC_CONTAINER_ONE, .from_mac = MAC_BRIDGE
#define TO_ROUTER .hop_limit = ONE_HOP_LESS, .to_mac = MAC_NEIGHBOUR, .from_mac = MAC_UPLINK
#define TO_ASKED .hop_limit = ONE_HOP_LESS, .to_mac = MAC_NONE, .from_mac = MAC_UPLINK

#define ROW(says_, given_) \
	.says = says_, .given = given_, .within_a_second = true, .flows_unchecked = true
#define INTO_ONE .verdict = REDIRECTED, .by = PATH_CONTAINER, .counts = {"fast_into_container"}
#define OUT_OF_UPLINK .verdict = REDIRECTED, .by = PATH_OUT, .counts = {"fast_out"}

static const struct row path_rows[] = {
	{ROW("inwards: rewritten, TTL decremented, MACs of bridge and container", with_paths),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("outwards: rewritten, TTL decremented, MACs of uplink and router", with_paths),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(TCP, ACK), .out = OUT4_DONE(TCP, ACK, TO_ROUTER),
	 OUT_OF_UPLINK},
	{ROW("inwards: UDP", with_paths), AT(FROM_UPLINK, UPLINK), .in = IN4(UDP),
	 .out = IN4_DONE(UDP, TO_ONE), INTO_ONE},
	{ROW("outwards: UDP", with_paths), AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP),
	 .out = OUT4_DONE(UDP, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("inwards: UDP without a checksum", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(UDP, .without_checksum = true),
	 .out = IN4_DONE(UDP, .without_checksum = true, TO_ONE), INTO_ONE},
	{ROW("inwards: TCP, IPv6", with_paths_v6), AT(FROM_UPLINK, UPLINK), .in = IN6(TCP, ACK),
	 .out = IN6_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("outwards: TCP, IPv6", with_paths_v6), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT6(TCP, ACK), .out = OUT6_DONE(TCP, ACK, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("inwards: UDP, IPv6", with_paths_v6), AT(FROM_UPLINK, UPLINK), .in = IN6(UDP),
	 .out = IN6_DONE(UDP, TO_ONE), INTO_ONE},
	{ROW("outwards: UDP, IPv6", with_paths_v6), AT(FROM_CONTAINER, VETH_ONE), .in = OUT6(UDP),
	 .out = OUT6_DONE(UDP, TO_ROUTER), OUT_OF_UPLINK},
#define DAMAGED .verdict = DROPPED, .counts = {"drop_damaged_header"}
	{ROW("a wrong checksum of the IPv4 header, which the stack would drop", with_paths),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK, .damaged_header = true), DAMAGED},
	{ROW("and outwards", with_paths), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(UDP, .damaged_header = true), DAMAGED},
	{ROW("FIN skips the stack", with_paths), AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, FIN | ACK),
	 .out = IN4_DONE(TCP, FIN | ACK, TO_ONE), INTO_ONE},
	{ROW("RST skips the stack", with_paths), AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(TCP, RST),
	 .out = OUT4_DONE(TCP, RST, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("a TTL of 2 is enough", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK, .hop_limit = 2),
	 .out = IN4_DONE(TCP, ACK, .hop_limit = 1, .to_mac = MAC_CONTAINER_ONE,
			 .from_mac = MAC_BRIDGE),
	 INTO_ONE},
	{ROW("a packet of the MTU's size skips the stack", with_small_mtu),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP, .payload = 500 - 28),
	 .out = OUT4_DONE(UDP, .payload = 500 - 28, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("segments of the MTU's size too, with a FIN behind them", with_small_mtu),
	 AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(TCP, FIN | ACK, .payload = 900, .segment_size = 460),
	 .out = OUT4_DONE(TCP, FIN | ACK, .payload = 900, .segment_size = 460, TO_ROUTER),
	 OUT_OF_UPLINK},
	{ROW("but not larger ones", with_small_mtu), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(TCP, FIN | ACK, .payload = 900, .segment_size = 461)},
	{ROW("TCP skips the stack for good", seen_six_seconds_ago), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("UDP that the stack saw four seconds ago still skips it", seen_four_seconds_ago),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(UDP), .out = IN4_DONE(UDP, TO_ONE), INTO_ONE},
	{ROW("the route lookup is repeated in another second, and so is that of the neighbour",
	     looked_up_before),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(TCP, ACK), .out = OUT4_DONE(TCP, ACK, TO_ASKED),
	 OUT_OF_UPLINK},
	{ROW("a repeated lookup inwards gives the container's MAC", looked_up_before),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("the kernel resolves an unknown neighbour", with_unknown_neighbour),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP), .out = OUT4_DONE(UDP, TO_ASKED),
	 OUT_OF_UPLINK},
	{ROW("a container's ICMP error about a received packet skips the stack", with_paths),
	 AT(FROM_CONTAINER, VETH_ONE),
	 .in = ERROR4(3, 3, v4_container_one, v4_client, IN4_DONE(UDP)),
	 .out = ERROR4(3, 3, v4_host, v4_client, IN4(UDP), TO_ROUTER), OUT_OF_UPLINK},
	{ROW("over IPv6 too", with_paths_v6), AT(FROM_CONTAINER, VETH_ONE),
	 .in = ERROR6(1, 4, v6_container_one, v6_client, IN6_DONE(UDP)),
	 .out = ERROR6(1, 4, v6_host, v6_client, IN6(UDP), TO_ROUTER), OUT_OF_UPLINK},
};

#define BEHIND_ROUTED "10.99.0.5" /* a container routes to it */

/* Container one has a masqueraded flow to it, through the routed container's veth. */
static void with_way_by_container(void)
{
	static const struct entry record =
		MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 25000, BEHIND_ROUTED, 50,
			    "10.20.0.1", 25000, .out = {[OUTWARDS] = VETH_ROUTED});

	fixture_put_as(&record, ONE, false, 0, STATE_ESTABLISHED);
}

#define FOREIGN_ERROR .verdict = DROPPED, .counts = {"drop_foreign_error"}

/* Errors of containers about flows that are not theirs */
static const struct row foreign_error_rows[] = {
	{ROW("another container's error about the flow does not leave", with_paths),
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_container_two, v4_client, IN4_DONE(UDP)), FOREIGN_ERROR},
	{ROW("nor over IPv6", with_paths_v6), AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR6(2, 0, v6_container_two, v6_client, IN6_DONE(TCP, ACK)), FOREIGN_ERROR},
	{ROW("nor from another network of the host", with_paths), AT(FROM_CONTAINER, VETH_ROUTED),
	 .in = ERROR4(11, 0, v4_container_routed, v4_client, IN4_DONE(TCP, ACK)), FOREIGN_ERROR},
	{ROW("nor with a source address of no container", with_paths), AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_stranger, v4_client, IN4_DONE(UDP)), FOREIGN_ERROR},
	{ROW("nor does it reach that container, quoting the packet as seen outside", with_paths),
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_container_two, v4_host, OUT4_DONE(UDP)), FOREIGN_ERROR},
	{ROW("nor over IPv6, quoting the packet as seen outside", with_paths_v6),
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR6(2, 0, v6_container_two, v6_host, OUT6_DONE(UDP)), FOREIGN_ERROR},
	{ROW("nor if it is addressed to the container on the bridge", with_paths),
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_container_two, v4_client, IN4_DONE(UDP),
		      .to_mac = MAC_CONTAINER_ONE),
	 FOREIGN_ERROR},
	{ROW("an error of a container that routes the flow is translated", with_way_by_container),
	 AT(FROM_CONTAINER, VETH_ROUTED),
	 .in = ERROR4(3, 4, v4_container_routed, "10.20.0.1",
		      UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50)),
	 .out = ERROR4(3, 4, v4_container_routed, v4_container_one,
		       UDP(v4_container_one, 25000, BEHIND_ROUTED, 50)),
	 .counts = {"rewritten_error"}},
	{ROW("an error of the receiver behind that container passes", with_way_by_container),
	 AT(FROM_CONTAINER, VETH_ROUTED),
	 .in = ERROR4(3, 3, BEHIND_ROUTED, "10.20.0.1",
		      UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50))},
	{ROW("that of a container not on the flow's route is dropped", with_way_by_container),
	 AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_container_two, "10.20.0.1",
		      UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50)),
	 FOREIGN_ERROR},
	{ROW("an error about no flow goes to the stack", with_paths), AT(FROM_CONTAINER, VETH_TWO),
	 .in = ERROR4(3, 4, v4_container_two, v4_client,
		      UDP(v4_client, 7001, v4_container_one, 80))},
	{ROW("an error from outside goes to the stack", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = ERROR4(3, 1, v4_elsewhere, v4_host, OUT4_DONE(UDP)),
	 .out = ERROR4(3, 1, v4_elsewhere, v4_container_one, OUT4(UDP)),
	 .counts = {"rewritten_error"}},
	{ROW("over IPv6 too", with_paths_v6), AT(FROM_UPLINK, UPLINK),
	 .in = ERROR6(2, 0, v6_elsewhere, v6_host, OUT6_DONE(UDP)),
	 .out = ERROR6(2, 0, v6_elsewhere, v6_container_one, OUT6(UDP)),
	 .counts = {"rewritten_error"}},
};

static const struct row priority_rows[] = {
	{ROW("a type of service sets the priority: throughput", with_paths),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP, .type_of_service = 8),
	 .out = OUT4_DONE(UDP, .type_of_service = 8, TO_ROUTER), OUT_OF_UPLINK, .priority = 2},
	{ROW("low delay", with_paths), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(UDP, .type_of_service = 0x10),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x10, TO_ROUTER), OUT_OF_UPLINK, .priority = 6},
	{ROW("both", with_paths), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(UDP, .type_of_service = 0x18),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x18, TO_ROUTER), OUT_OF_UPLINK, .priority = 4},
	{ROW("reliability and ECN have no effect", with_paths), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(UDP, .type_of_service = 0x06),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x06, TO_ROUTER), OUT_OF_UPLINK, .priority = 0},
	{ROW("IPv6 keeps its priority, as in the stack", with_paths_v6),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT6(UDP), .out = OUT6_DONE(UDP, TO_ROUTER),
	 OUT_OF_UPLINK},
};

/* To the stack: translated inwards, untouched outwards */
static const struct row stack_rows[] = {
	{ROW("SYN goes to the stack", with_paths), AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, SYN),
	 .out = IN4_DONE(TCP, SYN)},
	{ROW("so does SYN-ACK", with_paths), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(TCP, SYN | ACK)},
	{ROW("a packet on its last hop goes to the stack, inwards", with_paths),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK, .hop_limit = 1),
	 .out = IN4_DONE(TCP, ACK, .hop_limit = 1)},
	{ROW("a packet on its last hop goes to the stack, outwards", with_paths),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP, .hop_limit = 1)},
	{ROW("a packet on its last hop goes to the stack, IPv6", with_paths_v6),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT6(UDP, .hop_limit = 1)},
	{ROW("IPv4 options go to the stack", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(UDP, .ipv4_options = 4), .out = IN4_DONE(UDP, .ipv4_options = 4)},
	{ROW("IPv6 options go to the stack", with_paths_v6), AT(FROM_UPLINK, UPLINK),
	 .in = IN6(UDP, .extensions = "d"), .out = IN6_DONE(UDP, .extensions = "d")},
	{ROW("a packet larger than the MTU goes to the stack", with_small_mtu),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP, .payload = 500 - 27)},
	{ROW("UDP that the stack saw six seconds ago goes to it, inwards", seen_six_seconds_ago),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(UDP), .out = IN4_DONE(UDP)},
	{ROW("UDP that the stack saw six seconds ago goes to it, outwards", seen_six_seconds_ago),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP)},
	{ROW("after drop-offload all goes to the stack: TCP inwards", with_offload_dropped),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK)},
	{ROW("after drop-offload all goes to the stack: UDP outwards", with_offload_dropped),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(UDP)},
	{ROW("fastPath turned off: has effect at the next route lookup, inwards",
	     with_fast_path_off),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(UDP), .out = IN4_DONE(UDP)},
	{ROW("fastPath turned off: has effect at the next route lookup, outwards",
	     with_fast_path_off),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(TCP, ACK)},
	{ROW("[i06] a deleted container gets no packet", with_container_gone),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK)},
	{ROW("and sends none", with_container_gone), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(TCP, ACK), .verdict = DROPPED, .counts = {"drop_no_attachment"}},
	{ROW("a frame for another host passes untouched", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK, .to_mac = MAC_FOREIGN)},
	{ROW("a packet of no flow passes untouched", with_paths), AT(FROM_UPLINK, UPLINK),
	 .in = TCP(v4_client_other, 7000, v4_host, 8081, ACK)},
};

static void put_undecided(uint32_t in_seen, uint32_t out_seen)
{
	const struct entry record = UNDECIDED(IPPROTO_TCP, v4, .seen = {out_seen, in_seen});

	fixture_set_fast_path(ONE, FAST_PATH_ESTABLISHED);
	fixture_put_offloaded(&record, ONE);
}

static void seen_both_ways(void)
{
	put_undecided(1, 1);
}

static void seen_in_alone(void)
{
	put_undecided(1, 0);
}

static void seen_out_alone(void)
{
	put_undecided(0, 1);
}

static void seen_before_drop(void)
{
	put_undecided(1, 1);
	fixture_drop_offload();
}

static void with_tcp_path(void)
{
	const struct entry record = BY_PATH(IPPROTO_TCP, v4, .seen = {1, 1}, .looked_up = 1);

	fixture_set_fast_path(ONE, FAST_PATH_ESTABLISHED);
	fixture_put_offloaded(&record, ONE);
}

static void at_uplink_of_others(void)
{
	put_undecided(1, 1);
	fixture_without_fast_path(UPLINK);
}

#define DECIDES(says_, given_) .says = says_, .given = given_, .within_a_second = true

static const struct row decision_rows[] = {
	{DECIDES("seen in both directions: both get a path, and this packet skips the stack",
		 seen_both_ways),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK, TO_ONE),
	 .verdict = REDIRECTED, .by = PATH_CONTAINER, .flows = {BY_PATH(IPPROTO_TCP, v4)},
	 .counts = {"flow_offloaded", "fast_into_container"}},
	{DECIDES("seen in both directions: the same from the container", seen_both_ways),
	 AT(FROM_CONTAINER, VETH_ONE), .in = OUT4(TCP, ACK), .out = OUT4_DONE(TCP, ACK, TO_ROUTER),
	 .verdict = REDIRECTED, .by = PATH_OUT, .flows = {BY_PATH(IPPROTO_TCP, v4)},
	 .counts = {"flow_offloaded", "fast_out"}},
	{DECIDES("seen inwards only: not yet", seen_in_alone), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{DECIDES("seen outwards only: not yet", seen_out_alone), AT(FROM_CONTAINER, VETH_ONE),
	 .in = OUT4(TCP, ACK), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{DECIDES("seen before drop-offload: not yet", seen_before_drop), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{DECIDES("a SYN decides nothing", seen_both_ways), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, SYN), .out = IN4_DONE(TCP, SYN), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{DECIDES("answered by the host itself: to the stack for good", seen_in_alone),
	 AT(TO_UPLINK, UPLINK), .of_the_host = true, .in = OUT4(TCP, SYN | ACK),
	 .out = OUT4_DONE(TCP, SYN | ACK), .flows = {BY_STACK(IPPROTO_TCP, v4)}},
	{DECIDES("but a path that there is already stays", with_tcp_path), AT(TO_UPLINK, UPLINK),
	 .of_the_host = true, .in = OUT4(TCP, ACK), .out = OUT4_DONE(TCP, ACK),
	 .flows = {BY_PATH(IPPROTO_TCP, v4)}},
	{DECIDES("IPv4 options: to the stack for good", seen_both_ways), AT(FROM_UPLINK, UPLINK),
	 .in = IN4(TCP, ACK, .ipv4_options = 4), .out = IN4_DONE(TCP, ACK, .ipv4_options = 4),
	 .flows = {BY_STACK(IPPROTO_TCP, v4)}},
	{DECIDES("another tc program at the uplink: to the stack for good", at_uplink_of_others),
	 AT(FROM_UPLINK, UPLINK), .in = IN4(TCP, ACK), .out = IN4_DONE(TCP, ACK),
	 .flows = {BY_STACK(IPPROTO_TCP, v4)}},
};

/* Masqueraded, from a ptp container */
#define LEAVING(in_path, out_path, ...) \
	MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_routed, 5000, v4_server, 53, v4_host, \
		    20000, .state = STATE_ESTABLISHED, .path = {out_path, in_path}, \
		    .out = {UPLINK, VETH_ROUTED}, ##__VA_ARGS__)

static void masqueraded(void)
{
	const struct entry record =
		LEAVING(PATH_CONTAINER, PATH_OUT, .seen = {1, 1}, .looked_up = 1);

	fixture_set_fast_path(ROUTED, FAST_PATH_ESTABLISHED);
	fixture_put_offloaded(&record, ROUTED);
}

static void masqueraded_undecided(void)
{
	const struct entry record = LEAVING(PATH_UNDECIDED, PATH_UNDECIDED, .seen = {1, 1});

	fixture_set_fast_path(ROUTED, FAST_PATH_ESTABLISHED);
	fixture_put_offloaded(&record, ROUTED);
}

static void masqueraded_elsewhere(void)
{
	struct entry record = LEAVING(PATH_UNDECIDED, PATH_UNDECIDED, .seen = {1, 1});

	record.out[OUTWARDS] = SECOND_UPLINK;
	fixture_set_fast_path(ROUTED, FAST_PATH_ESTABLISHED);
	fixture_put_offloaded(&record, ROUTED);
}

#define TO_ROUTED .hop_limit = ONE_HOP_LESS, .to_mac = MAC_CONTAINER_ROUTED, .from_mac = MAC_ROUTED

static const struct row masquerade_rows_of_paths[] = {
	{ROW("[i04] masqueraded traffic of a ptp container skips the stack", masqueraded),
	 AT(FROM_CONTAINER, VETH_ROUTED), .in = UDP(v4_container_routed, 5000, v4_server, 53),
	 .out = UDP(v4_host, 20000, v4_server, 53, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("and back", masqueraded), AT(FROM_UPLINK, UPLINK),
	 .in = UDP(v4_server, 53, v4_host, 20000),
	 .out = UDP(v4_server, 53, v4_container_routed, 5000, TO_ROUTED), INTO_ONE},
	{DECIDES("masqueraded: seen in both directions", masqueraded_undecided),
	 AT(FROM_UPLINK, UPLINK), .in = UDP(v4_server, 53, v4_host, 20000),
	 .out = UDP(v4_server, 53, v4_container_routed, 5000, TO_ROUTED), .verdict = REDIRECTED,
	 .by = PATH_CONTAINER, .flows = {LEAVING(PATH_CONTAINER, PATH_OUT)},
	 .counts = {"flow_offloaded", "fast_into_container"}},
	{DECIDES("masqueraded, with another egress interface: to the stack for good",
		 masqueraded_elsewhere),
	 AT(FROM_CONTAINER, VETH_ROUTED), .in = UDP(v4_container_routed, 5000, v4_server, 53),
	 .flows = {LEAVING(PATH_STACK, PATH_STACK)}},
};

/* The host sends in the container's name before the container does. */
#define BEGUN(protocol, path_) \
	MASQUERADED(NEW, protocol, v6_container_one, 25000, v6_server, 53, v6_host, 25000, \
		    .path = {path_, path_})
#define FIRST_PIECE \
	.payload = 1000, .fragment = FIRST_FRAGMENT, .piece_offset = 0, .piece_size = 800

static const struct row rows_of_the_host[] = {
	{.says = "begun by the host itself: to the stack for good",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = TCP(v6_container_one, 25000, v6_server, 53, SYN),
	 .out = TCP(v6_host, 25000, v6_server, 53, SYN),
	 .flows = {BEGUN(IPPROTO_TCP, PATH_STACK)}},
	{.says = "by a fragment that the stack has made again: not decided yet",
	 AT(TO_UPLINK, UPLINK),
	 .of_the_host = true,
	 .in = UDP(v6_container_one, 25000, v6_server, 53, FIRST_PIECE),
	 .out = UDP(v6_host, 25000, v6_server, 53, FIRST_PIECE),
	 .flows = {BEGUN(IPPROTO_UDP, PATH_UNDECIDED)}},
};

void offload_rows(void)
{
	ROWS_RUN(path_rows);
	ROWS_RUN(foreign_error_rows);
	ROWS_RUN(priority_rows);
	ROWS_RUN(stack_rows);
	ROWS_RUN(decision_rows);
	ROWS_RUN(masquerade_rows_of_paths);
	ROWS_RUN(rows_of_the_host);
}

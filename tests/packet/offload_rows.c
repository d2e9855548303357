/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* offload_rows.c - which packets skip the IP stack, and how they are rewritten. */
#include "row.h"

/* A record, and where its packets go */
#define OFFLOADED(protocol_, family, in_path, out_path, ...) \
	MAPPED(ANSWERED, protocol_, family##_client, 7000, family##_host, 8080, \
	       family##_container_one, 80, 7000, .owner = ONE, .with_data = true, \
	       .path = {out_path, in_path}, .out = {UPLINK, VETH_ONE}, ##__VA_ARGS__)
#define BY_PATH(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_CONTAINER, PATH_OUT, ##__VA_ARGS__)
#define BY_STACK(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_STACK, PATH_STACK, ##__VA_ARGS__)
#define UNDECIDED(protocol, family, ...) \
	OFFLOADED(protocol, family, PATH_UNDECIDED, PATH_UNDECIDED, ##__VA_ARGS__)

/* A TCP and a UDP flow with paths: seen this second, their routes looked up this second */
#define PATHS(family, ...) \
	.holds = {BY_PATH(IPPROTO_TCP, family, ##__VA_ARGS__), \
		  BY_PATH(IPPROTO_UDP, family, ##__VA_ARGS__)}
#define NOW .seen = {1, 1}, .looked_up = 1
#define WITH_PATHS .offloads = ONE, PATHS(v4, NOW)
#define SEEN_SIX_SECONDS_AGO .offloads = ONE, PATHS(v4, .seen = {7, 7}, .looked_up = 1)
#define WITH_SMALL_MTU .offloads = ONE, PATHS(v4, NOW, .path_mtu = 500)
#define WITH_OFFLOAD_DROPPED WITH_PATHS, .given = fixture_drop_offload
#define WITH_CONTAINER_GONE WITH_PATHS, AFTER(fixture_kill, ONE)
/* The route lookup has expired; its answer has not changed. */
#define WITH_FAST_PATH_OFF PATHS(v4, .seen = {1, 1}, .looked_up = 2)
#define LOOKED_UP_BEFORE .offloads = ONE, WITH_FAST_PATH_OFF
#define WITH_UNKNOWN_NEIGHBOUR .offloads = ONE, PATHS(v4, NOW, .neighbour_unknown = true)

#define IN4(protocol, ...) protocol(v4_client, 7000, v4_host, 8080, ##__VA_ARGS__)
#define IN4_DONE(protocol, ...) protocol(v4_client, 7000, v4_container_one, 80, ##__VA_ARGS__)
#define OUT4(protocol, ...) protocol(v4_container_one, 80, v4_client, 7000, ##__VA_ARGS__)
#define OUT4_DONE(protocol, ...) protocol(v4_host, 8080, v4_client, 7000, ##__VA_ARGS__)

#define ONE_HOP_LESS (TIME_TO_LIVE - 1)
#define TO_ONE .hop_limit = ONE_HOP_LESS, .to_mac = MAC_CONTAINER_ONE, .from_mac = MAC_BRIDGE
#define TO_ROUTER .hop_limit = ONE_HOP_LESS, .to_mac = MAC_NEIGHBOUR, .from_mac = MAC_UPLINK
#define TO_ASKED .hop_limit = ONE_HOP_LESS, .to_mac = MAC_NONE, .from_mac = MAC_UPLINK

#define ROW(says_, ...) .says = says_, __VA_ARGS__, .within_a_second = true
#define ROW_IN_BOTH(says_, ...) IN_BOTH_FAMILIES(says_), __VA_ARGS__, .within_a_second = true
#define INTO_ONE .verdict = REDIRECTED, .by = PATH_CONTAINER, .counts = {"fast_into_container"}
#define OUT_OF_UPLINK .verdict = REDIRECTED, .by = PATH_OUT, .counts = {"fast_out"}

static const struct row path_rows[] = {
	{ROW_IN_BOTH("inwards: rewritten, TTL decremented, MACs of bridge and container",
		     WITH_PATHS),
	 ARRIVES(IN4(TCP, ACK)), .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW_IN_BOTH("outwards: rewritten, TTL decremented, MACs of uplink and router", WITH_PATHS),
	 SENT_BY(VETH_ONE, OUT4(TCP, ACK)), .out = OUT4_DONE(TCP, ACK, TO_ROUTER), OUT_OF_UPLINK},
	{ROW_IN_BOTH("inwards: UDP", WITH_PATHS), ARRIVES(IN4(UDP)), .out = IN4_DONE(UDP, TO_ONE),
	 INTO_ONE},
	{ROW_IN_BOTH("outwards: UDP", WITH_PATHS), SENT_BY(VETH_ONE, OUT4(UDP)),
	 .out = OUT4_DONE(UDP, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("inwards: UDP without a checksum", WITH_PATHS),
	 ARRIVES(IN4(UDP, .without_checksum = true)),
	 .out = IN4_DONE(UDP, .without_checksum = true, TO_ONE), INTO_ONE},
#define DAMAGED .verdict = DROPPED, .counts = {"drop_damaged_header"}
	{ROW("a wrong checksum of the IPv4 header, which the stack would drop", WITH_PATHS),
	 ARRIVES(IN4(TCP, ACK, .damaged_header = true)), DAMAGED},
	{ROW("and outwards", WITH_PATHS), SENT_BY(VETH_ONE, OUT4(UDP, .damaged_header = true)),
	 DAMAGED},
	{ROW("FIN skips the stack", WITH_PATHS, .flows_unchecked = true),
	 ARRIVES(IN4(TCP, FIN | ACK)), .out = IN4_DONE(TCP, FIN | ACK, TO_ONE), INTO_ONE},
	{ROW("RST skips the stack", WITH_PATHS, .flows_unchecked = true),
	 SENT_BY(VETH_ONE, OUT4(TCP, RST)), .out = OUT4_DONE(TCP, RST, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("a TTL of 2 is enough", WITH_PATHS), ARRIVES(IN4(TCP, ACK, .hop_limit = 2)),
	 .out = IN4_DONE(TCP, ACK, .hop_limit = 1, .to_mac = MAC_CONTAINER_ONE,
			 .from_mac = MAC_BRIDGE),
	 INTO_ONE},
	{ROW("a packet of the MTU's size skips the stack", WITH_SMALL_MTU),
	 SENT_BY(VETH_ONE, OUT4(UDP, .payload = 500 - 28)),
	 .out = OUT4_DONE(UDP, .payload = 500 - 28, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("segments of the MTU's size too, with a FIN behind them", WITH_SMALL_MTU,
	     .flows_unchecked = true),
	 SENT_BY(VETH_ONE, OUT4(TCP, FIN | ACK, .payload = 900, .segment_size = 460)),
	 .out = OUT4_DONE(TCP, FIN | ACK, .payload = 900, .segment_size = 460, TO_ROUTER),
	 OUT_OF_UPLINK},
	{ROW("but not larger ones", WITH_SMALL_MTU),
	 SENT_BY(VETH_ONE, OUT4(TCP, FIN | ACK, .payload = 900, .segment_size = 461))},
	{ROW("TCP skips the stack for good", SEEN_SIX_SECONDS_AGO), ARRIVES(IN4(TCP, ACK)),
	 .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("the route lookup is repeated in another second, and so is that of the neighbour",
	     LOOKED_UP_BEFORE),
	 SENT_BY(VETH_ONE, OUT4(TCP, ACK)), .out = OUT4_DONE(TCP, ACK, TO_ASKED), OUT_OF_UPLINK},
	{ROW("a repeated lookup inwards gives the container's MAC", LOOKED_UP_BEFORE),
	 ARRIVES(IN4(TCP, ACK)), .out = IN4_DONE(TCP, ACK, TO_ONE), INTO_ONE},
	{ROW("the kernel resolves an unknown neighbour", WITH_UNKNOWN_NEIGHBOUR),
	 SENT_BY(VETH_ONE, OUT4(UDP)), .out = OUT4_DONE(UDP, TO_ASKED), OUT_OF_UPLINK},
	{ROW_IN_BOTH("a container's ICMP error about a received packet skips the stack",
		     WITH_PATHS),
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_client, IN4_DONE(UDP))),
	 .out = ERROR4(3, 3, v4_host, v4_client, IN4(UDP), TO_ROUTER), OUT_OF_UPLINK},
};

#define BEHIND_ROUTED "10.99.0.5" /* a container routes to it */

/* Container one has a masqueraded flow to it, through the routed container's veth. */
#define WITH_WAY_BY_CONTAINER \
	.holds = {MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 25000, BEHIND_ROUTED, 50, \
			      "10.20.0.1", 25000, .owner = ONE, \
			      .out = {[OUTWARDS] = VETH_ROUTED})}

#define FOREIGN_ERROR .verdict = DROPPED, .counts = {"drop_foreign_error"}

/* Errors of containers about flows that are not theirs */
static const struct row foreign_error_rows[] = {
	{ROW_IN_BOTH("another container's error about the flow does not leave", WITH_PATHS),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_container_two, v4_client, IN4_DONE(UDP))),
	 FOREIGN_ERROR},
	{ROW("nor from another network of the host", WITH_PATHS),
	 SENT_BY(VETH_ROUTED, ERROR4(11, 0, v4_container_routed, v4_client, IN4_DONE(TCP, ACK))),
	 FOREIGN_ERROR},
	{ROW("nor with a source address of no container", WITH_PATHS),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_stranger, v4_client, IN4_DONE(UDP))), FOREIGN_ERROR},
	{ROW_IN_BOTH("nor does it reach that container, quoting the packet as seen outside",
		     WITH_PATHS),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_container_two, v4_host, OUT4_DONE(UDP))), FOREIGN_ERROR},
	{ROW("nor if it is addressed to the container on the bridge", WITH_PATHS),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_container_two, v4_client, IN4_DONE(UDP),
				  .to_mac = MAC_CONTAINER_ONE)),
	 FOREIGN_ERROR},
	{ROW("an error of a container that routes the flow is translated", WITH_WAY_BY_CONTAINER),
	 SENT_BY(VETH_ROUTED, ERROR4(3, 4, v4_container_routed, "10.20.0.1",
				     UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50))),
	 .out = ERROR4(3, 4, v4_container_routed, v4_container_one,
		       UDP(v4_container_one, 25000, BEHIND_ROUTED, 50)),
	 .counts = {"rewritten_error"}},
	{ROW("an error of the receiver behind that container passes", WITH_WAY_BY_CONTAINER),
	 SENT_BY(VETH_ROUTED, ERROR4(3, 3, BEHIND_ROUTED, "10.20.0.1",
				     UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50)))},
	{ROW("that of a container not on the flow's route is dropped", WITH_WAY_BY_CONTAINER),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_container_two, "10.20.0.1",
				  UDP("10.20.0.1", 25000, BEHIND_ROUTED, 50))),
	 FOREIGN_ERROR},
	{ROW("an error about no flow goes to the stack", WITH_PATHS),
	 SENT_BY(VETH_TWO, ERROR4(3, 4, v4_container_two, v4_client,
				  UDP(v4_client, 7001, v4_container_one, 80)))},
	{ROW_IN_BOTH("an error from outside goes to the stack", WITH_PATHS),
	 ARRIVES(ERROR4(3, 1, v4_elsewhere, v4_host, OUT4_DONE(UDP))),
	 .out = ERROR4(3, 1, v4_elsewhere, v4_container_one, OUT4(UDP)),
	 .counts = {"rewritten_error"}},
};

static const struct row priority_rows[] = {
	{ROW("a type of service sets the priority: throughput", WITH_PATHS),
	 SENT_BY(VETH_ONE, OUT4(UDP, .type_of_service = 8)),
	 .out = OUT4_DONE(UDP, .type_of_service = 8, TO_ROUTER), OUT_OF_UPLINK, .priority = 2},
	{ROW("low delay", WITH_PATHS), SENT_BY(VETH_ONE, OUT4(UDP, .type_of_service = 0x10)),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x10, TO_ROUTER), OUT_OF_UPLINK, .priority = 6},
	{ROW("both", WITH_PATHS), SENT_BY(VETH_ONE, OUT4(UDP, .type_of_service = 0x18)),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x18, TO_ROUTER), OUT_OF_UPLINK, .priority = 4},
	{ROW("reliability and ECN have no effect", WITH_PATHS),
	 SENT_BY(VETH_ONE, OUT4(UDP, .type_of_service = 0x06)),
	 .out = OUT4_DONE(UDP, .type_of_service = 0x06, TO_ROUTER), OUT_OF_UPLINK, .priority = 0},
};

/* To the stack: translated inwards, untouched outwards */
static const struct row stack_rows[] = {
	{ROW("SYN goes to the stack", WITH_PATHS), ARRIVES(IN4(TCP, SYN)),
	 .out = IN4_DONE(TCP, SYN)},
	{ROW("so does SYN-ACK", WITH_PATHS), SENT_BY(VETH_ONE, OUT4(TCP, SYN | ACK))},
	{ROW("a packet on its last hop goes to the stack, inwards", WITH_PATHS),
	 ARRIVES(IN4(TCP, ACK, .hop_limit = 1)), .out = IN4_DONE(TCP, ACK, .hop_limit = 1)},
	{ROW_IN_BOTH("a packet on its last hop goes to the stack, outwards", WITH_PATHS),
	 SENT_BY(VETH_ONE, OUT4(UDP, .hop_limit = 1))},
	{ROW_IN_BOTH("options go to the stack", WITH_PATHS), ARRIVES(IN4(UDP, .ipv4_options = 4)),
	 .out = IN4_DONE(UDP, .ipv4_options = 4)},
	{ROW("a packet larger than the MTU goes to the stack", WITH_SMALL_MTU),
	 SENT_BY(VETH_ONE, OUT4(UDP, .payload = 500 - 27))},
	{ROW("UDP that the stack saw six seconds ago goes to it, inwards", SEEN_SIX_SECONDS_AGO),
	 ARRIVES(IN4(UDP)), .out = IN4_DONE(UDP)},
	{ROW("UDP that the stack saw six seconds ago goes to it, outwards", SEEN_SIX_SECONDS_AGO),
	 SENT_BY(VETH_ONE, OUT4(UDP))},
	{ROW("after drop-offload all goes to the stack: TCP inwards", WITH_OFFLOAD_DROPPED),
	 ARRIVES(IN4(TCP, ACK)), .out = IN4_DONE(TCP, ACK)},
	{ROW("after drop-offload all goes to the stack: UDP outwards", WITH_OFFLOAD_DROPPED),
	 SENT_BY(VETH_ONE, OUT4(UDP))},
	{ROW("fastPath turned off: has effect at the next route lookup, inwards",
	     WITH_FAST_PATH_OFF),
	 ARRIVES(IN4(UDP)), .out = IN4_DONE(UDP)},
	{ROW("fastPath turned off: has effect at the next route lookup, outwards",
	     WITH_FAST_PATH_OFF),
	 SENT_BY(VETH_ONE, OUT4(TCP, ACK))},
	{ROW("a deleted container gets no packet", WITH_CONTAINER_GONE), ARRIVES(IN4(TCP, ACK))},
	{ROW("and sends none", WITH_CONTAINER_GONE), SENT_BY(VETH_ONE, OUT4(TCP, ACK)),
	 .verdict = DROPPED, .counts = {"drop_no_attachment"}},
	{ROW("a frame for another host passes untouched", WITH_PATHS),
	 ARRIVES(IN4(TCP, ACK, .to_mac = MAC_FOREIGN))},
	{ROW("a packet of no flow passes untouched", WITH_PATHS),
	 ARRIVES(TCP(v4_client_other, 7000, v4_host, 8081, ACK))},
};

#define SEEN(in_seen, out_seen) \
	.offloads = ONE, .holds = {UNDECIDED(IPPROTO_TCP, v4, .seen = {out_seen, in_seen})}
#define SEEN_BOTH_WAYS SEEN(1, 1)
#define SEEN_IN_ALONE SEEN(1, 0)
#define SEEN_OUT_ALONE SEEN(0, 1)
#define SEEN_BEFORE_DROP SEEN_BOTH_WAYS, .given = fixture_drop_offload
#define WITH_TCP_PATH .offloads = ONE, .holds = {BY_PATH(IPPROTO_TCP, v4, NOW)}
#define AT_UPLINK_OF_OTHERS SEEN_BOTH_WAYS, .given = bar_fast_path

#define NOT_ASSURED(path_) \
	MAPPED(NEW, IPPROTO_UDP, v4_client, 7000, v4_host, 8080, v4_container_one, 80, 7000, \
	       .owner = ONE, .path = {path_, path_})

static void bar_fast_path(void)
{
	fixture_without_fast_path(UPLINK);
}

static const struct row decision_rows[] = {
	{ROW("seen in both directions: both get a path, and this packet skips the stack",
	     SEEN_BOTH_WAYS),
	 ARRIVES(IN4(TCP, ACK)), .out = IN4_DONE(TCP, ACK, TO_ONE), .verdict = REDIRECTED,
	 .by = PATH_CONTAINER, .flows = {BY_PATH(IPPROTO_TCP, v4)},
	 .counts = {"flow_offloaded", "fast_into_container"}},
	{ROW("seen in both directions: the same from the container", SEEN_BOTH_WAYS),
	 SENT_BY(VETH_ONE, OUT4(TCP, ACK)), .out = OUT4_DONE(TCP, ACK, TO_ROUTER),
	 .verdict = REDIRECTED, .by = PATH_OUT, .flows = {BY_PATH(IPPROTO_TCP, v4)},
	 .counts = {"flow_offloaded", "fast_out"}},
	{ROW("seen inwards only: not yet", SEEN_IN_ALONE), ARRIVES(IN4(TCP, ACK)),
	 .out = IN4_DONE(TCP, ACK), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{ROW("seen outwards only: not yet", SEEN_OUT_ALONE), SENT_BY(VETH_ONE, OUT4(TCP, ACK)),
	 .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{ROW("seen before drop-offload: not yet", SEEN_BEFORE_DROP), ARRIVES(IN4(TCP, ACK)),
	 .out = IN4_DONE(TCP, ACK), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{ROW("a SYN decides nothing", SEEN_BOTH_WAYS), ARRIVES(IN4(TCP, SYN)),
	 .out = IN4_DONE(TCP, SYN), .flows = {UNDECIDED(IPPROTO_TCP, v4)}},
	{ROW("answered by the host itself: to the stack for good", SEEN_IN_ALONE),
	 .of_the_host = true, LEAVES(OUT4(TCP, SYN | ACK)), .out = OUT4_DONE(TCP, SYN | ACK),
	 .flows = {BY_STACK(IPPROTO_TCP, v4)}},
	{ROW("but a path that there is already stays", WITH_TCP_PATH), .of_the_host = true,
	 LEAVES(OUT4(TCP, ACK)), .out = OUT4_DONE(TCP, ACK), .flows = {BY_PATH(IPPROTO_TCP, v4)}},
	{ROW("IPv4 options: to the stack for good", SEEN_BOTH_WAYS),
	 ARRIVES(IN4(TCP, ACK, .ipv4_options = 4)), .out = IN4_DONE(TCP, ACK, .ipv4_options = 4),
	 .flows = {BY_STACK(IPPROTO_TCP, v4)}},
	{ROW("also before it is assured: else a later reply without options would skip the stack",
	     .offloads = ONE, .holds = {NOT_ASSURED(PATH_UNDECIDED)}),
	 ARRIVES(IN4(UDP, .ipv4_options = 4)), .out = IN4_DONE(UDP, .ipv4_options = 4),
	 .flows = {NOT_ASSURED(PATH_STACK)}},
	{ROW("IPv6 extension headers decide nothing: a packet without them may skip the stack",
	     .offloads = ONE, .holds = {UNDECIDED(IPPROTO_TCP, v6, .seen = {1, 1})}),
	 ARRIVES(TCP(v6_client, 7000, v6_host, 8080, ACK, .extensions = "f")),
	 .out = TCP(v6_client, 7000, v6_container_one, 80, ACK, .extensions = "f"),
	 .flows = {UNDECIDED(IPPROTO_TCP, v6)}},
	{ROW("another tc program at the uplink: to the stack for good", AT_UPLINK_OF_OTHERS),
	 ARRIVES(IN4(TCP, ACK)), .out = IN4_DONE(TCP, ACK), .flows = {BY_STACK(IPPROTO_TCP, v4)}},
};

/* Masqueraded, from a ptp container */
#define LEAVING(uplink, in_path, out_path, ...) \
	MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_routed, 5000, v4_server, 53, v4_host, \
		    20000, .owner = ROUTED, .with_data = true, .path = {out_path, in_path}, \
		    .out = {uplink, VETH_ROUTED}, ##__VA_ARGS__)

#define MASQUERADES .offloads = ROUTED, .holds = {LEAVING(UPLINK, PATH_CONTAINER, PATH_OUT, NOW)}
#define MASQUERADES_UNDECIDED(uplink) \
	.offloads = ROUTED, \
	.holds = {LEAVING(uplink, PATH_UNDECIDED, PATH_UNDECIDED, .seen = {1, 1})}

#define TO_ROUTED .hop_limit = ONE_HOP_LESS, .to_mac = MAC_CONTAINER_ROUTED, .from_mac = MAC_ROUTED

static const struct row masquerade_rows_of_paths[] = {
	{ROW("masqueraded traffic of a ptp container skips the stack", MASQUERADES),
	 SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_server, 53)),
	 .out = UDP(v4_host, 20000, v4_server, 53, TO_ROUTER), OUT_OF_UPLINK},
	{ROW("and back", MASQUERADES), ARRIVES(UDP(v4_server, 53, v4_host, 20000)),
	 .out = UDP(v4_server, 53, v4_container_routed, 5000, TO_ROUTED), INTO_ONE},
	{ROW("masqueraded: seen in both directions", MASQUERADES_UNDECIDED(UPLINK)),
	 ARRIVES(UDP(v4_server, 53, v4_host, 20000)),
	 .out = UDP(v4_server, 53, v4_container_routed, 5000, TO_ROUTED), .verdict = REDIRECTED,
	 .by = PATH_CONTAINER, .flows = {LEAVING(UPLINK, PATH_CONTAINER, PATH_OUT)},
	 .counts = {"flow_offloaded", "fast_into_container"}},
	{ROW("masqueraded, with another egress interface: to the stack for good",
	     MASQUERADES_UNDECIDED(SECOND_UPLINK)),
	 SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_server, 53)),
	 .flows = {LEAVING(SECOND_UPLINK, PATH_STACK, PATH_STACK)}},
};

/* The host sends in the container's name before the container does. */
#define BEGUN(protocol, path_) \
	MASQUERADED(NEW, protocol, v6_container_one, 25000, v6_server, 53, v6_host, 25000, \
		    .path = {path_, path_})
#define FIRST_PIECE \
	.payload = 1000, .fragment = FIRST_FRAGMENT, .piece_offset = 0, .piece_size = 800

static const struct row rows_of_the_host[] = {
	{.says = "begun by the host itself: to the stack for good",
	 AS(v6_host, 25000, OF_THE_HOST(LEAVES(TCP(v6_container_one, 25000, v6_server, 53, SYN)))),
	 .flows = {BEGUN(IPPROTO_TCP, PATH_STACK)}},
	{.says = "by a fragment that the stack has made again: not decided yet",
	 .mark = MARK_SEAL,
	 AS(v6_host, 25000,
	    OF_THE_HOST(LEAVES(UDP(v6_container_one, 25000, v6_server, 53, FIRST_PIECE)))),
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

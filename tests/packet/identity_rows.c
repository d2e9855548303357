/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* identity_rows.c - checks of a container's source address; strict. */
#include "row.h"

#define FORGED .verdict = DROPPED, .counts = {"drop_forged_source"}

static const struct row container_rows[] = {
	{.says = "another container's address: dropped, to the gateway",
	 SENT_BY(VETH_ONE, TCP(v4_container_two, 40000, v4_host, 8080, SYN)),
	 FORGED},
	{.says = "and to the outside",
	 SENT_BY(VETH_ONE, UDP(v6_container_two, 40000, v6_server, 53)),
	 FORGED},
	{.says = "and switched, to another container on the bridge",
	 SENT_BY(VETH_QUIET,
		 UDP(v4_container_one, 80, v4_container_two, 40000, .to_mac = MAC_CONTAINER_TWO)),
	 FORGED},
	{.says = "and to a container that this plugin did not set up",
	 SENT_BY(VETH_QUIET, UDP(v4_container_one, 80, v4_stranger, 40000, .to_mac = MAC_FOREIGN)),
	 FORGED},
	{.says = "the address of a container on another network of the host",
	 SENT_BY(VETH_ROUTED, TCP(v4_container_one, 40000, v4_server, 443, SYN)),
	 FORGED},
	{.says = "the first fragment of a datagram",
	 SENT_BY(VETH_ONE, UDP(v4_container_two, 40000, v4_server, 53, .fragment = FIRST_FRAGMENT)),
	 FORGED},
	{IN_BOTH_FAMILIES("and a later one"),
	 SENT_BY(VETH_ONE, UDP(v4_container_two, 40000, v4_server, 53, .fragment = LATER_FRAGMENT)),
	 FORGED},
	{.says = "GRE",
	 AT(FROM_CONTAINER, VETH_ONE),
	 .in = {.protocol = 47, .from = v4_container_two, .to = v4_server, .payload = 9},
	 FORGED},
	{.says = "TCP whose header ends too early",
	 SENT_BY(VETH_ONE,
		 TCP(v4_container_two, 25000, v4_server, 443, SYN, .without_transport = true)),
	 FORGED},
	{.says = "TCP to be segmented, without a total length (BIG TCP), though it is short",
	 SENT_BY(VETH_ONE, TCP(v4_container_two, 25000, v4_server, 443, ACK,
			       .without_ip_length = true, .segment_size = 1400)),
	 FORGED},
	{.says = "an ICMP error",
	 SENT_BY(VETH_ONE, ERROR4(3, 1, v4_container_two, v4_server,
				  UDP(v4_server, 53, v4_container_two, 25000))),
	 FORGED},
	{.says = "an answer to a ping",
	 SENT_BY(VETH_ONE, PONG6(v6_container_two, v6_server, 7)),
	 FORGED},
	{.says = "a multicast datagram",
	 SENT_BY(VETH_ONE,
		 UDP(v4_container_two, 5353, "224.0.0.251", 5353, .to_mac = MAC_MULTICAST)),
	 FORGED},
	{.says = "a multicast datagram with the container's own address passes",
	 SENT_BY(VETH_ONE,
		 UDP(v4_container_one, 5353, "224.0.0.251", 5353, .to_mac = MAC_MULTICAST))},
	{.says = "and one to all nodes from a link-local address",
	 SENT_BY(VETH_ONE, UDP("fe80::2", 5353, "ff02::fb", 5353, .to_mac = MAC_MULTICAST))},
	{.says = "and DHCP from 0.0.0.0",
	 SENT_BY(VETH_ONE, UDP("0.0.0.0", 68, "255.255.255.255", 67, .to_mac = MAC_BROADCAST))},
	{.says = "and a packet from ::",
	 SENT_BY(VETH_ONE, PING6("::", "ff02::1", 7, .to_mac = MAC_MULTICAST))},
	{IN_BOTH_FAMILIES("an address of no container passes: the container may be a router"),
	 SENT_BY(VETH_ONE, TCP("10.99.0.2", 40000, v4_server, 443, SYN))},
	{.says = "an address without a route passes, IPv4",
	 SENT_BY(VETH_ONE,
		 UDP("100.64.0.2", 40000, v4_container_two, 53, .to_mac = MAC_CONTAINER_TWO))},
	{.says = "an address without a route passes, switched, IPv6",
	 SENT_BY(VETH_ONE,
		 UDP("fd00:99::2", 40000, v6_container_two, 53, .to_mac = MAC_CONTAINER_TWO))},
};

static void given_shared(void)
{
	fixture_share_address(v4_container_two);
}

static void given_two_networks(void)
{
	fixture_make_one_container(ONE, TWO);
}

static const struct row excuse_rows[] = {
	{.says = "the address of a deleted container may be used",
	 AFTER(fixture_kill, TWO),
	 SENT_BY(VETH_ONE, UDP(v4_container_two, 40000, v4_server, 53))},
	{.says = "so may that of one whose veth is gone without DEL",
	 AFTER(fixture_remove_veth, TWO),
	 SENT_BY(VETH_ONE, UDP(v4_container_two, 40000, v4_server, 53))},
	{.says = "either of two attachments with the same address may use it",
	 .given = given_shared,
	 SENT_BY(VETH_ONE, UDP(v4_container_two, 40000, v4_server, 53))},
	{.says = "a container on two networks may send with either address through either veth",
	 .given = given_two_networks,
	 SENT_BY(VETH_TWO, TCP(v4_container_one, 40000, v4_server, 443, SYN | ACK))},
	{.says = "as it may with the veth's own address",
	 .given = given_two_networks,
	 SENT_BY(VETH_TWO, TCP(v4_container_two, 40000, v4_server, 443, SYN))},
};

/* The map of the host's addresses may be out of date. */
static void given_another_host_address(void)
{
	fixture_add_host_address("198.51.100.42");
	fixture_add_host_address("2001:db8:99::42");
}

static const struct row host_address_rows[] = {
	{IN_BOTH_FAMILIES("an address of the host: dropped"),
	 SENT_BY(VETH_ONE, TCP(v4_host, 8080, v4_client, 40000, SYN)), FORGED},
	{.says = "the address of the container's own bridge",
	 SENT_BY(VETH_ONE, PONG6(v6_bridge, v6_container_two, 5, .to_mac = MAC_CONTAINER_TWO)),
	 FORGED},
	{.says = "from a routed container",
	 SENT_BY(VETH_ROUTED, UDP(v6_host, 8080, v6_client, 40000)),
	 FORGED},
	{.says = "IPv6, before the map has it",
	 .given = fixture_forget_host_addresses,
	 SENT_BY(VETH_ONE, UDP(v6_host, 8080, v6_client, 40000)),
	 FORGED},
	{.says = "also if addressed to the MAC of the veth's host end, which the bridge delivers",
	 .given = fixture_forget_host_addresses,
	 SENT_BY(VETH_ONE, UDP(v6_host, 8080, v6_client, 40000, .to_mac = MAC_VETH_ONE)),
	 FORGED},
	{.says = "a container's link-local address passes, to the bridge's: a probe of a neighbour",
	 SENT_BY(VETH_ONE, ICMP(IPPROTO_ICMPV6, 135, 0, "fe80::2", v6_bridge_link_local, 0,
				.hop_limit = 255))},
	{.says = "and to the bridge's global one",
	 SENT_BY(VETH_ONE, UDP("fe80::2", 547, v6_bridge, 547))},
	{.says = "and a routed container's to its veth's",
	 SENT_BY(VETH_ROUTED, PING6("fe80::2", v6_routed_link_local, 7))},
	{.says = "a link-local address of another device passes: it is valid on that link only",
	 SENT_BY(VETH_ROUTED, PING6(v6_bridge_link_local, v6_routed_link_local, 7))},
	{IN_BOTH_FAMILIES("an address that the host no longer has passes"),
	 .given = given_another_host_address,
	 SENT_BY(VETH_ONE, UDP("198.51.100.42", 40000, v4_client, 53))},
};

static const struct row link_local_rows[] = {
	{.says = "the link-local address of the bridge: dropped",
	 SENT_BY(VETH_ONE, PING6(v6_bridge_link_local, "ff02::1", 7, .to_mac = MAC_MULTICAST)),
	 FORGED},
	{.says = "and that of the veth's host end from a routed container",
	 SENT_BY(VETH_ROUTED, PING6(v6_routed_link_local, "fe80::2", 7)),
	 FORGED},
};

/* The client's datagrams must not have kept it alive. */
static void check_foreign_is_not_kept(void)
{
	struct stored_entries stored;

	fixture_read_flows(&stored);
	for (int i = 0; i < stored.count; i++)
		if (stored.entries[i].connection.last_seen + 90 > fixture_second())
			row_fail("the record was kept alive");
}

static void check_foreign_is_kept(void)
{
	struct stored_entries stored;

	fixture_read_flows(&stored);
	for (int i = 0; i < stored.count; i++)
		if (stored.entries[i].connection.last_seen + 90 < fixture_second())
			row_fail("the record was not kept alive");
}

static const struct row foreign_rows[] = {
	{.says = "a SYN to a mapped port goes to the container, even if another NAT has"
		 " the same tuple",
	 .holds = {FOREIGN(NEW, IPPROTO_TCP, v4_host, 8080, v4_client, 40000)},
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.says = "an answer is left to that NAT",
	 .holds = {FOREIGN(NEW, IPPROTO_TCP, v4_host, 8080, v4_client, 40000)},
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN | ACK))},
	{.says = "datagrams to a mapped port do not keep another NAT's record alive",
	 .holds = {FOREIGN(NEW, IPPROTO_UDPLITE, v4_host, 8080, v4_client, 40000, .idle = 100)},
	 ARRIVES(UDP_LITE(v4_client, 40000, v4_host, 8080)),
	 .afterwards = check_foreign_is_not_kept},
	{.says = "those that the other NAT translates do",
	 .holds = {FOREIGN(NEW, IPPROTO_UDPLITE, v4_host, 8080, v4_client, 40000, .idle = 100)},
	 LEAVES(UDP_LITE(v4_host, 8080, v4_client, 40000)),
	 .afterwards = check_foreign_is_kept},
};

static const struct row gone_rows[] = {
	{IN_BOTH_FAMILIES("a mapping whose owner's veth is gone without DEL has no effect"),
	 AFTER(fixture_remove_veth, ONE), ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN))},
	{.says = "nor from another container",
	 AFTER(fixture_remove_veth, ONE),
	 SENT_BY(VETH_TWO, TCP(v4_container_two, 40000, v4_host, 8080, SYN))},
	{.says = "another container's mapping still has",
	 AFTER(fixture_remove_veth, ONE),
	 MAPPED_TO(v4_container_quiet, 70, ARRIVES(TCP(v4_client, 40000, v4_host, 7070, SYN)))},
	{.says = "its assured flow ends with the first packet of the next second, which passes",
	 AFTER(fixture_remove_veth, ONE),
	 .holds = {MAPPED(ANSWERED, IPPROTO_UDP, v4_client, 40000, v4_host, 8080, v4_container_one,
			  80, 40000, .owner = ONE, .idle = 2)},
	 ARRIVES(UDP(v4_client, 40000, v4_host, 8080)),
	 .no_flows = true},
	{.says = "so does a half-open one: a retransmitted SYN",
	 AFTER(fixture_remove_veth, ONE),
	 .holds = {MAPPED(NEW, IPPROTO_TCP, v4_client, 40000, v4_host, 8080, v4_container_one, 80,
			  40000, .owner = ONE, .idle = 2)},
	 ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)),
	 .no_flows = true},
	{.says = "and a masqueraded one",
	 AFTER(fixture_remove_veth, ONE),
	 .holds = {MASQUERADED(ANSWERED, IPPROTO_UDP, v4_container_one, 25000, v4_server, 53,
			       v4_host, 25000, .owner = ONE, .idle = 2)},
	 ARRIVES(UDP(v4_server, 53, v4_host, 25000)),
	 .no_flows = true},
};

static void given_strict(void)
{
	fixture_make_strict(v4_container_one);
	fixture_make_strict(v6_container_one);
	fixture_make_strict(v4_container_quiet);
	fixture_make_strict(v6_container_quiet);
}

#define UNINVITED .verdict = DROPPED, .counts = {"drop_strict"}
/* A connection that the container began, with its own address */
#define BEGUN(table, protocol, container, container_port, server, server_port) \
	RECORD(table, protocol, container, container_port, server, server_port, container, \
	       container_port, server_port, FLOW_DIRECT, .begun_inside = true)

static const struct row strict_rows[] = {
	{.says = "strict: no packet from outside to the container's own address",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, SYN)),
	 UNINVITED},
	{.says = "strict: nor over IPv6, nor to a container that is not masqueraded",
	 ARRIVES_BY(SECOND_UPLINK, UDP(v6_client, 40000, v6_container_quiet, 53)),
	 UNINVITED},
	{.says = "strict: nor TCP in mid-connection without a record",
	 ARRIVES(TCP(v4_client, 40000, v4_container_one, 80, ACK)),
	 UNINVITED},
	{.says = "strict: nor through an uplink without a link header",
	 AT(FROM_UPLINK_RAW, UPLINK),
	 .in = PING4("8.0.0.7", v4_container_one, 7),
	 /* see raw_rows.c */
	 UNINVITED},
	{.says = "strict: nor GRE",
	 AT(FROM_UPLINK, UPLINK),
	 .in = {.protocol = 47, .from = v4_client, .to = v4_container_one, .payload = 9},
	 UNINVITED},
	{.says = "strict: nor an ICMP error about a packet that the container has not sent",
	 ARRIVES(ERROR4(3, 1, v4_client, v4_container_one,
			UDP(v4_container_one, 25000, v4_client, 53))),
	 UNINVITED},
	{.says = "strict: nor one that quotes a packet of another machine",
	 ARRIVES(ERROR6(1, 0, v6_client, v6_container_one, UDP(v6_host, 25000, v6_client, 53))),
	 UNINVITED},
	{.says = "strict: nor a datagram in fragments",
	 ARRIVES(UDP(v4_client, 40000, v4_container_one, 53, .fragment = FIRST_FRAGMENT)),
	 UNINVITED},
	{.then = "strict: its later fragments",
	 ARRIVES(UDP(v4_client, 40000, v4_container_one, 53, .fragment = LATER_FRAGMENT)),
	 .verdict = DROPPED},
	{.says = "strict: packets to a mapped port pass",
	 MAPPED_TO(v4_container_one, 80, ARRIVES(TCP(v4_client, 40000, v4_host, 8080, SYN)))},
	{.then = "strict: the container's answers pass",
	 AS(v4_host, 8080, LEAVES(TCP(v4_container_one, 80, v4_client, 40000, SYN | ACK)))},
	{.says = "strict: packets of the host pass",
	 OF_THE_HOST(DELIVERED(TCP(v4_bridge, 40000, v4_container_one, 80, SYN)))},
	{.says = "strict: packets of another container pass",
	 .flows_unchecked = true,
	 SENT_BY(VETH_TWO,
		 TCP(v4_container_two, 40000, v4_container_one, 80, SYN, .to_mac = MAC_FOREIGN))},
	{.says = "strict: packets of a container that this plugin did not set up pass, on the "
		 "bridge",
	 .flows_unchecked = true,
	 CROSSES_BRIDGE(TCP(v4_stranger, 40000, v4_container_one, 80, SYN))},
	{.says = "strict: another container without it is reached as before",
	 .flows_unchecked = true,
	 ARRIVES(TCP(v4_client, 40000, v4_container_two, 80, SYN))},
	{.says = "strict: what a container without masquerade begins is remembered",
	 LEAVES(TCP(v4_container_quiet, 25000, v4_server, 443, SYN)),
	 .flows = {BEGUN(NEW, IPPROTO_TCP, v4_container_quiet, 25000, v4_server, 443)},
	 .counts = {"flow_direct"}},
	{.then = "strict: so its answer passes",
	 ARRIVES(TCP(v4_server, 443, v4_container_quiet, 25000, SYN | ACK))},
	{.then = "strict: and an ICMP error about it",
	 ARRIVES(ERROR4(3, 4, v4_client, v4_container_quiet,
			TCP(v4_container_quiet, 25000, v4_server, 443, SYN)))},
	{.then = "strict: the container goes on",
	 LEAVES(TCP(v4_container_quiet, 25000, v4_server, 443, ACK)),
	 .flows = {BEGUN(ANSWERED, IPPROTO_TCP, v4_container_quiet, 25000, v4_server, 443)}},
	{.then = "strict: the server from another port does not get in",
	 ARRIVES(TCP(v4_server, 444, v4_container_quiet, 25000, ACK)),
	 UNINVITED},
	{.says = "strict: a connection older than the option is remembered at the container's next "
		 "packet",
	 LEAVES(TCP(v6_container_quiet, 25000, v6_server, 443, ACK)),
	 .flows = {BEGUN(NEW, IPPROTO_TCP, v6_container_quiet, 25000, v6_server, 443)}},
	{.says = "strict: a masqueraded container's datagram inside its own network",
	 LEAVES(UDP(v4_container_one, 25000, "10.10.7.7", 53)),
	 .flows = {BEGUN(NEW, IPPROTO_UDP, v4_container_one, 25000, "10.10.7.7", 53)}},
	{.says = "strict: an RST is not remembered: the host's firewall may have sent it",
	 LEAVES(TCP(v4_container_quiet, 80, v4_client, 40000, RST))},
};

static const struct row lenient_rows[] = {
	{.says = "without strict nothing is remembered",
	 LEAVES(TCP(v4_container_quiet, 25000, v4_server, 443, SYN))},
};

static void check_two_is_charged(void)
{
	struct stored_entries stored;

	fixture_read_flows(&stored);
	for (int i = 0; i < stored.count; i++)
		if (stored.entries[i].connection.owner.slot != TWO)
			row_fail("it counts for slot %u", stored.entries[i].connection.owner.slot);
}

static const struct row charge_rows[] = {
	{.says = "a flow between containers counts for the container that began it",
	 SENT_BY(VETH_TWO, PING4(v4_container_two, v4_container_one, 7, .to_mac = MAC_FOREIGN)),
	 .flows = {DIRECT(NEW, IPPROTO_ICMP, v4_container_two, 7, v4_container_one, 0)},
	 .afterwards = check_two_is_charged},
};

static void seal_row(void)
{
	static const struct packet packet = UDP(v4_container_one, 5000, v4_container_two, 80);
	struct frame frame;
	uint32_t left;

	row_begin("no container sees a seal");
	fixture_reset();
	row_build(&frame, &packet, TO_CONTAINER, BRIDGE);
	left = fixture_hash_left(TO_CONTAINER, BRIDGE, BRIDGE, &frame);
	if (left)
		row_fail("%#x is left", left);
	row_end();
}

/* With masqAll the client of a container's port has a record of that container's, too. The client
 * is on the same bridge, or on another network. */
static void clients_name_row(enum fast_path mode, enum device veth, const char *client)
{
	const struct packet asks = UDP(client, 25000, v4_host, 8080);
	const struct packet delivered = UDP(client, 25000, v4_container_one, 80);
	const struct packet answers = UDP(v4_container_one, 80, v4_bridge, 25000);
	struct frame frame;
	uint32_t second;
	int verdict = 0;

	row_begin("masqAll: a client's packet that its server sends is dropped");
	for (int i = 0; i < ROW_TRIES; i++) {
		second = fixture_second();
		fixture_reset();
		fixture_set_policy(ONE, (struct policy){.masquerade_all = 1});
		fixture_offload_one(mode);
		for (int turn = 0; turn < 3; turn++) {
			row_send(FROM_CONTAINER, veth, &asks);
			row_send(TO_CONTAINER, BRIDGE, &delivered);
			if (mode != FAST_PATH_OFF)
				fixture_let_leave_stack();
			row_send(FROM_CONTAINER, VETH_ONE, &answers);
		}
		row_build(&frame, &delivered, FROM_CONTAINER, VETH_ONE);
		verdict = fixture_run(FROM_CONTAINER, VETH_ONE, VETH_ONE, &frame);
		if (fixture_second() == second)
			break;
	}
	row_expect_dropped(verdict, client);
	row_end();
}

void identity_rows(void)
{
	clients_name_row(FAST_PATH_OFF, VETH_TWO, v4_container_two);
	clients_name_row(FAST_PATH_ESTABLISHED, VETH_TWO, v4_container_two);
	clients_name_row(FAST_PATH_OFF, VETH_ROUTED, v4_container_routed);
	seal_row();
	ROWS_RUN(charge_rows);
	ROWS_RUN_GIVEN(given_strict, strict_rows);
	ROWS_RUN(lenient_rows);
	ROWS_RUN(gone_rows);
	ROWS_RUN(container_rows);
	ROWS_RUN(excuse_rows);
	ROWS_RUN(host_address_rows);
	if (fixture_sees_devices())
		ROWS_RUN(link_local_rows);
	ROWS_RUN(foreign_rows);
}

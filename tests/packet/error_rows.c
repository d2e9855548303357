/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* error_rows.c - ICMP errors about translated packets, from any sender. */
#include <stdio.h>
#include <string.h>

#include "row.h"

#define IDLE 30 /* seconds that the flows have been idle: shows if an error refreshes them */
#define ROUTER4 "198.51.100.99"
#define ROUTER6 "2001:db8:99::99"
#define V4 IPPROTO_ICMP
#define V6 IPPROTO_ICMPV6

/* A flow as either side sees it. For an echo the ports of container and host are the identifier,
 * those of the peer 0. */
struct known_flow {
	const char *says;
	int icmp; /* V4, V6 */
	int protocol;
	enum flow_kind kind;
	const char *container;
	int container_port;
	const char *host;
	int host_port;
	const char *peer;
	int peer_port_inside;
	int peer_port_outside;
};

/* n: of the version of IP */
#define MAPPED_FLOW(n, protocol, moved) \
	V##n, protocol, FLOW_MAPPING, v##n##_container_one, 80, v##n##_host, 8080, v##n##_client, \
		moved, 40000
#define LEFT_FLOW(n, protocol, port, peer_port) \
	V##n, protocol, FLOW_MASQUERADE, v##n##_container_one, 25000, v##n##_host, port, \
		v##n##_server, peer_port, peer_port
#define LEFT_PORTLESS(n, number) \
	V##n, number, FLOW_MASQUERADE, v##n##_container_one, 0, v##n##_host, 0, v##n##_server, 0, 0
#define IN_BOTH(says, flow, ...) \
	{says, flow(4, __VA_ARGS__)}, \
	{ \
		says ", IPv6", flow(6, __VA_ARGS__) \
	}

static const struct known_flow known_flows[] = {
	IN_BOTH("mapped TCP", MAPPED_FLOW, IPPROTO_TCP, 40000),
	IN_BOTH("mapped TCP, client's port moved", MAPPED_FLOW, IPPROTO_TCP, 50123),
	IN_BOTH("mapped UDP", MAPPED_FLOW, IPPROTO_UDP, 40000),
	IN_BOTH("mapped UDP, client's port moved", MAPPED_FLOW, IPPROTO_UDP, 50123),
	IN_BOTH("masqueraded TCP", LEFT_FLOW, IPPROTO_TCP, 25000, 443),
	IN_BOTH("masqueraded TCP, port moved", LEFT_FLOW, IPPROTO_TCP, 20777, 443),
	IN_BOTH("masqueraded UDP", LEFT_FLOW, IPPROTO_UDP, 25000, 53),
	IN_BOTH("masqueraded UDP, port moved", LEFT_FLOW, IPPROTO_UDP, 20777, 53),
	{"mapped SCTP", MAPPED_FLOW(4, IPPROTO_SCTP, 40000)},
	{"mapped SCTP over IPv6, client's port moved", MAPPED_FLOW(6, IPPROTO_SCTP, 50123)},
	{"masqueraded SCTP", LEFT_FLOW(4, IPPROTO_SCTP, 25000, 443)},
	IN_BOTH("masqueraded SCTP, port moved", LEFT_FLOW, IPPROTO_SCTP, 20777, 443),
	{"masqueraded UDP-Lite", LEFT_FLOW(4, IPPROTO_UDPLITE, 25000, 53)},
	IN_BOTH("masqueraded UDP-Lite, port moved", LEFT_FLOW, IPPROTO_UDPLITE, 20777, 53),
	{"masqueraded ping", LEFT_FLOW(4, IPPROTO_ICMP, 25000, 0)},
	{"masqueraded ping, identifier moved", LEFT_FLOW(4, IPPROTO_ICMP, 777, 0)},
	{"masqueraded ping over IPv6", LEFT_FLOW(6, IPPROTO_ICMPV6, 25000, 0)},
	{"masqueraded ping over IPv6, identifier moved", LEFT_FLOW(6, IPPROTO_ICMPV6, 777, 0)},
	{"masqueraded GRE", LEFT_PORTLESS(4, 47)},
	{"masqueraded ESP over IPv6", LEFT_PORTLESS(6, 50)},
};

/* Type, code, and the field that has the MTU, a pointer or a length */
struct message {
	int icmp;
	unsigned int type;
	unsigned int last_code;
	uint32_t rest;
};

static const struct message messages[] = {
	{V4, 3, 15, 1300},     {V4, 11, 1, 0}, {V4, 12, 2, 0x14000000},
	{V4, 11, 1, 0x200000}, {V6, 1, 6, 0},  {V6, 2, 0, 1280},
	{V6, 3, 1, 0},         {V6, 4, 2, 40}, {V6, 1, 6, 0x4000000},
};

/* Variants of the error and of the packet in it */
struct form {
	bool eight;
	unsigned int payload; /* of the quoted packet */
	bool options;         /* the quoted packet has IPv4 options or IPv6 extension headers */
	bool outer_options;   /* so has the error */
	bool without_checksum;
	enum fragmentation fragment;
};

static const struct form forms[] = {
	{.payload = 7},
	{.payload = 528},
	{.eight = true, .payload = 1400},
	{.options = true, .payload = 20},
	{.options = true, .eight = true, .payload = 33},
	{.outer_options = true, .payload = 20},
	{.without_checksum = true, .payload = 21},
	{.without_checksum = true, .eight = true, .payload = 1},
	{.fragment = FIRST_FRAGMENT, .payload = 48},
};

enum sender {
	ROUTER_OUTSIDE, /* about a packet that left */
	THE_CONTAINER,  /* about a packet that it received */
	THE_HOST,       /* about a packet on its way to the container */
	ROUTER_INSIDE,  /* none of our containers */
};

static const char *const senders[] = {"a router's error", "the container's error",
				      "the host's own error", "an error of a router inside"};

static bool is_echo(const struct known_flow *flow)
{
	return flow->protocol == IPPROTO_ICMP || flow->protocol == IPPROTO_ICMPV6;
}

static void put_flow(const struct known_flow *flow)
{
	const struct entry record = {
		.stage = ANSWERED,
		.protocol = flow->protocol,
		.inside = flow->container,
		.inside_port = flow->container_port,
		.outside = flow->peer,
		.outside_port = flow->peer_port_inside,
		.external = flow->host,
		.external_port = flow->host_port,
		.peer_port = flow->peer_port_outside,
		.kind = flow->kind,
		.begun_inside = flow->kind == FLOW_MASQUERADE,
		.owner = ONE,
		.idle = IDLE,
		.state = STATE_ESTABLISHED,
	};

	fixture_put(&record);
}

/* The quoted packet of a flow: towards the peer or from it, inside or outside. */
static struct packet packet_of(const struct known_flow *flow, bool to_peer, bool inside)
{
	const char *own = inside ? flow->container : flow->host;
	int own_port = inside ? flow->container_port : flow->host_port;
	int peer_port = inside ? flow->peer_port_inside : flow->peer_port_outside;
	struct packet packet = {.protocol = flow->protocol, .tcp_flags = ACK};

	packet.from = to_peer ? own : flow->peer;
	packet.to = to_peer ? flow->peer : own;
	packet.from_port = to_peer ? own_port : peer_port;
	packet.to_port = to_peer ? peer_port : own_port;
	if (is_echo(flow)) {
		packet.from_port = own_port;
		packet.to_port = 0;
		packet.icmp_type = flow->icmp == V4 ? (to_peer ? 8 : 0) : to_peer ? 128 : 129;
	}
	return packet;
}

static void apply_form(struct packet *error, struct packet *quoted, const struct form *form)
{
	bool ipv4 = error->protocol == IPPROTO_ICMP;

	error->quotes_eight = form->eight;
	quoted->payload = form->payload;
	quoted->without_checksum = form->without_checksum;
	quoted->fragment = form->fragment;
	if (form->options) {
		quoted->ipv4_options = ipv4 ? 12 : 0;
		quoted->extensions = ipv4 ? NULL : "hdD";
	}
	if (form->outer_options) {
		error->ipv4_options = ipv4 ? 8 : 0;
		error->extensions = ipv4 ? NULL : "d";
	}
}

static bool form_applies(const struct known_flow *flow, const struct form *form)
{
	/* For UDP over IPv6 only the quoted checksum may be 0. That of SCTP is 0 if an interface
	 * was to compute it. */
	if (form->without_checksum)
		return flow->protocol == IPPROTO_UDP || flow->protocol == IPPROTO_SCTP;
	/* Of a protocol without ports eight bytes must be quoted, too. */
	return flow->container_port || form->payload >= 8;
}

struct passage {
	struct packet in;
	struct packet out;
	struct packet quoted_in;
	struct packet quoted_out;
	enum hook hook;
	enum device came_in_by;
};

static const char *sender_address(const struct known_flow *flow, enum sender sender)
{
	bool ipv4 = flow->icmp == V4;

	switch (sender) {
	case ROUTER_OUTSIDE:
		return ipv4 ? ROUTER4 : ROUTER6;
	case THE_CONTAINER:
		return flow->container;
	case THE_HOST:
		return flow->host;
	default:
		return ipv4 ? v4_stranger : v6_stranger;
	}
}

static void describe_passage(struct passage *passage, const struct known_flow *flow,
			     enum sender sender, const struct message *message, unsigned int code,
			     const struct form *form)
{
	bool inwards = sender == ROUTER_OUTSIDE;

	memset(passage, 0, sizeof(*passage));
	passage->hook = inwards ? FROM_UPLINK : TO_UPLINK;
	passage->came_in_by = inwards ? UPLINK : sender == THE_HOST ? 0 : BRIDGE;
	passage->quoted_in = packet_of(flow, inwards, !inwards);
	passage->quoted_out = packet_of(flow, inwards, inwards);
	passage->in = (struct packet){
		.protocol = flow->icmp,
		.icmp_type = message->type,
		.icmp_code = code,
		.icmp_rest = message->rest,
		.from = sender_address(flow, sender),
		.to = passage->quoted_in.from,
		.quotes = &passage->quoted_in,
	};
	passage->out = passage->in;
	passage->out.quotes = &passage->quoted_out;
	passage->out.to = passage->quoted_out.from;
	if (sender == THE_CONTAINER)
		passage->out.from = flow->host;
	apply_form(&passage->in, &passage->quoted_in, form);
	apply_form(&passage->out, &passage->quoted_out, form);
}

static void run_passage(const struct passage *passage, const char *what)
{
	struct frame got, expected;
	int verdict;

	row_build(&got, &passage->in, passage->hook, UPLINK);
	row_build(&expected, &passage->out, passage->hook, UPLINK);
	verdict = fixture_run(passage->hook, UPLINK, passage->came_in_by, &got);
	if (verdict != -1)
		row_fail("%s: verdict %d, expected -1", what, verdict);
	if (frame_equal(&got, &expected))
		return;
	row_fail("%s: the packet differs", what);
	frame_print_difference(&expected, &got);
}

static void run_message(const struct known_flow *flow, enum sender sender,
			const struct message *message)
{
	struct passage passage;
	char what[80];

	for (unsigned int code = 0; code <= message->last_code; code++) {
		for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
			if (!form_applies(flow, &forms[i]))
				continue;
			describe_passage(&passage, flow, sender, message, code, &forms[i]);
			snprintf(what, sizeof(what), "type %u code %u form %zu", message->type,
				 code, i);
			run_passage(&passage, what);
		}
	}
}

/* An error keeps no flow alive, and changes no state of it (RFC 5508 4). */
static void check_flows_unchanged(const struct stored_entries *before)
{
	struct stored_entries now;

	fixture_read_flows(&now);
	if (memcmp(&now, before, sizeof(now)) != 0)
		row_fail("the flows changed");
}

static void run_flow(const struct known_flow *flow, enum sender sender, bool complete)
{
	struct stored_entries before;
	char says[160];

	snprintf(says, sizeof(says), "%s about %s, every type and way of quoting%s",
		 senders[sender], flow->says, complete ? ", summed by a network card" : "");
	row_begin(says);
	fixture_reset();
	put_flow(flow);
	fixture_read_flows(&before);
	for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
		if (messages[i].icmp == flow->icmp)
			run_message(flow, sender, &messages[i]);
	check_flows_unchanged(&before);
	row_end();
}

/* Bytes of the transport header that must be quoted */
#define LEAST_QUOTED 8

static void run_cut(const struct known_flow *flow, enum sender sender, unsigned int size,
		    unsigned int padding)
{
	static const struct form plain = {.payload = 7};
	struct message message = {flow->icmp, flow->icmp == V4 ? 3 : 2, 0, 1300};
	unsigned int header = flow->icmp == V4 ? 20 : 40;
	struct frame got, in, expected;
	struct passage passage;
	int verdict;

	describe_passage(&passage, flow, sender, &message, 0, &plain);
	passage.in.quoted_bytes = size;
	passage.out.quoted_bytes = size;
	passage.in.padding = padding;
	passage.out.padding = padding;
	row_build(&in, &passage.in, passage.hook, UPLINK);
	row_build(&expected, &passage.out, passage.hook, UPLINK);
	got = in;
	verdict = fixture_run(passage.hook, UPLINK, passage.came_in_by, &got);
	if (size < header + LEAST_QUOTED) {
		if (verdict != (sender == THE_CONTAINER ? 2 : -1) || !frame_equal(&got, &in))
			row_fail("%u bytes quoted: verdict %d, or changed", size, verdict);
		return;
	}
	if (verdict != -1)
		row_fail("%u bytes quoted: verdict %d", size, verdict);
	/* Half a checksum is not corrected, and nobody checks it. */
	if (flow->protocol == IPPROTO_TCP && size == header + 17)
		return;
	if (flow->protocol == IPPROTO_SCTP && size > header + 8 && size < header + 12)
		return;
	if (!frame_equal(&got, &expected))
		row_fail("%u bytes quoted: the packet differs", size);
}

static void run_cuts(const struct known_flow *flow)
{
	static const enum sender some[] = {ROUTER_OUTSIDE, THE_CONTAINER, THE_HOST};
	struct packet quoted = packet_of(flow, true, true);
	struct frame whole;
	char says[160];

	row_build(&whole, &quoted, TO_UPLINK, UPLINK);
	snprintf(says, sizeof(says), "errors that quote %s, cut off at every byte", flow->says);
	row_begin(says);
	fixture_reset();
	put_flow(flow);
	for (int i = 0; i < 3; i++)
		for (unsigned int size = 1; size <= whole.length - whole.network; size++)
			for (unsigned int padding = 0; padding <= 60; padding += 60)
				run_cut(flow, some[i], size, padding);
	row_end();
}

/* Finds a client's port with which the packet at the container has a checksum of 0, which UDP
 * writes as 0xffff (RFC 768). */
static int find_port_for_no_sum(struct known_flow *flow)
{
	struct packet packet;
	struct frame frame;

	for (int port = 1024; port < 65536; port++) {
		flow->peer_port_inside = port;
		packet = packet_of(flow, true, true);
		row_build(&frame, &packet, TO_UPLINK, UPLINK);
		if (frame.bytes[frame.transport + 6] == 0xff &&
		    frame.bytes[frame.transport + 7] == 0xff)
			return port;
	}
	return 0;
}

static void run_no_sum(struct known_flow flow)
{
	static const struct form plain = {.payload = 7};
	struct message message = {flow.icmp, flow.icmp == V4 ? 3 : 1, 3, 0};
	struct passage passage;
	char says[160];

	snprintf(says, sizeof(says), "%s, a checksum of 0 quoted as 0xffff", flow.says);
	row_begin(says);
	fixture_reset();
	if (!find_port_for_no_sum(&flow))
		row_fail("no port makes it 0");
	put_flow(&flow);
	describe_passage(&passage, &flow, ROUTER_OUTSIDE, &message, 3, &plain);
	run_passage(&passage, "inwards");
	row_end();
}

static void all_senders(const struct known_flow *flow)
{
	for (int complete = 0; complete <= 1; complete++) {
		if (!fixture_set_checksum_complete(complete))
			break;
		for (int sender = ROUTER_OUTSIDE; sender <= ROUTER_INSIDE; sender++)
			run_flow(flow, (enum sender)sender, complete);
	}
	fixture_set_checksum_complete(false);
}

static void all_flows(void)
{
	run_no_sum((struct known_flow){"mapped UDP", MAPPED_FLOW(4, IPPROTO_UDP, 0)});
	run_no_sum((struct known_flow){"mapped UDP over IPv6", MAPPED_FLOW(6, IPPROTO_UDP, 0)});

	for (size_t i = 0; i < sizeof(known_flows) / sizeof(known_flows[0]); i++) {
		all_senders(&known_flows[i]);
		run_cuts(&known_flows[i]);
	}
}

/* Mapped and masqueraded UDP, over IPv4 and IPv6 */
static void given_flows(void)
{
	static const struct known_flow flows[] = {
		IN_BOTH("", MAPPED_FLOW, IPPROTO_UDP, 40000),
		IN_BOTH("", LEFT_FLOW, IPPROTO_UDP, 25000, 53),
	};

	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++)
		put_flow(&flows[i]);
}

static const struct row foreign_rows[] = {
	{.says = "an error that does not go to the sender of the quoted packet",
	 ARRIVES(ERROR4(3, 1, ROUTER4, v4_host_other, UDP(v4_host, 25000, v4_server, 53)))},
	{.says = "a masqueraded container's is dropped",
	 LEAVES(ERROR4(3, 1, v4_container_one, v4_elsewhere,
		       UDP(v4_server, 53, v4_container_one, 25000))),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "a forwarded error to another machine",
	 ARRIVES(ERROR4(3, 4, ROUTER4, v4_elsewhere, UDP(v4_elsewhere, 25000, v4_server, 53)))},
	{.says = "an error about a packet of the host's own",
	 ARRIVES(ERROR4(3, 4, ROUTER4, v4_host, TCP(v4_host, 25000, v4_server, 53, ACK)))},
	{.says = "the host's own error about a packet to itself",
	 OF_THE_HOST(
		 LEAVES(ERROR4(3, 3, v4_host, v4_client, UDP(v4_client, 40000, v4_host, 9999))))},
	{.says = "the host's own error about a packet to a published port's number",
	 OF_THE_HOST(
		 LEAVES(ERROR4(3, 3, v4_host, v4_client, UDP(v4_client, 40000, v4_host, 8080))))},
	{IN_BOTH_FAMILIES("an error that quotes a later fragment, which has no ports"),
	 ARRIVES(ERROR4(11, 1, ROUTER4, v4_host,
			UDP(v4_host, 25000, v4_server, 53, .fragment = LATER_FRAGMENT)))},
	{IN_BOTH_FAMILIES("a masqueraded container's, dropped"),
	 LEAVES(ERROR4(11, 1, v4_container_one, v4_server,
		       UDP(v4_server, 53, v4_container_one, 25000, .fragment = LATER_FRAGMENT))),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "an error in fragments itself",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53),
			.fragment = FIRST_FRAGMENT))},
	{.says = "an error about an error",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host,
			ICMP(IPPROTO_ICMP, 3, 3, v4_host, v4_server, 25000)))},
	{.says = "an ICMP message that is no error: redirect",
	 ARRIVES(ERROR4(5, 1, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53)))},
	{.says = "an error about a protocol that is not translated",
	 ARRIVES(ERROR4(3, 2, ROUTER4, v4_host,
			{.protocol = 47, .from = v4_host, .to = v4_server, .payload = 30}))},
	{.says = "an error that quotes the wrong version of IP",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host,
			UDP(v4_host, 25000, v4_server, 53, .ip_version = 6)))},
	{.says = "an error that quotes an IPv4 header of less than 20 bytes",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53, .ihl = 4)))},
	{.says = "an error that quotes a routing header with segments left",
	 ARRIVES(ERROR6(
		 3, 0, ROUTER6, v6_host,
		 UDP(v6_host, 25000, v6_server, 53, .extensions = "r", .segments_left = 1)))},
	{.says = "an error addressed to another host's MAC",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53),
			.to_mac = MAC_FOREIGN))},
	{.says = "an error in a VLAN",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53), .vlan = true))},
};

#define DIRECT_FLOW \
	.holds = {DIRECT(ANSWERED, IPPROTO_UDP, v4_client, 5000, v4_container_one, 80, \
			 .owner = ONE)}

static const struct row flowless_rows[] = {
	{IN_BOTH_FAMILIES("a masqueraded container's error about no flow"),
	 LEAVES(ERROR4(3, 3, v4_container_one, v4_server,
		       UDP(v4_server, 53, v4_container_one, 25000))),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "one of a container that is not masqueraded",
	 LEAVES(ERROR4(3, 3, v4_container_quiet, v4_server,
		       UDP(v4_server, 53, v4_container_quiet, 25000)))},
	{.says = "one to the container's own subnet",
	 DELIVERED(ERROR4(3, 3, v4_container_one, v4_stranger,
			  UDP(v4_stranger, 53, v4_container_one, 25000)))},
	{.says = "one from outside",
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53)))},
	{.says = "one from outside, on its way to a container",
	 DELIVERED(ERROR4(3, 3, ROUTER4, v4_container_one,
			  UDP(v4_container_one, 25000, v4_server, 53)))},
	{.says = "a flow of an older generation does not count, inwards",
	 .given = given_flows,
	 AFTER(fixture_add_again, ONE),
	 ARRIVES(ERROR4(3, 3, ROUTER4, v4_host, UDP(v4_host, 25000, v4_server, 53)))},
	{.says = "nor outwards",
	 .given = given_flows,
	 AFTER(fixture_add_again, ONE),
	 LEAVES(ERROR4(3, 3, v4_container_one, v4_server,
		       UDP(v4_server, 53, v4_container_one, 25000))),
	 DROPPED_AS("drop_untranslatable")},
	{.says = "to a client that reached the container directly: untouched",
	 DIRECT_FLOW,
	 LEAVES(ERROR4(3, 3, v4_container_one, v4_client,
		       UDP(v4_client, 5000, v4_container_one, 80)))},
	{.says = "and an error of that client",
	 DIRECT_FLOW,
	 ARRIVES(ERROR4(3, 3, v4_client, v4_container_one,
			UDP(v4_container_one, 80, v4_client, 5000)))},
	{.says = "towards an unclassified interface",
	 .given = given_flows,
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_server_vpn,
				  UDP(v4_server_vpn, 53, v4_container_one, 25000))),
	 DROPPED_AS("drop_unclassified_interface")},
	{.says = "there too if it quotes a packet to another machine of that network",
	 .given = given_flows,
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_server_vpn,
				  UDP(v4_server_vpn, 53, "172.16.0.81", 25000))),
	 DROPPED_AS("drop_unclassified_interface")},
	{.says = "a container's error about a received packet passes its veth untouched",
	 .given = given_flows,
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_server,
				  UDP(v4_server, 53, v4_container_one, 25000)))},
};

static void given_mapped_tcp(void)
{
	static const struct known_flow mapped = {"", MAPPED_FLOW(4, IPPROTO_TCP, 50123)};
	static const struct known_flow left = {"", LEFT_FLOW(6, IPPROTO_TCP, 20777, 443)};

	put_flow(&mapped);
	put_flow(&left);
}

/* A firewall that rejects a packet answers in the receiver's name. */
static const struct row rejected_rows[] = {
	{.says = "the firewall's RST in the name of a container, to a client",
	 .given = given_mapped_tcp,
	 .flows_unchecked = true,
	 OF_THE_HOST(LEAVES(TCP(v4_container_one, 80, v4_client, 50123, RST | ACK))),
	 .out = TCP(v4_host, 8080, v4_client, 40000, RST | ACK)},
	{.says = "and to a server over IPv6",
	 .given = given_mapped_tcp,
	 .flows_unchecked = true,
	 AS(v6_host, 20777,
	    OF_THE_HOST(LEAVES(TCP(v6_container_one, 25000, v6_server, 443, RST | ACK))))},
	{.says = "an RST of the host itself from a published port",
	 OF_THE_HOST(LEAVES(TCP(v4_host, 8080, v4_client, 40000, RST)))},
	{.says = "the firewall's RST in the name of a server, to a container",
	 .given = given_mapped_tcp,
	 OF_THE_HOST(DELIVERED(TCP(v6_server, 443, v6_container_one, 25000, RST | ACK)))},
};

static void given_routed_masqueraded(void)
{
	static const struct known_flow left = {
		"",    V4,          IPPROTO_UDP, FLOW_MASQUERADE,     v4_container_one,
		25000, "10.20.0.1", 25000,       v4_container_routed, 50,
		50};

	put_flow(&left);
}

static const struct row neighbour_error_rows[] = {
	{IN_BOTH_FAMILIES(
		 "another container on the bridge connects to a mapped port where nobody listens"),
	 MAPPED_TO(v4_container_one, 80,
		   SENT_BY(VETH_TWO, UDP(v4_container_two, 5000, v4_host, 8080)))},
	{.then = "the switched error is lifted into the IP stack",
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_container_two,
				  UDP(v4_container_two, 5000, v4_container_one, 80),
				  .to_mac = MAC_CONTAINER_TWO)),
	 .out = ERROR4(3, 3, v4_container_one, v4_container_two,
		       UDP(v4_container_two, 5000, v4_container_one, 80), .to_mac = MAC_BRIDGE),
	 .counts = {"lifted_reply"}},
	{.then = "and gets the host's address at the bridge's egress",
	 DELIVERED(ERROR4(3, 3, v4_container_one, v4_container_two,
			  UDP(v4_container_two, 5000, v4_container_one, 80))),
	 .out = ERROR4(3, 3, v4_host, v4_container_two, UDP(v4_container_two, 5000, v4_host, 8080)),
	 .counts = {"rewritten_error"}},
	{.then = "the client's own error about the reply, at its veth",
	 SENT_BY(VETH_TWO, ERROR4(3, 3, v4_container_two, v4_host,
				  UDP(v4_host, 8080, v4_container_two, 5000))),
	 .out = ERROR4(3, 3, v4_container_two, v4_container_one,
		       UDP(v4_container_one, 80, v4_container_two, 5000)),
	 .counts = {"rewritten_error"}},
	{.says = "an error about a direct connection on the bridge stays switched",
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_container_two,
				  UDP(v4_container_two, 5000, v4_container_one, 80),
				  .to_mac = MAC_CONTAINER_TWO))},
	{.says = "a container that this plugin did not set up connects to a mapped port",
	 MAPPED_TO(v4_container_one, 80, CROSSES_BRIDGE(UDP(v4_stranger, 5000, v4_host, 8080)))},
	{.then = "its error about the reply, at the bridge",
	 CROSSES_BRIDGE(ERROR4(3, 3, v4_stranger, v4_host, UDP(v4_host, 8080, v4_stranger, 5000))),
	 .out = ERROR4(3, 3, v4_stranger, v4_container_one,
		       UDP(v4_container_one, 80, v4_stranger, 5000)),
	 .counts = {"rewritten_error"}},
	{.says = "hairpin to a mapped port where nobody listens",
	 MAPPED_TO(v4_container_one, 80,
		   SENT_BY(VETH_ONE, UDP(v4_container_one, 25000, v4_host, 8080)))},
	{.then = "gets the bridge's address",
	 AS(v4_bridge, 25000, DELIVERED(UDP(v4_container_one, 25000, v4_container_one, 80))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.then = "its error to the bridge, at its veth",
	 SENT_BY(VETH_ONE, ERROR4(3, 3, v4_container_one, v4_bridge,
				  UDP(v4_bridge, 25000, v4_container_one, 80))),
	 .out = ERROR4(3, 3, v4_container_one, v4_container_one,
		       UDP(v4_container_one, 25000, v4_container_one, 80)),
	 .counts = {"rewritten_error"}},
	{.then = "and at the bridge's egress",
	 DELIVERED(ERROR4(3, 3, v4_container_one, v4_container_one,
			  UDP(v4_container_one, 25000, v4_container_one, 80))),
	 .out = ERROR4(3, 3, v4_host, v4_container_one,
		       UDP(v4_container_one, 25000, v4_host, 8080)),
	 .counts = {"rewritten_error"}},
	{.says = "a container connects to one of another network directly",
	 SENT_BY(VETH_ONE, UDP(v4_container_one, 25000, v4_container_routed, 50)),
	 .flows = {THIS_DIRECT(NEW)}},
	{.then = "and is masqueraded there",
	 AS("10.20.0.1", 25000,
	    DELIVERED_BY(VETH_ROUTED, UDP(v4_container_one, 25000, v4_container_routed, 50))),
	 .adds = THIS_MASQUERADED(NEW)},
	{.then = "that one's error is translated at its veth",
	 SENT_BY(VETH_ROUTED, ERROR4(3, 3, v4_container_routed, "10.20.0.1",
				     UDP("10.20.0.1", 25000, v4_container_routed, 50))),
	 .out = ERROR4(3, 3, v4_container_routed, v4_container_one,
		       UDP(v4_container_one, 25000, v4_container_routed, 50)),
	 .counts = {"rewritten_error"}},
	{.then = "and passes the bridge's egress",
	 DELIVERED(ERROR4(3, 3, v4_container_routed, v4_container_one,
			  UDP(v4_container_one, 25000, v4_container_routed, 50)))},
	{.says = "also without the direct flow, which may have been pushed out",
	 .given = given_routed_masqueraded,
	 DELIVERED(ERROR4(3, 3, v4_container_routed, v4_container_one,
			  UDP(v4_container_one, 25000, v4_container_routed, 50)))},
	{.says = "a container of another network connects to a mapped port",
	 MAPPED_TO(v4_container_one, 80,
		   SENT_BY(VETH_ROUTED, UDP(v4_container_routed, 5000, v4_host, 8080)))},
	{.then = "its error about the answer is rewritten at its veth",
	 SENT_BY(VETH_ROUTED, ERROR4(3, 3, v4_container_routed, v4_host,
				     UDP(v4_host, 8080, v4_container_routed, 5000))),
	 .out = ERROR4(3, 3, v4_container_routed, v4_container_one,
		       UDP(v4_container_one, 80, v4_container_routed, 5000)),
	 .counts = {"rewritten_error"}},
	{.then = "and passes the bridge's egress, as its requests do",
	 DELIVERED(ERROR4(3, 3, v4_container_routed, v4_container_one,
			  UDP(v4_container_one, 80, v4_container_routed, 5000)))},
};

void error_rows(void)
{
	all_flows();
	ROWS_RUN_GIVEN(given_flows, foreign_rows);
	ROWS_RUN(flowless_rows);
	ROWS_RUN(rejected_rows);
	ROWS_RUN(neighbour_error_rows);
}

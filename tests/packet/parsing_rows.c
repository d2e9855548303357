/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* parsing_rows.c - packets that are not understood pass untouched. */
#include <string.h>

#include "row.h"

#define MAPPED_SYN(...) TCP(v4_client, 40000, v4_host, 8080, SYN, __VA_ARGS__)
#define MAPPED_SYN6(...) TCP(v6_client, 40000, v6_host, 8080, SYN, __VA_ARGS__)
#define MAPPED_DATAGRAM(...) UDP(v4_client, 5000, v4_host, 8080, __VA_ARGS__)
#define MAPPED_DATAGRAM6(...) UDP(v6_client, 5000, v6_host, 8080, __VA_ARGS__)

static const struct row ethernet_rows[] = {
	{.says = "a tagged frame", ARRIVES(MAPPED_SYN(.vlan = true))},
	{.says = "a tagged frame at egress",
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, .vlan = true))},
#define NESTED_TAGS .verdict = DROPPED, .counts = {"drop_nested_tags"}
	/* The kernel removes the outermost tag before tc; frames of BPF_PROG_TEST_RUN lack it. */
	{.says = "a tag inside a priority tag is dropped: the kernel would remove it later",
	 ARRIVES(MAPPED_SYN(.priority_tags = 1)),
	 NESTED_TAGS},
	{.says = "so are three", ARRIVES(MAPPED_SYN6(.priority_tags = 3)), NESTED_TAGS},
	{.says = "and twenty", ARRIVES(MAPPED_SYN(.priority_tags = 20)), NESTED_TAGS},
	{.says = "a VLAN tag inside three others passes: it goes to the VLAN device",
	 ARRIVES(MAPPED_SYN(.priority_tags = 3, .vlan = true))},
	{.says = "from the bridge, a tag inside a priority tag",
	 CROSSES_BRIDGE(TCP(v4_stranger, 25000, v4_host, 8080, SYN, .priority_tags = 1)),
	 NESTED_TAGS},
	{.says = "from a container, a tag inside a priority tag",
	 SENT_BY(VETH_ONE, TCP(v4_container_one, 25000, v4_server, 443, SYN, .priority_tags = 1)),
	 NESTED_TAGS},
	{.says = "from a container, a VLAN tag too",
	 SENT_BY(VETH_ONE, TCP(v4_container_one, 25000, v4_server, 443, SYN, .vlan = true)),
	 NESTED_TAGS},
	{IN_BOTH_FAMILIES("a frame for another machine"),
	 ARRIVES(MAPPED_SYN(.to_mac = MAC_FOREIGN))},
	{.says = "a broadcast frame", ARRIVES(MAPPED_DATAGRAM(.to_mac = MAC_BROADCAST))},
	{.says = "a multicast frame", ARRIVES(MAPPED_DATAGRAM(.to_mac = MAC_MULTICAST))},
	{.says = "IPv4 under another ethertype", ARRIVES(MAPPED_SYN(.ethertype = 0x88b5))},
	{.says = "IPv4 under the ethertype of IPv6",
	 ARRIVES(MAPPED_SYN(.ethertype = 0x86dd, .payload = 60))},
	{.says = "IPv6 under the ethertype of IPv4", ARRIVES(MAPPED_SYN6(.ethertype = 0x0800))},
};

static const struct row address_rows[] = {
	{IN_BOTH_FAMILIES("multicast"), ARRIVES(UDP(v4_client, 5000, v4_multicast, 8080))},
	{.says = "limited broadcast", ARRIVES(UDP(v4_client, 5000, "255.255.255.255", 8080))},
	{.says = "a multicast source, for which the route lookup fails",
	 ARRIVES(TCP("ff05::1", 40000, v6_elsewhere, 8080, SYN))},
	{.says = "from a link-local address", ARRIVES(TCP("fe80::1", 40000, v6_host, 8080, SYN))},
	{.says = "to a link-local address",
	 ARRIVES(TCP(v6_client, 40000, "fe80::ff:fe00:10", 8080, SYN))},
	{.says = "an IPv4-mapped address on the wire is not IPv4",
	 ARRIVES(TCP(v6_client, 40000, "::ffff:192.0.2.1", 8080, SYN))},
	{.says = "nor is an IPv4-mapped source",
	 LEAVES(TCP("::ffff:10.10.0.2", 25000, v6_server, 443, SYN))},
	{.says = "a container's TCP to be segmented, without a total length (BIG TCP), though it is"
		 " short",
	 LEAVES(TCP(v4_container_one, 25000, v4_server, 443, SYN, .without_ip_length = true,
		    .segment_size = 1400)),
	 .out = TCP(v4_host, 25000, v4_server, 443, SYN, .without_ip_length = true),
	 .flows = {THIS_MASQUERADED(NEW)}},
	{.says = "to the subnet's broadcast address",
	 ARRIVES(UDP(v4_client, 5000, "192.0.2.255", 8080, .to_mac = MAC_BROADCAST))},
	{IN_BOTH_FAMILIES("to a loopback address from the wire"),
	 ARRIVES(TCP(v4_client, 40000, "127.0.0.1", 8080, SYN))},
};

static const struct row header_rows[] = {
	{.says = "IP version 5", ARRIVES(MAPPED_SYN(.ip_version = 5))},
	{.says = "IP version 6 in an IPv4 header",
	 ARRIVES(MAPPED_SYN(.ip_version = 6, .payload = 60))},
	{.says = "IP version 4 in an IPv6 header", ARRIVES(MAPPED_SYN6(.ip_version = 4))},
	{.says = "an IPv4 header of 16 bytes", ARRIVES(MAPPED_SYN(.ihl = 4))},
	{.says = "an IPv4 header of 0 bytes",
	 ARRIVES(MAPPED_SYN(.ihl = 0, .ip_version = 4, .ip_length_off = -30))},
	{.says = "an IPv4 header longer than the packet", ARRIVES(MAPPED_SYN(.ihl = 15))},
	{IN_BOTH_FAMILIES("a length beyond the frame"), ARRIVES(MAPPED_SYN(.ip_length_off = 1))},
	{IN_BOTH_FAMILIES("a length that cuts the TCP header off"),
	 ARRIVES(MAPPED_SYN(.ip_length_off = -8))},
	{.says = "a payload length of 0", ARRIVES(MAPPED_SYN6(.ip_length_off = -27))},
	{.says = "a TCP data offset of 4", ARRIVES(MAPPED_SYN(.data_offset = 4))},
	{.says = "a TCP data offset beyond the packet", ARRIVES(MAPPED_SYN(.data_offset = 15))},
	{.says = "a UDP length of 7", ARRIVES(MAPPED_DATAGRAM(.udp_length_off = -8))},
	{.says = "a UDP length beyond the packet", ARRIVES(MAPPED_DATAGRAM(.udp_length_off = 1))},
	{.says = "TCP in IPv6 without a next header", ARRIVES(MAPPED_SYN6(.extensions = "n"))},
	{.says = "a routing header with segments left",
	 ARRIVES(MAPPED_SYN6(.extensions = "r", .segments_left = 1))},
	{.says = "more extension headers than are understood",
	 ARRIVES(MAPPED_SYN6(.extensions = "dddddddddd"))},
	{.says = "another protocol to the host",
	 AT(FROM_UPLINK, UPLINK),
	 .in = {.protocol = 47, .from = v4_client, .to = v4_host, .payload = 40}},
	{.says = "ICMPv6 in IPv4", ARRIVES(PING6(v4_client, v4_container_one, 5))},
	{.says = "ICMP in IPv6", ARRIVES(PING4(v6_client, v6_container_one, 5))},
	{.says = "an ICMP error to the host",
	 ARRIVES(ICMP(IPPROTO_ICMP, 3, 1, v4_client, v4_host, 0, .payload = 28))},
};

/* Every length from a bare Ethernet header to all but the last byte. */
static void run_truncated(const struct packet *packet, enum hook hook, enum device device,
			  bool may_drop)
{
	struct frame whole, got, cut;

	row_build(&whole, packet, hook, device);
	for (size_t length = 14; length < whole.length; length++) {
		int verdict;

		fixture_reset();
		cut = whole;
		cut.length = length;
		got = cut;
		verdict = fixture_run(hook, device, hook == TO_UPLINK ? BRIDGE : device, &got);
		if (verdict < FIXTURE_REFUSED)
			continue; /* the kernel takes no frame as short as that */
		if (verdict == 2 ? !may_drop : verdict != -1 || !frame_equal(&cut, &got)) {
			row_fail("cut to %zu of %zu bytes: verdict %d, the packet is%s changed",
				 length, whole.length, verdict,
				 frame_equal(&cut, &got) ? " not" : "");
			return;
		}
	}
}

struct truncation {
	const char *says;
	enum hook hook;
	enum device device;
	bool may_drop; /* rather than send it out untranslated */
	struct packet packet;
};

static const struct truncation truncations[] = {
	{"truncated at every byte: TCP to a mapped port", FROM_UPLINK, UPLINK, false,
	 MAPPED_SYN(.ipv4_options = 8)},
	{"truncated at every byte: UDP to a mapped port", FROM_UPLINK, UPLINK, false,
	 MAPPED_DATAGRAM(.payload = 20)},
	{"truncated at every byte: TCP to a mapped port, IPv6", FROM_UPLINK, UPLINK, false,
	 MAPPED_SYN6(.extensions = "hD")},
	{"truncated at every byte: UDP to a mapped port, IPv6", FROM_UPLINK, UPLINK, false,
	 MAPPED_DATAGRAM6(.payload = 20)},
	{"truncated at every byte: TCP of another container on the bridge", FROM_CONTAINER,
	 VETH_TWO, false, TCP(v4_container_two, 40000, v4_host, 8080, SYN)},
	{"truncated at every byte: UDP of a container that this plugin did not set up", FROM_BRIDGE,
	 BRIDGE, false, UDP(v6_stranger, 40000, v6_host, 8080)},
	{"truncated at every byte: masqueraded TCP", TO_UPLINK, UPLINK, true,
	 TCP(v4_container_one, 40000, v4_server, 443, SYN)},
	{"truncated at every byte: masqueraded UDP, IPv6", TO_UPLINK, UPLINK, true,
	 UDP(v6_container_one, 40000, v6_server, 443, .extensions = "hrd")},
	{"truncated at every byte: a masqueraded ping", TO_UPLINK, UPLINK, true,
	 PING4(v4_container_one, v4_server, 9)},
	{"truncated at every byte: a masqueraded ping, IPv6", TO_UPLINK, UPLINK, true,
	 PING6(v6_container_one, v6_server, 9)},
};

void parsing_rows(void)
{
	ROWS_RUN(ethernet_rows);
	ROWS_RUN(address_rows);
	ROWS_RUN(header_rows);
	host_close_sockets();
	for (size_t i = 0; i < sizeof(truncations) / sizeof(truncations[0]); i++) {
		const struct truncation *truncation = &truncations[i];

		row_begin(truncation->says);
		run_truncated(&truncation->packet, truncation->hook, truncation->device,
			      truncation->may_drop);
		row_end();
	}
}

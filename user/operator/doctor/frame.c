/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* frame.c - an Ethernet frame for a probe. */
#include "operator/doctor/frame.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <string.h>

#define HOP_LIMIT 64
#define WINDOW 64240

static uint32_t add_words(uint32_t sum, const uint8_t *bytes, size_t length)
{
	for (size_t i = 0; i < length; i += 2)
		sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
	return sum;
}

static uint16_t fold(uint32_t sum)
{
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return htons((uint16_t)~sum);
}

static uint16_t sum_of(const uint8_t *bytes, size_t length)
{
	return fold(add_words(0, bytes, length));
}

/* With the pseudo header. The twelve bytes before an IPv4 address here are the same of both: two
 * times 0xffff, which is no summand. */
static uint16_t transport_sum(const uint8_t *at, size_t length, const struct probe_packet *packet)
{
	uint32_t sum = add_words(packet->protocol + (uint32_t)length, at, length);

	sum = add_words(sum, packet->source, CNI_ADDRESS_SIZE);
	return fold(add_words(sum, packet->destination, CNI_ADDRESS_SIZE));
}

static size_t put_tcp(uint8_t *at, const struct probe_packet *packet)
{
	struct tcphdr tcp = {.source = htons(packet->source_port),
			     .dest = htons(packet->destination_port),
			     .seq = htonl(1),
			     .doff = sizeof(tcp) / 4,
			     .syn = !packet->is_reset,
			     .rst = packet->is_reset,
			     .window = htons(WINDOW)};

	if (packet->is_reset)
		tcp.seq = htonl(2);
	memcpy(at, &tcp, sizeof(tcp));
	tcp.check = transport_sum(at, sizeof(tcp), packet);
	memcpy(at, &tcp, sizeof(tcp));
	return sizeof(tcp);
}

static size_t put_udp(uint8_t *at, const struct probe_packet *packet)
{
	struct udphdr udp = {.source = htons(packet->source_port),
			     .dest = htons(packet->destination_port),
			     .len = htons(sizeof(udp))};

	memcpy(at, &udp, sizeof(udp));
	udp.check = transport_sum(at, sizeof(udp), packet);
	if (!udp.check)
		udp.check = 0xffff;
	memcpy(at, &udp, sizeof(udp));
	return sizeof(udp);
}

static size_t put_transport(uint8_t *at, const struct probe_packet *packet)
{
	return packet->protocol == PROTOCOL_TCP ? put_tcp(at, packet) : put_udp(at, packet);
}

static size_t put_ipv4(uint8_t *at, const struct probe_packet *packet)
{
	struct iphdr ip = {.version = 4, .ihl = 5, .ttl = HOP_LIMIT, .protocol = packet->protocol};
	size_t length = sizeof(ip) + put_transport(at + sizeof(ip), packet);

	ip.tot_len = htons((uint16_t)length);
	memcpy(&ip.saddr, packet->source + 12, 4);
	memcpy(&ip.daddr, packet->destination + 12, 4);
	memcpy(at, &ip, sizeof(ip));
	ip.check = sum_of(at, sizeof(ip));
	memcpy(at, &ip, sizeof(ip));
	return length;
}

static size_t put_ipv6(uint8_t *at, const struct probe_packet *packet)
{
	struct ip6_hdr ip = {
		.ip6_flow = htonl(6U << 28), .ip6_nxt = packet->protocol, .ip6_hlim = HOP_LIMIT};
	size_t length = put_transport(at + sizeof(ip), packet);

	ip.ip6_plen = htons((uint16_t)length);
	memcpy(&ip.ip6_src, packet->source, CNI_ADDRESS_SIZE);
	memcpy(&ip.ip6_dst, packet->destination, CNI_ADDRESS_SIZE);
	memcpy(at, &ip, sizeof(ip));
	return sizeof(ip) + length;
}

uint32_t frame_make(uint8_t frame[FRAME_MAX], const struct probe_packet *packet,
		    const uint8_t destination[LINK_MAC_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(packet->source);
	struct ethhdr header = {.h_source = {0x02, 0, 0, 0, 0, 0x01},
				.h_proto = htons(ipv4 ? ETH_P_IP : ETH_P_IPV6)};

	memset(frame, 0, FRAME_MAX);
	memcpy(header.h_dest, destination, LINK_MAC_SIZE);
	memcpy(frame, &header, sizeof(header));
	return (uint32_t)(sizeof(header) + (ipv4 ? put_ipv4(frame + sizeof(header), packet)
						 : put_ipv6(frame + sizeof(header), packet)));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * raw.h - frames that are built here instead of by an IP stack: checksums, headers, and the
 * packet socket that sends them.
 */
#pragma once

#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../sums.h"
#include "tool.h"

/* In network byte order */
static inline uint16_t checksum_finish(uint32_t sum)
{
	return htons((uint16_t)~checksum_fold(sum));
}

/* The pseudo headers of RFC 9293 3.1 and of RFC 8200 8.1 differ in form, not in their sum. */
static inline uint16_t transport_checksum(const struct sockaddr_in6 *source,
					  const struct sockaddr_in6 *destination, int protocol,
					  const void *segment, size_t size)
{
	size_t skip = is_ipv4(source) ? 12 : 0;
	uint32_t sum = (uint32_t)protocol + (uint32_t)size;

	sum = checksum_add(sum, &source->sin6_addr.s6_addr[skip], 16 - skip);
	sum = checksum_add(sum, &destination->sin6_addr.s6_addr[skip], 16 - skip);
	return checksum_finish(checksum_add(sum, segment, size));
}

/* An IPv4 address in network byte order */
static inline uint32_t parse_ipv4(const char *text)
{
	struct sockaddr_in6 address = parse_address(text, 0);

	if (!is_ipv4(&address))
		die_usage();
	return ipv4_of(&address);
}

static inline void parse_mac(const char *text, uint8_t *mac)
{
	if (!text || sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &mac[0], &mac[1], &mac[2],
			    &mac[3], &mac[4], &mac[5]) != ETH_ALEN)
		die_usage();
}

/* A header from the interface's own MAC to `destination_mac`, without its type. */
static inline struct ether_header make_ethernet(const char *interface, const char *destination_mac)
{
	struct ether_header header = {0};
	struct ifreq request = {0};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (!interface)
		die_usage();
	parse_mac(destination_mac, header.ether_dhost);
	snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
	if (fd < 0 || ioctl(fd, SIOCGIFHWADDR, &request))
		die(interface);
	memcpy(header.ether_shost, request.ifr_hwaddr.sa_data, ETH_ALEN);
	close(fd);
	return header;
}

static inline uint16_t ether_type_of(const struct sockaddr_in6 *address)
{
	return htons(is_ipv4(address) ? ETHERTYPE_IP : ETHERTYPE_IPV6);
}

/* A header without options for a payload of `size` bytes. A caller that changes a field has to
 * compute the checksum again. */
static inline struct iphdr make_ipv4(const struct sockaddr_in6 *source,
				     const struct sockaddr_in6 *destination, int protocol,
				     size_t size)
{
	struct iphdr ip = {
		.version = 4,
		.ihl = 5,
		.ttl = 64,
		.protocol = (uint8_t)protocol,
		.tot_len = htons((uint16_t)(sizeof(ip) + size)),
		.saddr = ipv4_of(source),
		.daddr = ipv4_of(destination),
	};

	ip.check = checksum_finish(checksum_add(0, &ip, sizeof(ip)));
	return ip;
}

static inline struct ip6_hdr make_ipv6(const struct sockaddr_in6 *source,
				       const struct sockaddr_in6 *destination, int protocol,
				       size_t size)
{
	struct ip6_hdr ip = {.ip6_src = source->sin6_addr, .ip6_dst = destination->sin6_addr};

	ip.ip6_flow = htonl(6u << 28);
	ip.ip6_plen = htons((uint16_t)size);
	ip.ip6_nxt = (uint8_t)protocol;
	ip.ip6_hlim = 64;
	return ip;
}

/* A packet socket bound to the interface. It receives frames of this Ethernet type, host order;
 * with 0 it only sends. */
static inline int open_packet_socket(const char *interface, uint16_t type)
{
	struct sockaddr_ll local = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(type),
		.sll_ifindex = (int)if_nametoindex(interface),
	};
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	if (fd < 0 || !local.sll_ifindex || bind(fd, (struct sockaddr *)&local, sizeof(local)))
		die(interface);
	return fd;
}

/* From the Ethernet header on; PACKET_VNET_HDR comes before it. */
static inline void send_frame(int fd, const void *frame, size_t size)
{
	if (send(fd, frame, size, 0) != (ssize_t)size)
		die("sending a frame");
}

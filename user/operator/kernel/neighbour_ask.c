/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* neighbour_ask.c - asks at an interface who has an address. */
#include "operator/kernel/neighbour_ask.h"

#include <arpa/inet.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/icmp6.h>
#include <netinet/if_ether.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/clock.h"

#define HOPS 255 /* an answer to what came by a router would be refused (RFC 4861) */

/* "Who has" of ARP, with the address 0.0.0.0 for the sender (RFC 5227). */
static bool ask_arp(int fd, const struct link *link, const uint8_t *address)
{
	struct sockaddr_ll all = {.sll_family = AF_PACKET,
				  .sll_protocol = htons(ETH_P_ARP),
				  .sll_ifindex = (int)link->ifindex,
				  .sll_halen = ETH_ALEN,
				  .sll_addr = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
	struct ether_arp question = {.ea_hdr = {.ar_hrd = htons(ARPHRD_ETHER),
						.ar_pro = htons(ETH_P_IP),
						.ar_hln = ETH_ALEN,
						.ar_pln = 4,
						.ar_op = htons(ARPOP_REQUEST)}};

	memcpy(question.arp_sha, link->mac, ETH_ALEN);
	memcpy(question.arp_tpa, address + 12, 4);
	return !bind(fd, (struct sockaddr *)&all, sizeof(all)) &&
	       sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&all, sizeof(all)) >=
		       0;
}

struct solicitation {
	struct nd_neighbor_solicit head;
	struct nd_opt_hdr option;
	uint8_t mac[LINK_MAC_SIZE];
};

static bool listen_for_advertisements(int fd, const struct link *link)
{
	struct icmp6_filter filter;
	int hops = HOPS;

	ICMP6_FILTER_SETBLOCKALL(&filter);
	ICMP6_FILTER_SETPASS(ND_NEIGHBOR_ADVERT, &filter);
	return !setsockopt(fd, IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof(filter)) &&
	       !setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops)) &&
	       !setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, link->name, sizeof(link->name));
}

static bool ask_nd(int fd, const struct link *link, const uint8_t *address)
{
	/* The address's group, of which its owner is a member: ff02::1:ff and its last 3 bytes. */
	struct sockaddr_in6 group = {
		.sin6_family = AF_INET6,
		.sin6_scope_id = link->ifindex,
		.sin6_addr = {.s6_addr = {0xff, 0x02, [11] = 1, 0xff, address[13], address[14],
					  address[15]}}};
	struct solicitation question = {
		.head = {.nd_ns_hdr = {.icmp6_type = ND_NEIGHBOR_SOLICIT}},
		.option = {.nd_opt_type = ND_OPT_SOURCE_LINKADDR, .nd_opt_len = 1}};

	memcpy(&question.head.nd_ns_target, address, CNI_ADDRESS_SIZE);
	memcpy(question.mac, link->mac, LINK_MAC_SIZE);
	return listen_for_advertisements(fd, link) &&
	       sendto(fd, &question, sizeof(question), 0, (struct sockaddr *)&group,
		      sizeof(group)) >= 0;
}

int neighbour_ask(const struct link *link, const uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4 = cni_address_is_ipv4(address);
	int flags = SOCK_CLOEXEC | SOCK_NONBLOCK;
	/* ARP's gets nothing before it is bound, as it has no protocol. */
	int fd = ipv4 ? socket(AF_PACKET, SOCK_DGRAM | flags, 0)
		      : socket(AF_INET6, SOCK_RAW | flags, IPPROTO_ICMPV6);

	if (fd >= 0 && !(ipv4 ? ask_arp : ask_nd)(fd, link, address)) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static bool read_arp(const uint8_t *bytes, size_t length, const uint8_t *address, uint8_t *mac)
{
	struct ether_arp answer;

	if (length < sizeof(answer))
		return false;
	memcpy(&answer, bytes, sizeof(answer));
	memcpy(mac, answer.arp_sha, LINK_MAC_SIZE);
	return answer.ea_hdr.ar_op == htons(ARPOP_REPLY) &&
	       !memcmp(answer.arp_spa, address + 12, 4);
}

/* The option with the MAC is the only one that there is. */
static bool read_nd(const uint8_t *bytes, size_t length, const uint8_t *address, uint8_t *mac)
{
	struct nd_neighbor_advert head;
	struct nd_opt_hdr option;

	if (length < sizeof(head) + sizeof(option) + LINK_MAC_SIZE)
		return false;
	memcpy(&head, bytes, sizeof(head));
	memcpy(&option, bytes + sizeof(head), sizeof(option));
	memcpy(mac, bytes + sizeof(head) + sizeof(option), LINK_MAC_SIZE);
	return option.nd_opt_type == ND_OPT_TARGET_LINKADDR && option.nd_opt_len == 1 &&
	       !memcmp(&head.nd_na_target, address, CNI_ADDRESS_SIZE);
}

bool neighbour_answer(int question, const uint8_t address[CNI_ADDRESS_SIZE], int milliseconds,
		      uint8_t mac[LINK_MAC_SIZE])
{
	struct pollfd waiting = {.fd = question, .events = POLLIN};
	int64_t end = clock_ms() + milliseconds;
	bool ipv4 = cni_address_is_ipv4(address), found = false;

	do {
		uint8_t bytes[256];
		int64_t left = end - clock_ms();
		ssize_t length = poll(&waiting, 1, left > 0 ? (int)left : 0) == 1
					 ? recv(question, bytes, sizeof(bytes), 0)
					 : -1;

		if (length < 0)
			return false;
		found = (ipv4 ? read_arp : read_nd)(bytes, (size_t)length, address, mac);
	} while (!found);
	return true;
}

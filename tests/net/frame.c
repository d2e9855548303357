/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.c - sends one frame as it is given: no stack builds it, none refuses it. One of TCP over
 * IPv4 may be left to the kernel to segment.
 */
#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define MAX_FRAME 1600

const char tool_usage[] =
	"frame INTERFACE HEX [SEGMENT-SIZE]: sends these bytes, from the Ethernet header on\n";

struct message {
	struct virtio_net_hdr segmentation;
	uint8_t bytes[MAX_FRAME];
};

static size_t parse_bytes(const char *text, uint8_t *bytes)
{
	size_t size = strlen(text) / 2;

	if (strlen(text) % 2 || size < ETH_HLEN || size > MAX_FRAME)
		die_usage();
	for (size_t i = 0; i < size; i++)
		if (sscanf(text + 2 * i, "%2hhx", &bytes[i]) != 1)
			die_usage();
	return size;
}

static void ask_for_segments(int fd, struct message *message, int size)
{
	const int yes = 1;

	if (setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &yes, sizeof(yes)))
		die("PACKET_VNET_HDR");
	message->segmentation = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr),
		.gso_size = (uint16_t)size,
		.csum_start = ETH_HLEN + sizeof(struct iphdr),
		.csum_offset = offsetof(struct tcphdr, check),
	};
}

int main(int argc, char **argv)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
	struct message message;
	const uint8_t *start = message.bytes;
	size_t size;
	int fd;

	if (argc < 3 || argc > 4)
		die_usage();
	size = parse_bytes(argv[2], message.bytes);
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || !to.sll_ifindex)
		die(argv[1]);
	if (argc == 4) {
		ask_for_segments(fd, &message, parse_number(argv[3], 1, MAX_FRAME));
		start = (uint8_t *)&message;
		size += offsetof(struct message, bytes);
	}
	if (sendto(fd, start, size, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)size)
		die("sendto");
	close(fd);
	return 0;
}

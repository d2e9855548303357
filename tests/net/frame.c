/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.c - sends one frame as it is given, past the IP stack. The kernel can segment a frame of
 * TCP over IPv4, and write a checksum at any place of any frame.
 */
#include <linux/virtio_net.h>
#include <netinet/tcp.h>
#include <stddef.h>

#include "raw.h"
#include "sockets.h"

#define MAX_FRAME 1600

const char tool_usage[] =
	"frame INTERFACE HEX [SEGMENT-SIZE | START FIELD]: sends these bytes, which begin with the"
	" Ethernet header. FIELD: where the checksum of all from START on belongs\n";

struct message {
	struct virtio_net_hdr work; /* left to the kernel */
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

static void request_segmentation(struct message *message, int size)
{
	message->work = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.gso_type = VIRTIO_NET_HDR_GSO_TCPV4,
		.hdr_len = ETH_HLEN + sizeof(struct iphdr) + sizeof(struct tcphdr),
		.gso_size = (uint16_t)size,
		.csum_start = ETH_HLEN + sizeof(struct iphdr),
		.csum_offset = offsetof(struct tcphdr, check),
	};
}

static void request_checksum(struct message *message, const char *start, const char *field)
{
	int first = parse_number(start, 0, MAX_FRAME),
	    place = parse_number(field, first, MAX_FRAME);

	message->work = (struct virtio_net_hdr){
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
		.csum_start = (uint16_t)first,
		.csum_offset = (uint16_t)(place - first),
	};
}

int main(int argc, char **argv)
{
	struct message message;
	const uint8_t *start = message.bytes;
	size_t size;
	int fd;

	if (argc < 3 || argc > 5)
		die_usage();
	size = parse_bytes(argv[2], message.bytes);
	fd = open_packet_socket(argv[1], 0);
	if (argc == 4)
		request_segmentation(&message, parse_number(argv[3], 1, MAX_FRAME));
	else if (argc == 5)
		request_checksum(&message, argv[3], argv[4]);
	if (argc > 3) {
		set_option(fd, SOL_PACKET, PACKET_VNET_HDR, 1);
		start = (uint8_t *)&message;
		size += offsetof(struct message, bytes);
	}
	send_frame(fd, start, size);
	close(fd);
	return 0;
}

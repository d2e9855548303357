/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * frame.c - sends one frame as it is given: no stack builds it, none refuses it.
 */
#define _GNU_SOURCE
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define MAX_FRAME 1600

const char tool_usage[] = "frame INTERFACE HEX: sends these bytes, from the Ethernet header on\n";

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

int main(int argc, char **argv)
{
	struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_halen = ETH_ALEN};
	uint8_t bytes[MAX_FRAME];
	size_t size;
	int fd;

	if (argc != 3)
		die_usage();
	size = parse_bytes(argv[2], bytes);
	to.sll_ifindex = (int)if_nametoindex(argv[1]);
	fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);
	if (fd < 0 || !to.sll_ifindex)
		die(argv[1]);
	if (sendto(fd, bytes, size, 0, (struct sockaddr *)&to, sizeof(to)) != (ssize_t)size)
		die("sendto");
	close(fd);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stream.c - numbered datagrams, many under way at a time, to somebody who echoes them: how
 * many are lost, and how many come back behind a later one.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define TOGETHER 8    /* sent at once */
#define UNDER_WAY 64  /* more are not sent before some are back: no queue can overflow */
#define PATIENCE 3000 /* milliseconds */

const char tool_usage[] = "stream ADDRESS PORT MILLISECONDS\n"
			  "     prints sent=N lost=N late=N\n";

struct stream {
	int fd;
	uint32_t sent;
	uint32_t received;
	uint32_t newest; /* the number behind the highest that came back */
	uint32_t late;
};

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_towards(const struct sockaddr_in6 *server)
{
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0), off = 0, size = 1 << 20;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	    connect(fd, (const struct sockaddr *)server, sizeof(*server)))
		die("socket");
	return fd;
}

static void send_some(struct stream *stream)
{
	for (int i = 0; i < TOGETHER && stream->sent - stream->newest < UNDER_WAY; i++) {
		if (send(stream->fd, &stream->sent, sizeof(stream->sent), 0) < 0)
			die("send");
		stream->sent++;
	}
}

static void receive_all(struct stream *stream)
{
	uint32_t number;

	while (recv(stream->fd, &number, sizeof(number), MSG_DONTWAIT) == sizeof(number)) {
		stream->received++;
		if (number < stream->newest)
			stream->late++;
		else
			stream->newest = number + 1;
	}
}

/* False: nothing has come for long. */
static bool await_some(const struct stream *stream)
{
	struct pollfd readable = {.fd = stream->fd, .events = POLLIN};

	return poll(&readable, 1, patience(PATIENCE)) > 0;
}

static void pause_shortly(void)
{
	struct timespec pause = {0, 2000000};

	nanosleep(&pause, NULL);
}

int main(int argc, char **argv)
{
	struct stream stream = {0};
	struct sockaddr_in6 server;
	long end;

	if (argc != 4)
		die_usage();
	server = parse_address(argv[1], parse_number(argv[2], 1, 65535));
	stream.fd = open_towards(&server);
	end = milliseconds() + parse_number(argv[3], 1, 600000);
	while (milliseconds() < end) {
		send_some(&stream);
		if (stream.sent - stream.newest == UNDER_WAY && !await_some(&stream))
			break;
		receive_all(&stream);
		pause_shortly();
	}
	while (stream.received < stream.sent && await_some(&stream))
		receive_all(&stream);
	printf("sent=%u lost=%u late=%u\n", stream.sent, stream.sent - stream.received,
	       stream.late);
	return stream.received != stream.sent;
}

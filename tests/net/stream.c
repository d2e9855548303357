/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stream.c - numbered datagrams, many in flight at a time, to an echo server: how many are lost,
 * and how many come back after a later one.
 */
#include <poll.h>

#include "sockets.h"

#define TOGETHER 8    /* sent at once */
#define UNDER_WAY 64  /* in flight at most, so that no queue overflows */
#define PATIENCE 3000 /* milliseconds */

const char tool_usage[] =
	"stream ADDRESS PORT MILLISECONDS [PAUSE]\n"
	"     PAUSE: milliseconds after every eight (default: 2); 0: as fast as they come back\n"
	"     prints sent=N lost=N late=N\n";

struct stream {
	int fd;
	uint32_t sent;
	uint32_t received;
	uint32_t newest; /* one more than the highest number that came back */
	uint32_t late;
};

static int open_towards(const struct sockaddr_in6 *server)
{
	int fd = open_dual_socket(SOCK_DGRAM, 0);

	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 1 << 20);
	if (connect_socket(fd, server))
		die("connect");
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

/* False: nothing arrived for PATIENCE milliseconds. */
static bool await_some(const struct stream *stream)
{
	struct pollfd readable = {.fd = stream->fd, .events = POLLIN};

	return poll(&readable, 1, patience(PATIENCE)) > 0;
}

int main(int argc, char **argv)
{
	struct stream stream = {0};
	struct sockaddr_in6 server;
	int pause;
	long end;

	if (argc != 4 && argc != 5)
		die_usage();
	pause = argc == 5 ? parse_number(argv[4], 0, 1000) : 2;
	server = parse_address(argv[1], parse_number(argv[2], 1, 65535));
	stream.fd = open_towards(&server);
	end = milliseconds_now() + parse_number(argv[3], 1, 600000);
	while (milliseconds_now() < end) {
		send_some(&stream);
		if (stream.sent - stream.newest == UNDER_WAY && !await_some(&stream))
			break;
		receive_all(&stream);
		if (pause)
			sleep_milliseconds(pause);
	}
	while (stream.received < stream.sent && await_some(&stream))
		receive_all(&stream);
	printf("sent=%u lost=%u late=%u\n", stream.sent, stream.sent - stream.received,
	       stream.late);
	return stream.received != stream.sent;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bulk.c - much data both ways, every byte of it known beforehand: what arrives damaged
 * with a checksum that says otherwise is noticed. TCP, and UDP in bursts that the kernel
 * cuts (UDP_SEGMENT) and joins again (UDP_GRO).
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define BUFFER_SIZE 65536
#define BURST 32 /* datagrams */

const char tool_usage[] =
	"bulk serve PORT [--background]\n"
	"bulk ask tcp|udp ADDRESS PORT [--bytes N] [--size N] [--plain] [--without-checksum]\n"
	"     [--pause MS] [--on-demand]\n"
	"     sends and gets back so many bytes and prints ok, or what was wrong. UDP: in\n"
	"     datagrams of --size, one system call each with --plain; --pause: in the middle\n"
	"     --on-demand: TCP; there and back in two halves, each of which waits for a line of\n"
	"     standard input; prints half when the first one is through\n";

struct options {
	long bytes;
	int size;
	int pause;
	bool background;
	bool plain;
	bool without_checksum;
	bool on_demand;
};

static _Noreturn void broken(const char *what, long where)
{
	printf("broken: %s at %ld\n", what, where);
	exit(1);
}

/* No two positions nearby are alike, nor do swapped words have the same sum. */
static uint8_t known_byte(long position)
{
	uint32_t word = (uint32_t)(position >> 2) * 2654435761u;

	return word >> 8 * (position & 3) & 0xff;
}

static void fill(uint8_t *buffer, size_t size, long position)
{
	for (size_t i = 0; i < size; i++)
		buffer[i] = known_byte(position + (long)i);
}

static bool is_known(const uint8_t *buffer, size_t size, long position)
{
	for (size_t i = 0; i < size; i++)
		if (buffer[i] != known_byte(position + (long)i))
			return false;
	return true;
}

static int open_socket(int type)
{
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC, 0), on = 1, off = 0, size = 4 << 20;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		die("socket");
	if (type == SOCK_DGRAM &&
	    (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) ||
	     setsockopt(fd, SOL_UDP, UDP_GRO, &on, sizeof(on))))
		die("UDP_GRO");
	return fd;
}

static void send_known(int fd, long from, long to)
{
	static uint8_t buffer[BUFFER_SIZE];
	long size;

	for (; from < to; from += size) {
		size = to - from < BUFFER_SIZE ? to - from : BUFFER_SIZE;
		fill(buffer, (size_t)size, from);
		if (send(fd, buffer, (size_t)size, MSG_NOSIGNAL) != size)
			broken("sending", from);
	}
}

static void receive_known(int fd, long from, long to)
{
	static uint8_t buffer[BUFFER_SIZE];
	ssize_t got;

	for (; from < to; from += got) {
		got = recv(fd, buffer, to - from < BUFFER_SIZE ? (size_t)(to - from) : BUFFER_SIZE,
			   0);
		if (got <= 0)
			broken(got ? strerror(errno) : "closed", from);
		if (!is_known(buffer, (size_t)got, from))
			broken("other bytes", from);
	}
}

static void serve_connection(int fd)
{
	long bytes;

	while (recv(fd, &bytes, sizeof(bytes), MSG_WAITALL) == sizeof(bytes)) {
		receive_known(fd, 0, bytes);
		send_known(fd, 0, bytes);
	}
}

static void accept_connection(int listener)
{
	int fd = accept(listener, NULL, NULL);

	if (fd >= 0 && fork() == 0) {
		serve_connection(fd);
		_exit(0);
	}
	close(fd);
}

/* A datagram begins with the position of what follows. The kernel may hand over many of
 * one size, *size, at once. */
static ssize_t receive_datagrams(int fd, uint8_t *buffer, struct sockaddr_in6 *from, int *size)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {buffer, BUFFER_SIZE};
	struct msghdr message = {
		.msg_name = from,
		.msg_namelen = sizeof(*from),
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	ssize_t got = recvmsg(fd, &message, 0);
	struct cmsghdr *joined = CMSG_FIRSTHDR(&message);

	*size = (int)got;
	if (got > 0 && joined && joined->cmsg_level == SOL_UDP && joined->cmsg_type == UDP_GRO)
		memcpy(size, CMSG_DATA(joined), sizeof(*size));
	return got;
}

/* In one system call where the kernel cuts; before 6.11 it does so only for a device that
 * computes checksums (EIO). */
static void send_datagrams(int fd, const uint8_t *buffer, size_t length, int size,
			   const struct sockaddr_in6 *to)
{
	char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct iovec data = {(void *)buffer, length};
	struct msghdr message = {
		.msg_name = (void *)to,
		.msg_namelen = sizeof(*to),
		.msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *segment = CMSG_FIRSTHDR(&message);

	segment->cmsg_level = SOL_UDP;
	segment->cmsg_type = UDP_SEGMENT;
	segment->cmsg_len = CMSG_LEN(sizeof(uint16_t));
	*(uint16_t *)CMSG_DATA(segment) = (uint16_t)size;
	if ((int)length <= size)
		message.msg_controllen = 0;
	if (sendmsg(fd, &message, 0) == (ssize_t)length)
		return;
	if (errno == EIO && (int)length > size) {
		send_datagrams(fd, buffer, (size_t)size, size, to);
		send_datagrams(fd, buffer + size, length - (size_t)size, size, to);
	} else {
		fprintf(stderr, "bulk: sending %zu bytes: %s\n", length, strerror(errno));
	}
}

/* Whether all are whole. */
static bool check_datagrams(const uint8_t *buffer, ssize_t got, int size)
{
	uint32_t position;
	ssize_t here;

	for (ssize_t at = 0; at < got; at += here) {
		here = got - at < size ? got - at : size;
		memcpy(&position, buffer + at, sizeof(position));
		if (!is_known(buffer + at + 4, (size_t)here - 4, position))
			return false;
	}
	return true;
}

static void echo_datagrams(int fd)
{
	static uint8_t buffer[BUFFER_SIZE];
	struct sockaddr_in6 from;
	int size;
	ssize_t got = receive_datagrams(fd, buffer, &from, &size);

	if (got > 0 && check_datagrams(buffer, got, size))
		send_datagrams(fd, buffer, (size_t)got, size, &from);
	else
		fprintf(stderr, "bulk: %zd bytes are damaged\n", got);
}

static _Noreturn void command_serve(long port, const struct options *options)
{
	struct sockaddr_in6 local = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
	struct pollfd sockets[2] = {{.fd = open_socket(SOCK_STREAM), .events = POLLIN},
				    {.fd = open_socket(SOCK_DGRAM), .events = POLLIN}};

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 2; i++)
		if (bind(sockets[i].fd, (struct sockaddr *)&local, sizeof(local)))
			die("bind");
	if (listen(sockets[0].fd, 64))
		die("listen");
	if (options->background && daemon(1, 1))
		die("daemon");
	for (;;) {
		if (poll(sockets, 2, -1) < 0)
			die("poll");
		if (sockets[0].revents)
			accept_connection(sockets[0].fd);
		if (sockets[1].revents)
			echo_datagrams(sockets[1].fd);
	}
}

static void pause_for(int milliseconds)
{
	struct timespec pause = {milliseconds / 1000, milliseconds % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

/* Once there is a line to read */
static void there_and_back(int fd, long bytes)
{
	char line[8];

	if (!fgets(line, sizeof(line), stdin))
		broken("standard input", 0);
	if (send(fd, &bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
		broken(strerror(errno), -1);
	send_known(fd, 0, bytes);
	receive_known(fd, 0, bytes);
}

static void ask_tcp(const struct sockaddr_in6 *server, const struct options *options)
{
	struct timeval limit = {.tv_sec = patience(5)};
	int fd = open_socket(SOCK_STREAM);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		die("timeout");
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server)))
		broken(strerror(errno), -1);
	if (options->on_demand) {
		there_and_back(fd, options->bytes / 2);
		puts("half");
		there_and_back(fd, options->bytes / 2);
		return;
	}
	if (send(fd, &options->bytes, sizeof(options->bytes), MSG_NOSIGNAL) < 0)
		broken(strerror(errno), -1);
	send_known(fd, 0, options->bytes / 2);
	pause_for(options->pause);
	send_known(fd, options->bytes / 2, options->bytes);
	receive_known(fd, 0, options->bytes / 2);
	pause_for(options->pause);
	receive_known(fd, options->bytes / 2, options->bytes);
}

/* Sends one burst: the last datagram is shorter, and odd. Returns its length. */
static size_t send_burst(int fd, const struct sockaddr_in6 *server, long position,
			 const struct options *options)
{
	static uint8_t buffer[BUFFER_SIZE];
	size_t size = (size_t)options->size, length = (BURST - 1) * size + size / 2 + 1, here;

	for (size_t at = 0; at < length; at += here) {
		uint32_t start = (uint32_t)(position + (long)at);

		here = length - at < size ? length - at : size;
		memcpy(buffer + at, &start, sizeof(start));
		fill(buffer + at + 4, here - 4, start);
		if (options->plain)
			send_datagrams(fd, buffer + at, here, options->size, server);
	}
	if (!options->plain)
		send_datagrams(fd, buffer, length, options->size, server);
	return length;
}

static void await_burst(int fd, size_t length, long position)
{
	static uint8_t buffer[BUFFER_SIZE];
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	struct sockaddr_in6 from;
	ssize_t got;
	int size;

	while (length > 0) {
		if (poll(&readable, 1, patience(2000)) <= 0)
			broken("datagrams lost", position);
		got = receive_datagrams(fd, buffer, &from, &size);
		if (got <= 0)
			broken(strerror(errno), position);
		if ((size_t)got > length || !check_datagrams(buffer, got, size))
			broken("other bytes", position);
		length -= (size_t)got;
	}
}

static void ask_udp(const struct sockaddr_in6 *server, const struct options *options)
{
	int fd = open_socket(SOCK_DGRAM), on = options->without_checksum;
	bool paused = false;

	if (setsockopt(fd, SOL_SOCKET, SO_NO_CHECK, &on, sizeof(on)))
		die("SO_NO_CHECK");
	for (long position = 0; position < options->bytes;) {
		size_t length = send_burst(fd, server, position, options);

		await_burst(fd, length, position);
		position += (long)length;
		if (!paused && position > options->bytes / 2) {
			pause_for(options->pause);
			paused = true;
		}
	}
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"bytes", required_argument, NULL, 'b'},
		{"size", required_argument, NULL, 's'},
		{"pause", required_argument, NULL, 'p'},
		{"plain", no_argument, NULL, 'P'},
		{"without-checksum", no_argument, NULL, 'w'},
		{"background", no_argument, NULL, 'B'},
		{"on-demand", no_argument, NULL, 'o'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (letter) {
		case 'b':
			options->bytes = parse_number(optarg, 2, 1 << 30);
			break;
		case 's':
			options->size = (int)parse_number(optarg, 32, BUFFER_SIZE / BURST - 8);
			break;
		case 'p':
			options->pause = (int)parse_number(optarg, 0, 60000);
			break;
		case 'P':
			options->plain = true;
			break;
		case 'w':
			options->without_checksum = true;
			break;
		case 'B':
			options->background = true;
			break;
		case 'o':
			options->on_demand = true;
			break;
		default:
			die_usage();
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {.bytes = 2 << 20, .size = 1200};
	struct sockaddr_in6 server;

	parse_options(argc, argv, &options);
	setvbuf(stdout, NULL, _IOLBF, 0);
	argv += optind;
	if (argc - optind == 2 && strcmp(argv[0], "serve") == 0)
		command_serve(parse_number(argv[1], 1, 65535), &options);
	if (argc - optind != 4 || strcmp(argv[0], "ask") != 0)
		die_usage();
	server = parse_address(argv[2], parse_number(argv[3], 1, 65535));
	if (strcmp(argv[1], "tcp") == 0)
		ask_tcp(&server, &options);
	else if (strcmp(argv[1], "udp") == 0)
		ask_udp(&server, &options);
	else
		die_usage();
	puts("ok");
	return 0;
}

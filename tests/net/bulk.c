/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bulk.c - much data both ways. Every byte is known beforehand, so damage is noticed even where the
 * checksum is right. TCP, and UDP in bursts that the kernel segments (UDP_SEGMENT) and joins again
 * (UDP_GRO).
 */
#include <netinet/udp.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include "sockets.h"

#define BUFFER_SIZE 65536
#define BURST 32 /* datagrams */

const char tool_usage[] =
	"bulk serve PORT [--background]\n"
	"bulk ask tcp|udp ADDRESS PORT [--bytes N] [--size N] [--plain] [--without-checksum]\n"
	"     [--pause MS] [--on-demand]\n"
	"     sends the bytes, receives them back, and prints ok, or what was wrong\n"
	"     --size: of UDP datagrams; --plain: one system call for each; --pause: in the middle\n"
	"     --on-demand: TCP, in two halves; each one waits for a line of standard input\n"
	"     prints half after the first one\n";

struct options {
	int bytes;
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

/* Bytes near each other differ, and the sum of two words changes when they are swapped. */
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
	int fd = open_dual_socket(type, 0);

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, 1);
	if (type == SOCK_DGRAM) {
		set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20);
		set_option(fd, SOL_UDP, UDP_GRO, 1);
	}
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

/* A datagram begins with the position of the bytes after it. The kernel may return several
 * datagrams of one size, *size, at once. */
static ssize_t receive_datagrams(int fd, uint8_t *buffer, struct sockaddr_in6 *from, int *size)
{
	char control[CMSG_SPACE(sizeof(int))];
	struct iovec data = {buffer, BUFFER_SIZE};
	struct msghdr message = message_of(from, &data, control, sizeof(control));
	ssize_t got = recvmsg(fd, &message, 0);
	struct cmsghdr *joined = CMSG_FIRSTHDR(&message);

	*size = (int)got;
	if (got > 0 && joined && joined->cmsg_level == SOL_UDP && joined->cmsg_type == UDP_GRO)
		memcpy(size, CMSG_DATA(joined), sizeof(*size));
	return got;
}

/* One system call for all, if the kernel segments them; before 6.11 it returns EIO for a device
 * that does not compute checksums. */
static void send_datagrams(int fd, const uint8_t *buffer, size_t length, int size,
			   const struct sockaddr_in6 *to)
{
	char control[CMSG_SPACE(sizeof(uint16_t))] = {0};
	struct iovec data = {(void *)buffer, length};
	struct msghdr message = message_of(to, &data, control, sizeof(control));
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

/* Whether no datagram is damaged. */
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
	struct sockaddr_in6 local = any_address((int)port);
	struct pollfd sockets[2] = {{.fd = open_socket(SOCK_STREAM), .events = POLLIN},
				    {.fd = open_socket(SOCK_DGRAM), .events = POLLIN}};

	signal(SIGCHLD, SIG_IGN);
	for (int i = 0; i < 2; i++)
		bind_socket(sockets[i].fd, &local);
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

/* Waits for a line of standard input first. */
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
	long bytes = options->bytes;
	int fd = open_socket(SOCK_STREAM);

	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)))
		die("timeout");
	if (connect_socket(fd, server))
		broken(strerror(errno), -1);
	if (options->on_demand) {
		there_and_back(fd, bytes / 2);
		puts("half");
		there_and_back(fd, bytes / 2);
		return;
	}
	if (send(fd, &bytes, sizeof(bytes), MSG_NOSIGNAL) < 0)
		broken(strerror(errno), -1);
	send_known(fd, 0, bytes / 2);
	sleep_milliseconds(options->pause);
	send_known(fd, bytes / 2, bytes);
	receive_known(fd, 0, bytes / 2);
	sleep_milliseconds(options->pause);
	receive_known(fd, bytes / 2, bytes);
}

/* Sends one burst, whose last datagram is shorter and of an odd size. Returns its length. */
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
	int fd = open_socket(SOCK_DGRAM);
	bool paused = false;

	set_option(fd, SOL_SOCKET, SO_NO_CHECK, options->without_checksum);
	for (long position = 0; position < options->bytes;) {
		size_t length = send_burst(fd, server, position, options);

		await_burst(fd, length, position);
		position += (long)length;
		if (!paused && position > options->bytes / 2) {
			sleep_milliseconds(options->pause);
			paused = true;
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {.bytes = 1 << 20, .size = 1200};
	const struct tool_option names[] = {
		{"bytes", .number = &options.bytes, .low = 2, .high = 1 << 30},
		{"size", .number = &options.size, .low = 32, .high = BUFFER_SIZE / BURST - 8},
		{"pause", .number = &options.pause, .high = 60000},
		{"plain", .flag = &options.plain},
		{"without-checksum", .flag = &options.without_checksum},
		{"background", .flag = &options.background},
		{"on-demand", .flag = &options.on_demand},
		{NULL},
	};
	struct sockaddr_in6 server;

	parse_options(argc, argv, names);
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

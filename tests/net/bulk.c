/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bulk.c - much data both ways. Every byte is known beforehand, so damage is noticed even where the
 * checksum is right. TCP, and UDP in bursts that the kernel segments (UDP_SEGMENT) and joins again
 * (UDP_GRO).
 */
#include <netinet/udp.h>
#include <signal.h>

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

static int bytes = 1 << 20, datagram_size = 1200, pause_between;
static bool background, plain, without_checksum, on_demand;

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

static int receive_much(int fd)
{
	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 4 << 20);
	set_option(fd, SOL_UDP, UDP_GRO, 1);
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
	long length;

	while (recv(fd, &length, sizeof(length), MSG_WAITALL) == sizeof(length)) {
		receive_known(fd, 0, length);
		send_known(fd, 0, length);
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

static int command_serve(char **operands)
{
	int port = parse_port(operands[0]);
	struct pollfd sockets[2] = {
		{.fd = open_bound_socket(SOCK_STREAM, port), .events = POLLIN},
		{.fd = receive_much(open_bound_socket(SOCK_DGRAM, port)), .events = POLLIN}};

	signal(SIGCHLD, SIG_IGN);
	if (listen(sockets[0].fd, 64))
		die("listen");
	if (background && daemon(1, 1))
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

static void there_and_back(int fd, long length)
{
	if (on_demand && !await_line())
		broken("standard input", 0);
	if (send(fd, &length, sizeof(length), MSG_NOSIGNAL) < 0)
		broken(strerror(errno), -1);
	send_known(fd, 0, length / 2);
	sleep_milliseconds(pause_between);
	send_known(fd, length / 2, length);
	receive_known(fd, 0, length / 2);
	sleep_milliseconds(pause_between);
	receive_known(fd, length / 2, length);
}

static void ask_tcp(const struct sockaddr_in6 *server)
{
	int fd = open_dual_socket(SOCK_STREAM, 0);

	limit_time(fd, SO_SNDTIMEO, patience(5000));
	limit_time(fd, SO_RCVTIMEO, patience(5000));
	if (connect_socket(fd, server))
		broken(strerror(errno), -1);
	if (on_demand) {
		there_and_back(fd, bytes / 2);
		puts("half");
	}
	there_and_back(fd, on_demand ? bytes / 2 : bytes);
}

/* Sends one burst, whose last datagram is shorter and of an odd size. Returns its length. */
static size_t send_burst(int fd, const struct sockaddr_in6 *server, long position)
{
	static uint8_t buffer[BUFFER_SIZE];
	size_t size = (size_t)datagram_size, length = (BURST - 1) * size + size / 2 + 1, here;

	for (size_t at = 0; at < length; at += here) {
		uint32_t start = (uint32_t)(position + (long)at);

		here = length - at < size ? length - at : size;
		memcpy(buffer + at, &start, sizeof(start));
		fill(buffer + at + 4, here - 4, start);
		if (plain)
			send_datagrams(fd, buffer + at, here, datagram_size, server);
	}
	if (!plain)
		send_datagrams(fd, buffer, length, datagram_size, server);
	return length;
}

static void await_burst(int fd, size_t length, long position)
{
	static uint8_t buffer[BUFFER_SIZE];
	struct sockaddr_in6 from;
	ssize_t got;
	int size;

	while (length > 0) {
		if (!has_received(fd, patience(2000)))
			broken("datagrams lost", position);
		got = receive_datagrams(fd, buffer, &from, &size);
		if (got <= 0)
			broken(strerror(errno), position);
		if ((size_t)got > length || !check_datagrams(buffer, got, size))
			broken("other bytes", position);
		length -= (size_t)got;
	}
}

static void ask_udp(const struct sockaddr_in6 *server)
{
	int fd = receive_much(open_dual_socket(SOCK_DGRAM, 0));
	bool paused = false;

	set_option(fd, SOL_SOCKET, SO_NO_CHECK, without_checksum);
	for (long position = 0; position < bytes;) {
		size_t length = send_burst(fd, server, position);

		await_burst(fd, length, position);
		position += (long)length;
		if (!paused && position > bytes / 2) {
			sleep_milliseconds(pause_between);
			paused = true;
		}
	}
}

static int command_ask(char **operands)
{
	struct sockaddr_in6 server = parse_address(operands[1], parse_port(operands[2]));

	if (strcmp(operands[0], "tcp") == 0)
		ask_tcp(&server);
	else if (strcmp(operands[0], "udp") == 0)
		ask_udp(&server);
	else
		die_usage();
	puts("ok");
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"bytes", .number = &bytes, .low = 2, .high = 1 << 30},
		{"size", .number = &datagram_size, .low = 32, .high = BUFFER_SIZE / BURST - 8},
		{"pause", .number = &pause_between, .high = 60000},
		{"plain", .flag = &plain},
		{"without-checksum", .flag = &without_checksum},
		{"background", .flag = &background},
		{"on-demand", .flag = &on_demand},
		{NULL},
	};
	static const struct tool_command commands[] = {
		{"serve", 1, 1, command_serve},
		{"ask", 3, 3, command_ask},
		{NULL},
	};

	parse_options(argc, argv, options);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return run_command(argc - optind, argv + optind, commands);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * idle.c - thousands of TCP connections that are idle most of the time.
 */
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "sockets.h"

#define AT_ONCE 200           /* connections that are started together */
#define CONNECT_PATIENCE 4000 /* a SYN is sent three times in it */
#define ANSWER_PATIENCE 8000

const char tool_usage[] =
	"idle serve PORT\n"
	"     echoes, in the background, on any address\n"
	"idle hold ADDRESS PORT COUNT\n"
	"     connects, sends two bytes on each connection and prints how many came back\n"
	"     does so again for each line of standard input\n";

static struct pollfd *crowd;
static int size;

static void watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

static void echo(int fd)
{
	char bytes[256];
	ssize_t length = read(fd, bytes, sizeof(bytes));

	if (length <= 0 || write(fd, bytes, (size_t)length) != length)
		close(fd);
}

static _Noreturn void serve(int port)
{
	struct sockaddr_in6 address = any_address(port);
	int listener = open_dual_socket(SOCK_STREAM, 0), poll_fd = epoll_create1(0);
	struct epoll_event event;

	set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	bind_socket(listener, &address);
	if (listen(listener, 4096))
		die("listen");
	watch(poll_fd, listener);
	if (daemon(0, 0))
		die("daemon");
	for (;;) {
		if (epoll_wait(poll_fd, &event, 1, -1) != 1)
			continue;
		if (event.data.fd != listener)
			echo(event.data.fd);
		else
			watch(poll_fd, accept(listener, NULL, NULL));
	}
}

static int begin_connection(const struct sockaddr_in6 *address)
{
	int fd = open_dual_socket(SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect_socket(fd, address) && errno != EINPROGRESS)
		die("connect");
	return fd;
}

/* Waits until all are done, or until the time limit. A connection that is done has no events. */
static void wait_for(struct pollfd *some, int count, short events, int limit, bool (*done)(int fd))
{
	long end = milliseconds_now() + patience(limit);
	int waiting = count;

	for (int i = 0; i < count; i++)
		some[i].events = events;
	while (waiting && milliseconds_now() < end && poll(some, (nfds_t)count, 100) >= 0) {
		waiting = 0;
		for (int i = 0; i < count; i++) {
			if (some[i].fd >= 0 && some[i].events && some[i].revents &&
			    done(some[i].fd))
				some[i].events = 0;
			waiting += some[i].fd >= 0 && some[i].events;
		}
	}
}

static void close_unfinished(struct pollfd *some, int count)
{
	for (int i = 0; i < count; i++) {
		if (some[i].fd < 0 || !some[i].events)
			continue;
		close(some[i].fd);
		some[i].fd = -1;
	}
}

static bool is_connected(int fd)
{
	int error = 0;
	socklen_t length = sizeof(error);

	return !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) && !error;
}

static bool has_answer(int fd)
{
	char bytes[2];

	return read(fd, bytes, sizeof(bytes)) == sizeof(bytes);
}

static void connect_all(const struct sockaddr_in6 *address)
{
	for (int first = 0; first < size; first += AT_ONCE) {
		int count = size - first < AT_ONCE ? size - first : AT_ONCE;

		for (int i = first; i < first + count; i++)
			crowd[i].fd = begin_connection(address);
		wait_for(crowd + first, count, POLLOUT, CONNECT_PATIENCE, is_connected);
		close_unfinished(crowd + first, count);
	}
}

static int count_answers(void)
{
	int count = 0;

	for (int i = 0; i < size; i++)
		if (crowd[i].fd >= 0 && write(crowd[i].fd, "??", 2) != 2) {
			close(crowd[i].fd);
			crowd[i].fd = -1;
		}
	wait_for(crowd, size, POLLIN, ANSWER_PATIENCE, has_answer);
	close_unfinished(crowd, size);
	for (int i = 0; i < size; i++)
		count += crowd[i].fd >= 0;
	return count;
}

static void hold(const char *address_text, int port, int count)
{
	struct sockaddr_in6 address = parse_address(address_text, port);
	char line[16];

	size = count;
	crowd = calloc((size_t)size, sizeof(*crowd));
	if (!crowd)
		die("calloc");
	connect_all(&address);
	do {
		printf("%d\n", count_answers());
		fflush(stdout);
	} while (fgets(line, sizeof(line), stdin));
}

int main(int argc, char **argv)
{
	signal(SIGPIPE, SIG_IGN);
	raise_file_limit();
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(parse_number(argv[2], 1, 65535));
	if (argc != 5 || strcmp(argv[1], "hold") != 0)
		die_usage();
	hold(argv[2], parse_number(argv[3], 1, 65535), parse_number(argv[4], 1, 1 << 20));
	return 0;
}

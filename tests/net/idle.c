/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * idle.c - thousands of TCP connections, idle but for two bytes now and then.
 *
 * usage: idle serve PORT                 echoes, in the background, on any address
 *        idle hold ADDRESS PORT COUNT    connects, sends two bytes on each connection
 *                                         and prints how many came back; again for each line
 *                                         of standard input
 */
#define _GNU_SOURCE
#include <err.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define AT_ONCE 200 /* connections begun together */
#define CONNECT_PATIENCE 1500
#define ANSWER_PATIENCE 8000

const char tool_usage[] = "usage: idle serve PORT | idle hold ADDRESS PORT COUNT\n";

static struct pollfd *crowd;
static int size;

static void watch(int poll_fd, int fd)
{
	struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		err(2, "epoll_ctl");
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
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int listener = socket(AF_INET6, SOCK_STREAM, 0), poll_fd = epoll_create1(0), on = 1;
	struct epoll_event event;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) || listen(listener, 4096))
		err(2, "listening on port %d", port);
	watch(poll_fd, listener);
	if (daemon(0, 0))
		err(2, "daemon");
	for (;;) {
		if (epoll_wait(poll_fd, &event, 1, -1) != 1)
			continue;
		if (event.data.fd != listener)
			echo(event.data.fd);
		else
			watch(poll_fd, accept(listener, NULL, NULL));
	}
}

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int begin_connection(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0)
		err(2, "socket");
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) && errno != EINPROGRESS)
		err(2, "connect");
	return fd;
}

/* Until none of them is waited for any more. What is done has no events. */
static void wait_for(struct pollfd *some, int count, short events, int limit, bool (*done)(int fd))
{
	long end = milliseconds() + patience(limit);
	int waiting = count;

	for (int i = 0; i < count; i++)
		some[i].events = events;
	while (waiting && milliseconds() < end && poll(some, (nfds_t)count, 100) >= 0) {
		waiting = 0;
		for (int i = 0; i < count; i++) {
			if (some[i].fd >= 0 && some[i].events && some[i].revents &&
			    done(some[i].fd))
				some[i].events = 0;
			waiting += some[i].fd >= 0 && some[i].events;
		}
	}
}

static void leave_out_the_waiting(struct pollfd *some, int count)
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

static void connect_all(const struct sockaddr_in *address)
{
	for (int first = 0; first < size; first += AT_ONCE) {
		int count = size - first < AT_ONCE ? size - first : AT_ONCE;

		for (int i = first; i < first + count; i++)
			crowd[i].fd = begin_connection(address);
		wait_for(crowd + first, count, POLLOUT, CONNECT_PATIENCE, is_connected);
		leave_out_the_waiting(crowd + first, count);
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
	leave_out_the_waiting(crowd, size);
	for (int i = 0; i < size; i++)
		count += crowd[i].fd >= 0;
	return count;
}

static void hold(const char *address_text, int port, int count)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	char line[16];

	if (inet_pton(AF_INET, address_text, &address.sin_addr) != 1)
		errx(2, "not an IPv4 address: %s", address_text);
	size = count;
	crowd = calloc((size_t)size, sizeof(*crowd));
	if (!crowd)
		err(2, "calloc");
	connect_all(&address);
	do {
		printf("%d\n", count_answers());
		fflush(stdout);
	} while (fgets(line, sizeof(line), stdin));
}

int main(int argc, char **argv)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	if (argc == 3 && strcmp(argv[1], "serve") == 0)
		serve(atoi(argv[2]));
	if (argc != 5 || strcmp(argv[1], "hold") != 0)
		die_usage();
	hold(argv[2], atoi(argv[3]), atoi(argv[4]));
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - very many TCP connections at a time: all of them are opened first, then each sends a
 * request and must receive the answer to its own request; or they are idle, and are counted.
 */
#include <signal.h>
#include <sys/epoll.h>

#include "sockets.h"

#define MOST 100000   /* connections of one process */
#define UNDER_WAY 256 /* SYNs without an answer */
#define EVENTS 256
#define SERVERS 6
#define PATIENCE 20000     /* ms without any progress */
#define HOLD_PATIENCE 4000 /* a SYN is sent three times in it */

const char tool_usage[] =
	"crowd serve PORT [--background]\n"
	"     echoes each request, in several processes\n"
	"crowd ask ADDRESS PORT COUNT [--rounds N] [--reset]\n"
	"     COUNT connections at a time, N requests each; prints ok or what was lost\n"
	"     --reset: closes by RST instead of FIN\n"
	"crowd hold ADDRESS PORT COUNT\n"
	"     connects as many as it can, and prints how many are answered\n"
	"     does so again for each line of standard input\n";

static int connections[MOST];
static int answered_in[2 * MOST]; /* by descriptor: the last round in which it was answered */
static int poller;
static bool holds; /* A connection that fails is closed, and is not the end. */

static int rounds = 1;
static bool reset, background;

static void watch(int fd, uint32_t events, int operation)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(poller, operation, fd, &event))
		die("epoll_ctl");
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		watch(fd, EPOLLIN, EPOLL_CTL_ADD);
}

static void answer(int fd)
{
	char request[256];
	ssize_t got = read(fd, request, sizeof(request));

	if (got <= 0 || write(fd, request, (size_t)got) != got)
		close(fd);
}

static void poller_open(void)
{
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		die("epoll_create1");
}

/* Several processes, because one may not open enough files. Returns the number of this one. */
static int fork_servers(void)
{
	int number = SERVERS - 1;

	while (number > 0 && fork() != 0)
		number--;
	poller_open();
	return number;
}

static int open_shared_listener(int port)
{
	struct sockaddr_in6 any = any_address(port);
	int listener = open_dual_socket(SOCK_STREAM | SOCK_NONBLOCK, 0);

	set_option(listener, SOL_SOCKET, SO_REUSEADDR, 1);
	set_option(listener, SOL_SOCKET, SO_REUSEPORT, 1);
	bind_socket(listener, &any);
	if (listen(listener, 4096))
		die("listen");
	return listener;
}

static int command_serve(char **operands)
{
	struct epoll_event events[EVENTS];
	int listeners[SERVERS], listener;

	signal(SIGPIPE, SIG_IGN);
	/* All of them before anybody may connect: one that is closed resets what it has not
	 * accepted. */
	for (int i = 0; i < SERVERS; i++)
		listeners[i] = open_shared_listener(parse_port(operands[0]));
	if (background && daemon(1, 0))
		die("daemon");
	listener = listeners[fork_servers()];
	watch(listener, EPOLLIN, EPOLL_CTL_ADD);
	for (;;) {
		int ready = epoll_wait(poller, events, EVENTS, -1);

		for (int i = 0; i < ready; i++) {
			if (events[i].data.fd == listener)
				accept_all(listener);
			else
				answer(events[i].data.fd);
		}
	}
}

static int begin(const struct sockaddr_in6 *server)
{
	int fd = open_dual_socket(SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (connect_socket(fd, server) && errno != EINPROGRESS)
		die("connect");
	watch(fd, EPOLLOUT, EPOLL_CTL_ADD);
	return fd;
}

static void drop(int fd)
{
	for (int i = 0; i < MOST; i++)
		if (connections[i] == fd)
			connections[i] = -1;
	close(fd);
}

/* Returns how many of the first `begun` connections are not there. */
static int drop_unconnected(int begun)
{
	struct sockaddr_in6 server;
	int dropped = 0;

	for (int i = 0; i < begun; i++) {
		socklen_t size = sizeof(server);

		if (connections[i] >= 0 &&
		    getpeername(connections[i], (struct sockaddr *)&server, &size)) {
			drop(connections[i]);
			dropped++;
		}
	}
	return dropped;
}

static bool is_connected(int fd, int done, int count)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error)
		return true;
	if (!holds) {
		printf("lost: %d of %d connected, then: %s\n", done, count, strerror(error));
		exit(1);
	}
	return false;
}

/* 0: nothing more comes, of connections that are held. */
static int wait_for(struct epoll_event *events, const char *what, int done, int count)
{
	int ready = epoll_wait(poller, events, EVENTS, patience(holds ? HOLD_PATIENCE : PATIENCE));

	if (ready <= 0 && !holds) {
		printf("lost: %d of %d %s\n", done, count, what);
		exit(1);
	}
	return ready;
}

static void connect_all(const struct sockaddr_in6 *server, int count)
{
	struct epoll_event events[EVENTS];
	int begun = 0, done = 0, ready, fd;

	while (done < count) {
		while (begun < count && begun - done < UNDER_WAY) {
			connections[begun] = begin(server);
			begun++;
		}
		ready = wait_for(events, "connected", done, count);
		if (ready <= 0)
			done += drop_unconnected(begun);
		for (int i = 0; i < ready; i++, done++) {
			fd = events[i].data.fd;
			if (is_connected(fd, done, count))
				watch(fd, EPOLLIN, EPOLL_CTL_MOD);
			else
				drop(fd);
		}
	}
}

static bool is_answered(int fd, int round)
{
	char got[32] = "", expected[32];
	ssize_t size = read(fd, got, sizeof(got) - 1);

	snprintf(expected, sizeof(expected), "%d in %d\n", fd, round);
	if (size >= 0 && strcmp(got, expected) == 0)
		return true;
	if (!holds) {
		printf("lost: asked %s got %s\n", expected, size < 0 ? strerror(errno) : got);
		exit(1);
	}
	return false;
}

static bool ask(int fd, int round)
{
	return dprintf(fd, "%d in %d\n", fd, round) > 0;
}

static void ask_all(int count, int round)
{
	struct epoll_event events[EVENTS];
	int asked = 0, answered = 0;

	while (answered < count) {
		for (; asked < count && asked - answered < UNDER_WAY; asked++)
			if (!ask(connections[asked], round))
				die("asking");
		for (int i = wait_for(events, "answered", answered, count); i > 0; i--) {
			is_answered(events[i - 1].data.fd, round);
			answered++;
		}
	}
}

/* Returns how many of those that are still open are answered; the others are closed. */
static int count_answers(int count, int round)
{
	struct epoll_event events[EVENTS];
	int asked = 0, answered = 0, ready = 1;

	for (int i = 0; i < count; i++) {
		if (connections[i] >= 0 && !ask(connections[i], round))
			drop(connections[i]);
		asked += connections[i] >= 0;
	}
	while (answered < asked && ready > 0) {
		ready = wait_for(events, "answered", answered, asked);
		for (int i = 0; i < ready; i++) {
			if (is_answered(events[i].data.fd, round)) {
				answered_in[events[i].data.fd] = round;
				answered++;
			} else {
				drop(events[i].data.fd);
				asked--;
			}
		}
	}
	for (int i = 0; i < count; i++)
		if (connections[i] >= 0 && answered_in[connections[i]] != round)
			drop(connections[i]);
	return answered;
}

static void close_all(int count)
{
	for (int i = 0; i < count; i++) {
		if (reset)
			reset_on_close(connections[i]);
		close(connections[i]);
	}
}

/* ADDRESS PORT COUNT. Returns COUNT. */
static int connect_to(char **operands)
{
	struct sockaddr_in6 server = parse_address(operands[0], parse_port(operands[1]));
	int count = parse_number(operands[2], 1, MOST);

	poller_open();
	connect_all(&server, count);
	return count;
}

static int command_ask(char **operands)
{
	double start = seconds_now(), connected;
	int count = connect_to(operands);

	connected = seconds_now() - start;
	for (int round = 0; round < rounds; round++)
		ask_all(count, round);
	printf("ok %d in %.1f s, %.1f s to connect\n", count, seconds_now() - start, connected);
	close_all(count);
	return 0;
}

static int command_hold(char **operands)
{
	int round = 0, count;

	holds = true;
	signal(SIGPIPE, SIG_IGN);
	count = connect_to(operands);
	do {
		printf("%d\n", count_answers(count, ++round));
		fflush(stdout);
	} while (await_line());
	return 0;
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"rounds", .number = &rounds, .low = 1, .high = 1000},
		{"reset", .flag = &reset},
		{"background", .flag = &background},
		{NULL},
	};
	static const struct tool_command commands[] = {
		{"serve", 1, 1, command_serve},
		{"ask", 3, 3, command_ask},
		{"hold", 3, 3, command_hold},
		{NULL},
	};

	parse_options(argc, argv, options);
	raise_file_limit();
	return run_command(argc - optind, argv + optind, commands);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * crowd.c - very many TCP connections at a time: all of them are opened first, then each
 * asks, and must get the answer to its own question.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define MOST 100000   /* connections of one process */
#define UNDER_WAY 256 /* SYNs without an answer */
#define EVENTS 256
#define SERVERS 6
#define PATIENCE 20000 /* ms without any progress */

const char tool_usage[] =
	"crowd serve PORT [--background]\n"
	"     answers each question with the question, in several processes\n"
	"crowd ask ADDRESS PORT COUNT [--rounds N] [--first-port PORT] [--reset] [--hold]\n"
	"     so many connections at a time, each asks N times; prints ok or what was lost\n"
	"     --first-port: the source ports from there on, else the kernel's choice\n"
	"     --reset: ended by RST rather than FIN\n"
	"     --hold: at the end of standard input all of them ask once more\n";

static int connections[MOST];
static int poller;

static void raise_limit(void)
{
	struct rlimit limit;

	/* As many as we may, which may be fewer. */
	if (getrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit))
		die("RLIMIT_NOFILE");
}

static void watch(int fd, uint32_t events, int operation)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(poller, operation, fd, &event))
		die("epoll_ctl");
}

static int open_socket(void)
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1, off = 0;

	if (fd < 0)
		die("socket");
	if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)))
		die("setsockopt");
	return fd;
}

static void accept_all(int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		watch(fd, EPOLLIN, EPOLL_CTL_ADD);
}

static void answer(int fd)
{
	char question[256];
	ssize_t got = read(fd, question, sizeof(question));

	if (got <= 0 || write(fd, question, (size_t)got) != got)
		close(fd);
}

/* So that none of them needs more files than a process may have. */
static void multiply(void)
{
	for (int i = 1; i < SERVERS; i++)
		if (fork() == 0)
			break;
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		die("epoll_create1");
}

static int listen_beside_others(const struct sockaddr_in6 *address)
{
	int listener = open_socket(), on = 1;

	if (setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) ||
	    bind(listener, (const struct sockaddr *)address, sizeof(*address)) ||
	    listen(listener, 4096))
		die("listen");
	return listener;
}

static _Noreturn void command_serve(int port, bool background)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct epoll_event events[EVENTS];
	int listener = listen_beside_others(&any);

	signal(SIGPIPE, SIG_IGN);
	if (background && daemon(1, 0))
		die("daemon");
	close(listener);
	multiply();
	listener = listen_beside_others(&any);
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

static int begin(const struct sockaddr_in6 *server, int source_port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6,
				   .sin6_port = htons((uint16_t)source_port)};
	int fd = open_socket();

	if (source_port && bind(fd, (struct sockaddr *)&any, sizeof(any)))
		die("bind");
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server)) && errno != EINPROGRESS)
		die("connect");
	watch(fd, EPOLLOUT, EPOLL_CTL_ADD);
	return fd;
}

static void check_connected(int fd, int done, int count)
{
	int error = 0;
	socklen_t size = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
		printf("lost: %d of %d connected, then: %s\n", done, count, strerror(error));
		exit(1);
	}
}

static int wait_for(struct epoll_event *events, const char *what, int done, int count)
{
	int ready = epoll_wait(poller, events, EVENTS, patience(PATIENCE));

	if (ready <= 0) {
		printf("lost: %d of %d %s\n", done, count, what);
		exit(1);
	}
	return ready;
}

static void connect_all(const struct sockaddr_in6 *server, int count, int first_port)
{
	struct epoll_event events[EVENTS];
	int begun = 0, done = 0;

	while (done < count) {
		while (begun < count && begun - done < UNDER_WAY) {
			connections[begun] = begin(server, first_port ? first_port + begun : 0);
			begun++;
		}
		for (int i = wait_for(events, "connected", done, count); i > 0; i--) {
			check_connected(events[i - 1].data.fd, done, count);
			watch(events[i - 1].data.fd, EPOLLIN, EPOLL_CTL_MOD);
			done++;
		}
	}
}

static void check_answer(int fd, int round)
{
	char got[32] = "", expected[32];
	ssize_t size = read(fd, got, sizeof(got) - 1);

	snprintf(expected, sizeof(expected), "%d in %d\n", fd, round);
	if (size < 0 || strcmp(got, expected) != 0) {
		printf("lost: asked %s got %s\n", expected, size < 0 ? strerror(errno) : got);
		exit(1);
	}
}

static void ask(int fd, int round)
{
	if (dprintf(fd, "%d in %d\n", fd, round) < 0)
		die("asking");
}

static void ask_all(int count, int round)
{
	struct epoll_event events[EVENTS];
	int asked = 0, answered = 0;

	while (answered < count) {
		for (; asked < count && asked - answered < UNDER_WAY; asked++)
			ask(connections[asked], round);
		for (int i = wait_for(events, "answered", answered, count); i > 0; i--) {
			check_answer(events[i - 1].data.fd, round);
			answered++;
		}
	}
}

static void close_all(int count, bool reset)
{
	struct linger no_linger = {.l_onoff = 1, .l_linger = 0};

	for (int i = 0; i < count; i++) {
		if (reset)
			setsockopt(connections[i], SOL_SOCKET, SO_LINGER, &no_linger,
				   sizeof(no_linger));
		close(connections[i]);
	}
}

static double seconds_since(const struct timespec *start)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)(now.tv_sec - start->tv_sec) + (double)(now.tv_nsec - start->tv_nsec) / 1e9;
}

struct options {
	int rounds;
	int first_port;
	bool reset;
	bool background;
	bool hold;
};

static void command_ask(const char *address, int port, int count, const struct options *options)
{
	struct sockaddr_in6 server = parse_address(address, port);
	struct timespec start;
	double connected;
	int round;

	clock_gettime(CLOCK_MONOTONIC, &start);
	connect_all(&server, count, options->first_port);
	connected = seconds_since(&start);
	for (round = 0; round < options->rounds; round++)
		ask_all(count, round);
	printf("ok %d in %.1f s, %.1f s to connect\n", count, seconds_since(&start), connected);
	fflush(stdout);
	if (options->hold) {
		while (getchar() != EOF)
			;
		ask_all(count, round);
		puts("ok still");
	}
	close_all(count, options->reset);
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"rounds", required_argument, NULL, 'n'},
		{"first-port", required_argument, NULL, 'f'},
		{"reset", no_argument, NULL, 'r'},
		{"background", no_argument, NULL, 'b'},
		{"hold", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (letter == 'n')
			options->rounds = parse_number(optarg, 1, 1000);
		else if (letter == 'f')
			options->first_port = parse_number(optarg, 1, 65535);
		else if (letter == 'r')
			options->reset = true;
		else if (letter == 'b')
			options->background = true;
		else if (letter == 'h')
			options->hold = true;
		else
			die_usage();
	}
}

int main(int argc, char **argv)
{
	struct options options = {.rounds = 1};

	parse_options(argc, argv, &options);
	argv += optind;
	argc -= optind;
	raise_limit();
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		die("epoll_create1");
	if (argc == 2 && strcmp(argv[0], "serve") == 0)
		command_serve(parse_number(argv[1], 1, 65535), options.background);
	if (argc != 4 || strcmp(argv[0], "ask") != 0)
		die_usage();
	command_ask(argv[1], parse_number(argv[2], 1, 65535), parse_number(argv[3], 1, MOST),
		    &options);
	return 0;
}

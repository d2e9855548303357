/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.c - calls, one after another or many at a time: each has a socket of its own, asks once,
 * gets an answer or none, and ends. Says how many were answered, and fails
 * unless all were.
 */
#define _GNU_SOURCE
#include <getopt.h>
#include <poll.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define MOST 1024 /* at a time */
#define HELD 8192 /* answers that wait */
#define AGAIN_MS 500
#define TIMEOUT_MS 4000 /* a SYN is sent three times in it */

const char tool_usage[] =
	"callers tcp|udp ADDRESS PORT COUNT [--at-once N] [--interval MS] [--seconds S]\n"
	"     [--timeout MS] [--again MS]\n"
	"     prints answered=N of=COUNT per_second=N\n"
	"     --interval: between the beginnings of two; --seconds: until then, COUNT is the most\n"
	"     --timeout: after so long a call has failed; --again: UDP asks once more after that\n"
	"callers serve PORT [--delay MS]\n"
	"     UDP, in the background: sends back each datagram, after so long\n";

struct options {
	int at_once;
	int interval;
	int seconds;
	int timeout;
	int again;
	int delay;
	bool udp;
};

struct call {
	long deadline;
	long again; /* UDP: when it asks once more */
	bool asked;
};

static struct pollfd sockets[MOST]; /* fd -1: free */
static struct call calls[MOST];
static int under_way, answered, failed;

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int open_socket(bool udp)
{
	int fd = socket(AF_INET6, (udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK | SOCK_CLOEXEC,
			0);
	int off = 0;

	if (fd < 0 || setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)))
		die("socket");
	return fd;
}

static void end_call(int place, bool success)
{
	close(sockets[place].fd);
	sockets[place].fd = -1;
	under_way--;
	answered += success;
	failed += !success;
}

static void begin_call(int place, const struct sockaddr_in6 *server, const struct options *options)
{
	long now = milliseconds();
	int fd = open_socket(options->udp);

	calls[place] = (struct call){.deadline = now + patience(options->timeout)};
	sockets[place] = (struct pollfd){.fd = fd, .events = POLLOUT};
	under_way++;
	if (connect(fd, (const struct sockaddr *)server, sizeof(*server)) && errno != EINPROGRESS)
		end_call(place, false);
}

static void ask(int place, const struct options *options)
{
	int fd = sockets[place].fd;

	if (send(fd, "who?\n", 5, MSG_NOSIGNAL) != 5 && !options->udp) {
		end_call(place, false);
		return;
	}
	calls[place].asked = true;
	calls[place].again = milliseconds() + patience(options->again);
	sockets[place].events = POLLIN;
}

/* A UDP socket hears of errors that may be somebody else's, and goes on. */
static void receive(int place, bool udp)
{
	char answer[512];
	ssize_t got = recv(sockets[place].fd, answer, sizeof(answer), 0);

	if (got > 0)
		end_call(place, true);
	else if (!udp || got == 0)
		end_call(place, false);
}

static void look_after(int place, const struct options *options)
{
	const struct pollfd *socket = &sockets[place];
	long now = milliseconds();

	if (socket->revents && !calls[place].asked)
		ask(place, options);
	else if (socket->revents)
		receive(place, options->udp);
	if (socket->fd < 0)
		return;
	if (now >= calls[place].deadline)
		end_call(place, false);
	else if (options->udp && calls[place].asked && now >= calls[place].again)
		ask(place, options);
}

static void call(const struct sockaddr_in6 *server, int count, const struct options *options)
{
	long begin = milliseconds(), end = begin + 1000L * options->seconds, next = begin, now;
	int begun = 0;

	for (int i = 0; i < options->at_once; i++)
		sockets[i].fd = -1;
	for (;;) {
		now = milliseconds();
		if (options->seconds && now >= end)
			count = begun;
		if (begun == count && !under_way)
			break;
		for (int i = 0; i < options->at_once && begun < count && now >= next; i++) {
			if (sockets[i].fd >= 0)
				continue;
			begin_call(i, server, options);
			begun++;
			next = options->interval ? next + options->interval : now;
		}
		poll(sockets, (nfds_t)options->at_once, options->interval ? 1 : 50);
		for (int i = 0; i < options->at_once; i++)
			if (sockets[i].fd >= 0)
				look_after(i, options);
	}
	now = milliseconds();
	printf("answered=%d of=%d per_second=%ld\n", answered, begun,
	       begun * 1000L / (now > begin ? now - begin : 1));
}

struct held_answer {
	struct sockaddr_in6 to;
	long due;
	ssize_t size;
	char bytes[64];
};

static _Noreturn void serve(int port, int delay)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	static struct held_answer held[HELD];
	unsigned int head = 0, tail = 0;
	struct pollfd readable = {.fd = open_socket(true), .events = POLLIN};
	struct held_answer *answer;
	int buffer = 8 << 20;
	socklen_t size;

	if (setsockopt(readable.fd, SOL_SOCKET, SO_RCVBUFFORCE, &buffer, sizeof(buffer)) ||
	    bind(readable.fd, (struct sockaddr *)&any, sizeof(any)) || daemon(0, 0))
		die("bind");
	for (;;) {
		poll(&readable, 1, head == tail ? -1 : 10);
		for (;;) {
			answer = &held[tail % HELD];
			size = sizeof(answer->to);
			answer->size = recvfrom(readable.fd, answer->bytes, sizeof(answer->bytes),
						0, (struct sockaddr *)&answer->to, &size);
			if (answer->size <= 0 || tail - head >= HELD - 1)
				break;
			answer->due = milliseconds() + delay;
			tail++;
		}
		for (; head != tail && held[head % HELD].due <= milliseconds(); head++) {
			answer = &held[head % HELD];
			sendto(readable.fd, answer->bytes, (size_t)answer->size, 0,
			       (struct sockaddr *)&answer->to, sizeof(answer->to));
		}
	}
}

static void parse_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"at-once", required_argument, NULL, 'a'},
		{"interval", required_argument, NULL, 'i'},
		{"seconds", required_argument, NULL, 's'},
		{"timeout", required_argument, NULL, 't'},
		{"again", required_argument, NULL, 'A'},
		{"delay", required_argument, NULL, 'd'},
		{NULL, 0, NULL, 0},
	};
	int letter;

	while ((letter = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (letter == 'a')
			options->at_once = parse_number(optarg, 1, MOST);
		else if (letter == 'i')
			options->interval = parse_number(optarg, 1, 10000);
		else if (letter == 's')
			options->seconds = parse_number(optarg, 1, 600);
		else if (letter == 't')
			options->timeout = parse_number(optarg, 1, 60000);
		else if (letter == 'A')
			options->again = parse_number(optarg, 1, 60000);
		else if (letter == 'd')
			options->delay = parse_number(optarg, 1, 60000);
		else
			die_usage();
	}
}

int main(int argc, char **argv)
{
	struct options options = {.at_once = 10, .timeout = TIMEOUT_MS, .again = AGAIN_MS};
	struct sockaddr_in6 server;

	parse_options(argc, argv, &options);
	argv += optind;
	if (argc - optind == 2 && strcmp(argv[0], "serve") == 0)
		serve(parse_number(argv[1], 1, 65535), options.delay);
	if (argc - optind != 4 || (strcmp(argv[0], "tcp") != 0 && strcmp(argv[0], "udp") != 0))
		die_usage();
	options.udp = strcmp(argv[0], "udp") == 0;
	server = parse_address(argv[1], parse_number(argv[2], 1, 65535));
	call(&server, parse_number(argv[3], 1, 100000000), &options);
	return failed != 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.c - calls, one after another or many at a time. A call opens a socket, sends one request,
 * receives the answer or none, and closes the socket. Prints how many were answered, and fails
 * unless all were.
 */
#include <poll.h>
#include <unistd.h>

#include "sockets.h"

#define MOST 1024 /* at a time */
#define HELD 8192 /* delayed answers */
#define AGAIN_MS 500
#define TIMEOUT_MS 4000 /* a SYN is sent three times in it */

const char tool_usage[] =
	"callers tcp|udp ADDRESS PORT COUNT [--at-once N] [--interval MS] [--seconds S]\n"
	"     [--timeout MS] [--again MS]\n"
	"     prints answered=N of=COUNT per_second=N\n"
	"     --interval: from the start of one call to that of the next\n"
	"     --seconds: stops after that time, with COUNT calls at most\n"
	"     --timeout: when a call fails; --again: when UDP repeats the request\n"
	"callers serve PORT [--delay MS]\n"
	"     UDP, in the background: echoes each datagram after the delay\n";

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
	long again; /* UDP: when it repeats the request */
	bool asked;
};

static struct pollfd sockets[MOST]; /* fd -1: free */
static struct call calls[MOST];
static int under_way, answered, failed;

static int open_socket(bool udp)
{
	return open_dual_socket((udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0);
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
	long now = milliseconds_now();
	int fd = open_socket(options->udp);

	calls[place] = (struct call){.deadline = now + patience(options->timeout)};
	sockets[place] = (struct pollfd){.fd = fd, .events = POLLOUT};
	under_way++;
	if (connect_socket(fd, server) && errno != EINPROGRESS)
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
	calls[place].again = milliseconds_now() + patience(options->again);
	sockets[place].events = POLLIN;
}

/* An error of a UDP socket may be an earlier flow's, so it does not end the call. */
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
	long now = milliseconds_now();

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
	long begin = milliseconds_now(), end = begin + 1000L * options->seconds, next = begin, now;
	int begun = 0;

	for (int i = 0; i < options->at_once; i++)
		sockets[i].fd = -1;
	for (;;) {
		now = milliseconds_now();
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
	now = milliseconds_now();
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
	struct sockaddr_in6 any = any_address(port);
	static struct held_answer held[HELD];
	unsigned int head = 0, tail = 0;
	struct pollfd readable = {.fd = open_socket(true), .events = POLLIN};
	struct held_answer *answer;
	socklen_t size;

	set_option(readable.fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
	bind_socket(readable.fd, &any);
	if (daemon(0, 0))
		die("daemon");
	for (;;) {
		poll(&readable, 1, head == tail ? -1 : 10);
		for (;;) {
			answer = &held[tail % HELD];
			size = sizeof(answer->to);
			answer->size = recvfrom(readable.fd, answer->bytes, sizeof(answer->bytes),
						0, (struct sockaddr *)&answer->to, &size);
			if (answer->size <= 0 || tail - head >= HELD - 1)
				break;
			answer->due = milliseconds_now() + delay;
			tail++;
		}
		for (; head != tail && held[head % HELD].due <= milliseconds_now(); head++) {
			answer = &held[head % HELD];
			sendto(readable.fd, answer->bytes, (size_t)answer->size, 0,
			       (struct sockaddr *)&answer->to, sizeof(answer->to));
		}
	}
}

int main(int argc, char **argv)
{
	struct options options = {.at_once = 10, .timeout = TIMEOUT_MS, .again = AGAIN_MS};
	const struct tool_option names[] = {
		{"at-once", .number = &options.at_once, .low = 1, .high = MOST},
		{"interval", .number = &options.interval, .low = 1, .high = 10000},
		{"seconds", .number = &options.seconds, .low = 1, .high = 600},
		{"timeout", .number = &options.timeout, .low = 1, .high = 60000},
		{"again", .number = &options.again, .low = 1, .high = 60000},
		{"delay", .number = &options.delay, .low = 1, .high = 60000},
		{NULL},
	};
	struct sockaddr_in6 server;

	parse_options(argc, argv, names);
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * callers.c - calls, one after another or many at a time. A call opens a socket, sends one request,
 * receives the answer or none, and closes the socket. Prints how many were answered, and fails
 * unless all were.
 */
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

static int at_once = 10, interval, seconds, timeout = TIMEOUT_MS, again_after = AGAIN_MS, delay;
static bool udp;

struct call {
	long deadline;
	long again; /* UDP: when it repeats the request */
	bool asked;
};

static struct pollfd sockets[MOST]; /* fd -1: free */
static struct call calls[MOST];
static int under_way, answered, failed;

static void end_call(int place, bool success)
{
	close(sockets[place].fd);
	sockets[place].fd = -1;
	under_way--;
	answered += success;
	failed += !success;
}

static void begin_call(int place, const struct sockaddr_in6 *server)
{
	int fd = open_dual_socket((udp ? SOCK_DGRAM : SOCK_STREAM) | SOCK_NONBLOCK, 0);

	calls[place] = (struct call){.deadline = milliseconds_now() + patience(timeout)};
	sockets[place] = (struct pollfd){.fd = fd, .events = POLLOUT};
	under_way++;
	if (connect_socket(fd, server) && errno != EINPROGRESS)
		end_call(place, false);
}

static void ask(int place)
{
	int fd = sockets[place].fd;

	if (send(fd, "who?\n", 5, MSG_NOSIGNAL) != 5 && !udp) {
		end_call(place, false);
		return;
	}
	calls[place].asked = true;
	calls[place].again = milliseconds_now() + patience(again_after);
	sockets[place].events = POLLIN;
}

/* An error of a UDP socket may be an earlier flow's, so it does not end the call. */
static void receive(int place)
{
	char answer[512];
	ssize_t got = recv(sockets[place].fd, answer, sizeof(answer), 0);

	if (got > 0)
		end_call(place, true);
	else if (!udp || got == 0)
		end_call(place, false);
}

static void look_after(int place)
{
	const struct pollfd *socket = &sockets[place];
	long now = milliseconds_now();

	if (socket->revents && !calls[place].asked)
		ask(place);
	else if (socket->revents)
		receive(place);
	if (socket->fd < 0)
		return;
	if (now >= calls[place].deadline)
		end_call(place, false);
	else if (udp && calls[place].asked && now >= calls[place].again)
		ask(place);
}

static int call(char **operands)
{
	struct sockaddr_in6 server = parse_address(operands[0], parse_port(operands[1]));
	long begin = milliseconds_now(), end = begin + 1000L * seconds, next = begin, now;
	int count = parse_number(operands[2], 1, 100000000), begun = 0;

	for (int i = 0; i < at_once; i++)
		sockets[i].fd = -1;
	for (;;) {
		now = milliseconds_now();
		if (seconds && now >= end)
			count = begun;
		if (begun == count && !under_way)
			break;
		for (int i = 0; i < at_once && begun < count && now >= next; i++) {
			if (sockets[i].fd >= 0)
				continue;
			begin_call(i, &server);
			begun++;
			next = interval ? next + interval : now;
		}
		poll(sockets, (nfds_t)at_once, interval ? 1 : 50);
		for (int i = 0; i < at_once; i++)
			if (sockets[i].fd >= 0)
				look_after(i);
	}
	now = milliseconds_now();
	printf("answered=%d of=%d per_second=%ld\n", answered, begun,
	       begun * 1000L / (now > begin ? now - begin : 1));
	return failed != 0;
}

static int call_udp(char **operands)
{
	udp = true;
	return call(operands);
}

struct held_answer {
	struct sockaddr_in6 to;
	long due;
	ssize_t size;
	char bytes[64];
};

static int serve(char **operands)
{
	static struct held_answer held[HELD];
	int fd = open_bound_socket(SOCK_DGRAM | SOCK_NONBLOCK, parse_port(operands[0]));
	unsigned int head = 0, tail = 0;
	struct held_answer *answer;

	set_option(fd, SOL_SOCKET, SO_RCVBUFFORCE, 8 << 20);
	if (daemon(0, 0))
		die("daemon");
	for (;;) {
		has_received(fd, head == tail ? -1 : 10);
		for (;;) {
			answer = &held[tail % HELD];
			answer->size =
				receive_from(fd, answer->bytes, sizeof(answer->bytes), &answer->to);
			if (answer->size <= 0 || tail - head >= HELD - 1)
				break;
			answer->due = milliseconds_now() + delay;
			tail++;
		}
		for (; head != tail && held[head % HELD].due <= milliseconds_now(); head++) {
			answer = &held[head % HELD];
			send_to(fd, answer->bytes, (size_t)answer->size, &answer->to);
		}
	}
}

int main(int argc, char **argv)
{
	static const struct tool_option options[] = {
		{"at-once", .number = &at_once, .low = 1, .high = MOST},
		{"interval", .number = &interval, .low = 1, .high = 10000},
		{"seconds", .number = &seconds, .low = 1, .high = 600},
		{"timeout", .number = &timeout, .low = 1, .high = 60000},
		{"again", .number = &again_after, .low = 1, .high = 60000},
		{"delay", .number = &delay, .low = 1, .high = 60000},
		{NULL},
	};
	static const struct tool_command commands[] = {
		{"tcp", 3, 3, call},
		{"udp", 3, 3, call_udp},
		{"serve", 1, 1, serve},
		{NULL},
	};

	parse_options(argc, argv, options);
	return run_command(argc - optind, argv + optind, commands);
}

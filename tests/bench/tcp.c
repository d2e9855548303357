/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcp.c - TCP client and server of the benchmark, each with one thread.
 *
 * usage: tcp serve PORT                         until it is killed; prints "ready"
 *        tcp stream ADDRESS PORT SECONDS        sends as many bytes as the server accepts
 *        tcp requests ADDRESS PORT SECONDS      requests and answers, one after the other
 *        tcp connect ADDRESS PORT SECONDS N     connect, request, answer, close; N at a time
 *
 * The client's first byte is its kind: 's' stream, 'r' requests, 'c' one request. A request and an
 * answer are 64 bytes. After 'c' the server closes first, as many servers do, and its end keeps the
 * TIME_WAIT. The measurement begins after a fifth of SECONDS.
 *
 * Prints per_second=N, of bytes or of requests, and p50= p99= p999= in microseconds.
 */
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

const char tool_usage[] = "usage: tcp serve PORT | stream|requests ADDRESS PORT SECONDS |\n"
			  "       tcp connect ADDRESS PORT SECONDS AT-ONCE\n";

#define MESSAGE 64
#define CHUNK (1 << 18)
#define MOST_AT_ONCE 256
#define EVENTS 64
#define BUCKETS 4096 /* of latencies: 32 for each power of two */
#define MOST_FDS 65536

struct measurement {
	double begin, start, end; /* seconds; the time before `start` does not count */
	double amount;
	unsigned int latencies[BUCKETS];
	unsigned int samples;
};

struct connection {
	int fd;
	int received;
	double begin;
};

static char chunk[CHUNK];

static void set_option(int fd, int level, int option)
{
	int on = 1;

	if (setsockopt(fd, level, option, &on, sizeof(on)))
		die("setsockopt");
}

static void watch(int poll_fd, int fd, uint64_t data)
{
	struct epoll_event event = {.events = EPOLLIN, .data.u64 = data};

	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &event))
		die("epoll_ctl");
}

/* --- the server ------------------------------------------------------------------------ */

static bool streams[MOST_FDS]; /* by file descriptor */

static void accept_all(int poll_fd, int listener)
{
	int fd;

	while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
		set_option(fd, IPPROTO_TCP, TCP_NODELAY);
		streams[fd % MOST_FDS] = false;
		watch(poll_fd, fd, (uint64_t)fd);
	}
}

/* Requests arrive whole, because both ends send 64 bytes at once. */
static void serve_one(int fd)
{
	ssize_t length = recv(fd, chunk, streams[fd % MOST_FDS] ? CHUNK : MESSAGE, 0);

	if (length < 0 && errno == EAGAIN)
		return;
	if (length > 0 && chunk[0] == 's')
		streams[fd % MOST_FDS] = true;
	if (length > 0 && streams[fd % MOST_FDS])
		return;
	if (length <= 0 || send(fd, chunk, MESSAGE, MSG_NOSIGNAL) != MESSAGE || chunk[0] == 'c')
		close(fd);
}

static _Noreturn void serve(int port)
{
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	int listener = socket(AF_INET6, SOCK_STREAM | SOCK_NONBLOCK, 0);
	int poll_fd = epoll_create1(0);
	struct epoll_event events[EVENTS];

	set_option(listener, SOL_SOCKET, SO_REUSEADDR);
	if (bind(listener, (struct sockaddr *)&any, sizeof(any)) || listen(listener, 4096))
		die("listening");
	watch(poll_fd, listener, (uint64_t)listener);
	puts("ready");
	fflush(stdout);
	for (;;) {
		int count = epoll_wait(poll_fd, events, EVENTS, -1);

		for (int i = 0; i < count; i++) {
			if ((int)events[i].data.u64 == listener)
				accept_all(poll_fd, listener);
			else
				serve_one((int)events[i].data.u64);
		}
	}
}

/* --- the client ------------------------------------------------------------------------ */

static void begin_measurement(struct measurement *measurement, double seconds)
{
	measurement->begin = seconds_now();
	measurement->start = measurement->begin + seconds / 5;
	measurement->end = measurement->begin + seconds;
}

static unsigned int bucket_of(double microseconds)
{
	unsigned long value = (unsigned long)(microseconds * 16);
	unsigned int power = 0;

	if (value < 32)
		return (unsigned int)value;
	while (value >> power >= 64)
		power++;
	return 32 * power + (unsigned int)(value >> power);
}

static double middle_of(unsigned int bucket)
{
	unsigned int power = bucket < 64 ? 0 : bucket / 32 - 1;

	return ((double)((unsigned long)(bucket - 32 * power) << power) + 0.5 * (1ul << power)) /
	       16;
}

static void count_one(struct measurement *measurement, double begin, double now)
{
	unsigned int bucket = bucket_of((now - begin) * 1e6);

	if (now < measurement->start)
		return;
	measurement->amount++;
	measurement->samples++;
	measurement->latencies[bucket < BUCKETS ? bucket : BUCKETS - 1]++;
}

static double percentile(const struct measurement *measurement, double share)
{
	double before = 0;

	for (unsigned int i = 0; i < BUCKETS; i++) {
		before += measurement->latencies[i];
		if (before >= share * measurement->samples)
			return middle_of(i);
	}
	return 0;
}

static void print_measurement(const struct measurement *measurement)
{
	if (!measurement->amount) {
		errno = ETIMEDOUT;
		die("nothing was answered");
	}
	printf("per_second=%.0f", measurement->amount / (seconds_now() - measurement->start));
	if (measurement->samples)
		printf(" p50=%.1f p99=%.1f p999=%.1f", percentile(measurement, 0.5),
		       percentile(measurement, 0.99), percentile(measurement, 0.999));
	puts("");
}

static int connect_to(const struct sockaddr_in6 *address, int flags)
{
	int fd = socket(AF_INET6, SOCK_STREAM | flags, 0);

	if (fd < 0)
		die("socket");
	set_option(fd, IPPROTO_TCP, TCP_NODELAY);
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) && errno != EINPROGRESS)
		die("connect");
	return fd;
}

static void stream(const struct sockaddr_in6 *address, struct measurement *measurement)
{
	int fd = connect_to(address, 0);
	double now;

	memset(chunk, 's', sizeof(chunk));
	while ((now = seconds_now()) < measurement->end) {
		ssize_t length = send(fd, chunk, sizeof(chunk), MSG_NOSIGNAL);

		if (length <= 0)
			die("send");
		if (now >= measurement->start)
			measurement->amount += (double)length;
	}
}

static void requests(const struct sockaddr_in6 *address, struct measurement *measurement)
{
	int fd = connect_to(address, 0);
	double begin, now = seconds_now();

	memset(chunk, 'r', MESSAGE);
	while (now < measurement->end) {
		begin = now;
		if (send(fd, chunk, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
			die("send");
		if (recv(fd, chunk, MESSAGE, MSG_WAITALL) != MESSAGE)
			die("recv");
		now = seconds_now();
		count_one(measurement, begin, now);
	}
}

/* The request is sent as soon as the handshake is complete. */
static void open_connection(const struct sockaddr_in6 *address, int poll_fd,
			    struct connection *connection, uint64_t number)
{
	struct epoll_event event = {.events = EPOLLOUT | EPOLLONESHOT, .data.u64 = number};

	connection->begin = seconds_now();
	connection->fd = connect_to(address, SOCK_NONBLOCK);
	connection->received = 0;
	if (epoll_ctl(poll_fd, EPOLL_CTL_ADD, connection->fd, &event))
		die("epoll_ctl");
}

/* True when the connection is complete. */
static bool go_on(int poll_fd, struct connection *connection, const struct epoll_event *event)
{
	struct epoll_event next = {.events = EPOLLIN, .data = event->data};
	char message[MESSAGE];
	ssize_t length;

	if (event->events & EPOLLOUT) {
		memset(message, 'c', MESSAGE);
		if (send(connection->fd, message, MESSAGE, MSG_NOSIGNAL) != MESSAGE)
			die("connecting");
		epoll_ctl(poll_fd, EPOLL_CTL_MOD, connection->fd, &next);
		return false;
	}
	length = recv(connection->fd, message, MESSAGE, 0);
	if (length < 0 && errno != EAGAIN)
		die("recv");
	if (length > 0)
		connection->received += (int)length;
	if (length == 0 && connection->received != MESSAGE) {
		errno = EPROTO;
		die("a connection without an answer");
	}
	return length == 0;
}

static void connections(const struct sockaddr_in6 *address, struct measurement *measurement,
			int at_once)
{
	static struct connection all[MOST_AT_ONCE];
	struct epoll_event events[EVENTS];
	int poll_fd = epoll_create1(0);

	for (int i = 0; i < at_once; i++)
		open_connection(address, poll_fd, &all[i], (uint64_t)i);
	while (seconds_now() < measurement->end) {
		/* A lost SYN is retransmitted after a second, which counts as latency. */
		int count = epoll_wait(poll_fd, events, EVENTS, 100);

		for (int i = 0; i < count; i++) {
			struct connection *connection = &all[events[i].data.u64];

			if (!go_on(poll_fd, connection, &events[i]))
				continue;
			close(connection->fd);
			count_one(measurement, connection->begin, seconds_now());
			open_connection(address, poll_fd, connection, events[i].data.u64);
		}
	}
}

int main(int argc, char **argv)
{
	static struct measurement measurement;
	struct sockaddr_in6 address;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(parse_number(argv[2], 1, 65535));
	if (argc < 5)
		die_usage();
	address = parse_address(argv[2], parse_number(argv[3], 1, 65535));
	begin_measurement(&measurement, atof(argv[4]));
	if (!strcmp(argv[1], "stream"))
		stream(&address, &measurement);
	else if (!strcmp(argv[1], "requests"))
		requests(&address, &measurement);
	else if (!strcmp(argv[1], "connect") && argc == 6)
		connections(&address, &measurement, parse_number(argv[5], 1, MOST_AT_ONCE));
	else
		die_usage();
	print_measurement(&measurement);
	return 0;
}

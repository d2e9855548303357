/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * together.c - TCP connections whose two ends close at the same moment, each on a CPU of its own.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

#include "sockets.h"

#define TOGETHER 16 /* connections that are open at a time */

const char tool_usage[] =
	"together NETNS PORT ADDRESS PORT COUNT\n"
	"     The server listens on the first port in that network namespace. The client, in this\n"
	"     one, connects to the address and the second port. Stops at the first connection\n"
	"     that fails, and prints closed=N of=COUNT.\n";

struct end {
	int cpu;
	int fds[TOGETHER];
};

static int listener, count, open_now;
static unsigned int arrived; /* ends of connections that are about to be closed */
static pthread_barrier_t opened, closed;

static void stay_on_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu % (int)sysconf(_SC_NPROCESSORS_ONLN), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

/* Both ends continue within nanoseconds. One yields if the other has no CPU just now. */
static void meet(unsigned int both)
{
	__atomic_add_fetch(&arrived, 1, __ATOMIC_SEQ_CST);
	for (int i = 0; __atomic_load_n(&arrived, __ATOMIC_SEQ_CST) < both; i++)
		if (i > 10000)
			sched_yield();
}

static void close_all(const struct end *end, unsigned int before)
{
	for (int i = 0; i < open_now; i++) {
		meet(2 * (before + (unsigned int)i + 1));
		close(end->fds[i]);
	}
}

static void *run_server(void *argument)
{
	struct end end = {.cpu = 1};
	unsigned int done = 0;

	stay_on_cpu(end.cpu);
	for (;;) {
		pthread_barrier_wait(&opened);
		if (!open_now)
			return NULL;
		for (int i = 0; i < open_now; i++) {
			end.fds[i] = accept(listener, NULL, NULL);
			if (end.fds[i] < 0)
				die("accept");
		}
		close_all(&end, done);
		done += (unsigned int)open_now;
		pthread_barrier_wait(&closed);
	}
}

static int open_listener(const char *netns, int port)
{
	int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	int other = open(netns, O_RDONLY | O_CLOEXEC), fd;

	if (own < 0 || other < 0 || setns(other, CLONE_NEWNET))
		die(netns);
	fd = open_bound_socket(SOCK_STREAM, port);
	if (listen(fd, TOGETHER) || setns(own, CLONE_NEWNET))
		die("listen");
	return fd;
}

static int open_connection(const struct sockaddr_in6 *server)
{
	int fd = open_dual_socket(SOCK_STREAM, 0);

	limit_time(fd, SO_SNDTIMEO, patience(4000));
	if (!connect_socket(fd, server))
		return fd;
	close(fd);
	return -1;
}

static int run_client(const struct sockaddr_in6 *server)
{
	struct end end = {.cpu = 0};
	unsigned int done = 0;
	bool refused = false;

	stay_on_cpu(end.cpu);
	do {
		for (open_now = 0; open_now < TOGETHER && (int)done + open_now < count;
		     open_now++) {
			end.fds[open_now] = open_connection(server);
			refused = end.fds[open_now] < 0;
			if (refused)
				break;
		}
		pthread_barrier_wait(&opened);
		if (!open_now)
			break;
		close_all(&end, done);
		pthread_barrier_wait(&closed);
		done += (unsigned int)open_now;
		if (refused)
			count = (int)done;
	} while (open_now);
	return (int)done;
}

int main(int argc, char **argv)
{
	struct sockaddr_in6 server;
	pthread_t thread;
	int wanted;

	if (argc != 6)
		die_usage();
	listener = open_listener(argv[1], parse_port(argv[2]));
	server = parse_address(argv[3], parse_port(argv[4]));
	wanted = count = parse_number(argv[5], 1, 1 << 24);
	pthread_barrier_init(&opened, NULL, 2);
	pthread_barrier_init(&closed, NULL, 2);
	if (pthread_create(&thread, NULL, run_server, NULL))
		die("pthread_create");
	printf("closed=%d of=%d\n", run_client(&server), wanted);
	pthread_join(thread, NULL);
	return 0;
}

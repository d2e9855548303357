/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_sockets.c - what connecting and sending over loopback costs a process of the host. Both ends
 * are in this process, one call after the other, so that none waits. Prints nanoseconds for each:
 * the median of many batches, so that interruptions of some have no effect.
 */
#include <sys/socket.h>
#include <unistd.h>

#include "tool.h"

#define BATCH 200
#define MAX_BATCHES 100000

const char tool_usage[] = "usage: host_sockets tcp-connect|udp-connect|udp-send SECONDS\n";

static struct sockaddr_in server_address = {.sin_family = AF_INET};
static int server, client;

static int socket_open(int type)
{
	int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);

	if (fd < 0)
		die("socket");
	return fd;
}

static void server_open(int type)
{
	socklen_t length = sizeof(server_address);

	server = socket_open(type);
	server_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(server, (struct sockaddr *)&server_address, length) ||
	    getsockname(server, (struct sockaddr *)&server_address, &length))
		die("bind");
	if (type == SOCK_STREAM && listen(server, 16))
		die("listen");
}

static int connect_new(int type)
{
	int fd = socket_open(type);

	if (connect(fd, (struct sockaddr *)&server_address, sizeof(server_address)))
		die("connect");
	return fd;
}

/* Closed by RST, so that no port is left in TIME_WAIT. */
static void tcp_connect(void)
{
	static const struct linger at_once = {.l_onoff = 1};
	int fd = connect_new(SOCK_STREAM);
	int accepted = accept4(server, NULL, NULL, SOCK_CLOEXEC);

	if (accepted < 0 || setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once)))
		die("accept");
	close(fd);
	close(accepted);
}

static void udp_connect(void)
{
	close(connect_new(SOCK_DGRAM));
}

static void udp_send(void)
{
	struct sockaddr_in from;
	socklen_t length = sizeof(from);
	char byte = 0;

	if (sendto(client, &byte, 1, 0, (struct sockaddr *)&server_address,
		   sizeof(server_address)) != 1 ||
	    recvfrom(server, &byte, 1, 0, (struct sockaddr *)&from, &length) != 1)
		die("sendto");
}

static const struct {
	const char *name;
	int type;
	void (*once)(void);
} jobs[] = {
	{"tcp-connect", SOCK_STREAM, tcp_connect},
	{"udp-connect", SOCK_DGRAM, udp_connect},
	{"udp-send", SOCK_DGRAM, udp_send},
};

static int compare(const void *a, const void *b)
{
	double one = *(const double *)a, other = *(const double *)b;

	return (one > other) - (one < other);
}

static double measure(void (*once)(void), double seconds)
{
	static double batches[MAX_BATCHES];
	double end = seconds_now() + seconds;
	size_t count = 0;

	while (count < MAX_BATCHES && seconds_now() < end) {
		double begin = seconds_now();

		for (int i = 0; i < BATCH; i++)
			once();
		batches[count++] = (seconds_now() - begin) * 1e9 / BATCH;
	}
	qsort(batches, count, sizeof(batches[0]), compare);
	return count ? batches[count / 2] : 0;
}

int main(int argc, char **argv)
{
	for (size_t i = 0; argc == 3 && i < sizeof(jobs) / sizeof(jobs[0]); i++) {
		if (strcmp(argv[1], jobs[i].name) != 0)
			continue;
		server_open(jobs[i].type);
		client = socket_open(SOCK_DGRAM);
		printf("%.1f\n", measure(jobs[i].once, atof(argv[2])));
		return EXIT_SUCCESS;
	}
	die_usage();
}

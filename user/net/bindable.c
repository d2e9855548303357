/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bindable.c - whether a port of the host is free, by a try. */
#include "net/bindable.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

struct attempt {
	int fd;
	struct sockaddr_in6 any; /* struct sockaddr_in has the port at the same place */
};

/* A socket of both families meets those of either. */
static void open_socket(struct attempt *attempt, enum protocol protocol)
{
	int type = (protocol == PROTOCOL_TCP ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC;
	int off = 0;

	attempt->any.sin6_family = AF_INET6;
	attempt->fd = socket(AF_INET6, type, protocol);
	if (attempt->fd >= 0) {
		setsockopt(attempt->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		return;
	}
	attempt->any.sin6_family = AF_INET; /* a host without IPv6 */
	attempt->fd = socket(AF_INET, type, protocol);
}

/* TCP sockets that both have SO_REUSEADDR stand in each other's way only if one listens:
 * that is the one to be found, and a server that comes this very moment, which has it too,
 * is not disturbed. UDP sockets that have it would share the port. */
static void share(int fd)
{
	int on = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

bool port_is_bindable(enum protocol protocol, uint16_t port)
{
	struct attempt attempt = {.any = {.sin6_port = htons(port)}};
	bool bound;

	if (protocol != PROTOCOL_TCP && protocol != PROTOCOL_UDP)
		return false;
	open_socket(&attempt, protocol);
	if (attempt.fd < 0)
		return false;
	if (protocol == PROTOCOL_TCP)
		share(attempt.fd);
	bound = !bind(attempt.fd, (struct sockaddr *)&attempt.any, sizeof(attempt.any));
	close(attempt.fd);
	return bound;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host.c - the host's own processes: a server at port 7000, and sockets that ask. What they receive
 * is an arrival at the end HOST.
 */
#include "flow.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../net/tool.h"

#define HOST_PORT 7000
#define ACCEPTED 16

static struct {
	int listener, datagrams, accepted[ACCEPTED];
	size_t next;
} servers[WORLDS];

static int open_socket(int type)
{
	int fd = socket(AF_INET6, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), zero = 0;
	struct linger reset = {.l_onoff = 1};

	if (fd < 0)
		die("socket");
	setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof(zero));
	/* No FIN that would be sent again later */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	return fd;
}

static struct sockaddr_in6 socket_address(const struct in6_addr *address, uint16_t port)
{
	return (struct sockaddr_in6){.sin6_family = AF_INET6,
				     .sin6_port = htons(port),
				     .sin6_addr = *address};
}

static int open_server(int type)
{
	struct sockaddr_in6 any = socket_address(&in6addr_any, HOST_PORT);
	int fd = open_socket(type);

	if (bind(fd, (struct sockaddr *)&any, sizeof(any)) ||
	    (type == SOCK_STREAM && listen(fd, 64)))
		die("the host's server");
	return fd;
}

void host_open(struct world *world)
{
	size_t which = (size_t)(world - worlds);

	host_enter(world);
	servers[which].listener = open_server(SOCK_STREAM);
	servers[which].datagrams = open_server(SOCK_DGRAM);
	host_leave();
}

void host_close(void)
{
	for (int which = 0; which < WORLDS; which++) {
		for (int i = 0; i < ACCEPTED; i++)
			if (servers[which].accepted[i])
				close(servers[which].accepted[i]);
		close(servers[which].listener);
		close(servers[which].datagrams);
	}
	memset(servers, 0, sizeof(servers));
	for (int i = 0; i < FLOWS; i++)
		host_end(&flows[i]);
}

void host_end(struct flow *flow)
{
	for (int which = 0; which < WORLDS; which++) {
		if (flow->views[which].fd)
			close(flow->views[which].fd);
		flow->views[which].fd = 0;
	}
}

/* That no neighbour has answered comes when it comes. */
static void note(enum which_world which, const char *what, int error)
{
	if (error == EHOSTUNREACH)
		return;
	snprintf(world_note(&worlds[which], HOST)->text, ARRIVAL_TEXT, "host: %s: %s", what,
		 error ? strerror(error) : "done");
}

void host_begin(struct flow *flow, enum which_world which, const struct step *step)
{
	bool tcp = flow->first.protocol == IPPROTO_TCP;
	struct sockaddr_in6 own = socket_address(&flow->bound, 0);
	struct sockaddr_in6 to = socket_address(&flow->first.destination, flow->first.destination_port);
	struct view *view = &flow->views[which];

	host_enter(&worlds[which]);
	view->fd = open_socket(tcp ? SOCK_STREAM : SOCK_DGRAM);
	host_leave();
	if (flow->binds && bind(view->fd, (struct sockaddr *)&own, sizeof(own)))
		note(which, "bind", errno);
	if ((tcp || flow->connects) && connect(view->fd, (struct sockaddr *)&to, sizeof(to))) {
		if (errno != EINPROGRESS)
			note(which, "connect", errno);
		view->connecting = errno == EINPROGRESS;
	}
	if (!tcp)
		host_send(flow, which, step);
}

void host_send(struct flow *flow, enum which_world which, const struct step *step)
{
	struct sockaddr_in6 to = socket_address(&flow->first.destination, flow->first.destination_port);
	bool connected = flow->connects || flow->first.protocol == IPPROTO_TCP;
	const struct packet *sent = &step->sent[which];

	if (sendto(flow->views[which].fd, sent->payload, sent->size, MSG_NOSIGNAL,
		   connected ? NULL : (struct sockaddr *)&to, connected ? 0 : sizeof(to)) < 0)
		note(which, "send", errno);
}

/* A datagram, or bytes of a stream. Returns false if there was nothing. */
static bool receive(int fd, const char *who, enum which_world which, const struct step *step,
		    struct sockaddr_in6 *from)
{
	char address[INET6_ADDRSTRLEN] = "";
	uint8_t bytes[4096];
	socklen_t length = sizeof(*from);
	ssize_t size;
	bool same;

	memset(from, 0, sizeof(*from));
	size = recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)from, &length);
	if (size < 0 && (errno == EAGAIN || errno == ENOTCONN))
		return false;
	if (size < 0) {
		note(which, who, errno);
		return false;
	}
	inet_ntop(AF_INET6, &from->sin6_addr, address, sizeof(address));
	same = (size_t)size == step->sent[which].size &&
	       !memcmp(bytes, step->sent[which].payload, (size_t)size);
	/* A client's port is NAT's choice. */
	snprintf(world_note(&worlds[which], HOST)->text, ARRIVAL_TEXT, "host: %s: from %s %d %s", who,
		 address, strcmp(who, "socket") ? 0 : ntohs(from->sin6_port),
		 same   ? "what was sent"
		 : size ? "other bytes"
			: "the end");
	return size > 0;
}

/* Returns false if the stream has ended. */
static bool read_stream(int *fd, const char *who, enum which_world which, const struct step *step)
{
	struct sockaddr_in6 from;

	while (receive(*fd, who, which, step, &from))
		;
	if (recv(*fd, &from, 1, MSG_PEEK) < 0 && (errno == EAGAIN || errno == ENOTCONN))
		return true;
	close(*fd);
	*fd = 0;
	return false;
}

static bool serve(enum which_world which, struct step *step)
{
	struct sockaddr_in6 from;
	bool answered = false;
	int fd;

	while (receive(servers[which].datagrams, "server", which, step, &from)) {
		sendto(servers[which].datagrams, "answer", 6, 0, (struct sockaddr *)&from,
		       sizeof(from));
		answered = true;
	}
	while ((fd = accept4(servers[which].listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >=
	       0) {
		int *place = &servers[which].accepted[servers[which].next++ % ACCEPTED];

		note(which, "accept", 0);
		if (*place)
			close(*place);
		*place = fd;
	}
	for (int i = 0; i < ACCEPTED; i++)
		if (servers[which].accepted[i])
			read_stream(&servers[which].accepted[i], "accepted", which, step);
	return answered;
}

/* A connection that has come to be says something. */
static bool speak_first(struct flow *flow, enum which_world which, struct step *step)
{
	struct view *view = &flow->views[which];
	struct pollfd state = {.fd = view->fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int error = 0;

	if (!view->connecting || poll(&state, 1, 0) != 1)
		return false;
	view->connecting = false;
	getsockopt(view->fd, SOL_SOCKET, SO_ERROR, &error, &size);
	note(which, "connect", error);
	if (error)
		return false;
	view->connected = true;
	host_send(flow, which, step);
	return true;
}

bool host_collect(enum which_world which, struct step *step)
{
	bool more = serve(which, step);
	struct sockaddr_in6 from;

	for (int i = 0; i < FLOWS; i++) {
		struct view *view = &flows[i].views[which];

		if (!view->fd)
			continue;
		more = speak_first(&flows[i], which, step) || more;
		if (flows[i].first.protocol == IPPROTO_UDP)
			while (receive(view->fd, "socket", which, step, &from))
				;
		else if (view->connected && !read_stream(&view->fd, "socket", which, step))
			view->connected = false;
	}
	return more;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets.h - sockets of IPv6 that also carry IPv4, and addresses as a socket of either family
 * wants them.
 */
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include "tool.h"

/* An address in the form of its socket's family. */
union socket_address {
	struct sockaddr any;
	struct sockaddr_in ipv4;
	struct sockaddr_in6 ipv6;
};

/* Returns the size of the result. */
static inline socklen_t address_for(union socket_address *result, int family,
				    const struct sockaddr_in6 *address)
{
	memset(result, 0, sizeof(*result));
	if (family == AF_INET6) {
		result->ipv6 = *address;
		return sizeof(result->ipv6);
	}
	result->ipv4.sin_family = AF_INET;
	result->ipv4.sin_port = address->sin6_port;
	result->ipv4.sin_addr.s_addr = ipv4_of(address);
	return sizeof(result->ipv4);
}

static inline void set_option(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		die("setsockopt");
}

/* A socket for both families; `type` may have SOCK_NONBLOCK. */
static inline int open_dual_socket(int type, int protocol)
{
	int fd = socket(AF_INET6, type | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		die("socket");
	set_option(fd, IPPROTO_IPV6, IPV6_V6ONLY, 0);
	return fd;
}

static inline void bind_socket(int fd, const struct sockaddr_in6 *address)
{
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)))
		die("bind");
}

/* At this port of all addresses. A listener may take it from connections that have just ended. */
static inline int open_bound_socket(int type, int port)
{
	struct sockaddr_in6 any = any_address(port);
	int fd = open_dual_socket(type, 0);

	set_option(fd, SOL_SOCKET, SO_REUSEADDR, (type & ~SOCK_NONBLOCK) == SOCK_STREAM);
	bind_socket(fd, &any);
	return fd;
}

static inline int open_raw_socket(int family, int protocol)
{
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC, protocol);

	if (fd < 0)
		die("raw socket");
	return fd;
}

/* Two of them: one does not serve both families. `answer` receives what has come. */
static inline _Noreturn void serve_raw(const int sockets[2], void (*answer)(int fd, int family))
{
	struct pollfd readable[2] = {{.fd = sockets[0], .events = POLLIN},
				     {.fd = sockets[1], .events = POLLIN}};

	for (;;) {
		if (poll(readable, 2, -1) < 0)
			die("poll");
		for (int i = 0; i < 2; i++)
			if (readable[i].revents)
				answer(readable[i].fd, i ? AF_INET6 : AF_INET);
	}
}

/* -1 and errno. */
static inline int connect_socket(int fd, const struct sockaddr_in6 *address)
{
	return connect(fd, (const struct sockaddr *)address, sizeof(*address));
}

static inline ssize_t receive_from(int fd, void *bytes, size_t size, struct sockaddr_in6 *peer)
{
	socklen_t length = sizeof(*peer);

	return recvfrom(fd, bytes, size, 0, (struct sockaddr *)peer, &length);
}

static inline ssize_t send_to(int fd, const void *bytes, size_t size,
			      const struct sockaddr_in6 *peer)
{
	return sendto(fd, bytes, size, MSG_NOSIGNAL, (const struct sockaddr *)peer, sizeof(*peer));
}

/* Waits for so long, or with -1 for ever. False: nothing has come. */
static inline bool has_received(int fd, int milliseconds)
{
	struct pollfd readable = {.fd = fd, .events = POLLIN};

	return poll(&readable, 1, milliseconds) != 0;
}

/* which: SO_SNDTIMEO, which limits connect() as well, or SO_RCVTIMEO */
static inline void limit_time(int fd, int which, int milliseconds)
{
	struct timeval limit = {milliseconds / 1000, milliseconds % 1000 * 1000};

	if (setsockopt(fd, SOL_SOCKET, which, &limit, sizeof(limit)))
		die("setsockopt");
}

/* close() sends RST instead of FIN. */
static inline void reset_on_close(int fd)
{
	struct linger none = {.l_onoff = 1, .l_linger = 0};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none));
}

/* A datagram from or to this peer, with control data of that size. */
static inline struct msghdr message_of(const struct sockaddr_in6 *peer, struct iovec *data,
				       void *control, size_t size)
{
	return (struct msghdr){
		.msg_name = (void *)peer,
		.msg_namelen = sizeof(*peer),
		.msg_iov = data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = size,
	};
}

/* Receives a datagram and learns its source and the address that it was sent to. The socket has
 * IPV6_RECVPKTINFO. */
static inline ssize_t receive_with_addresses(int fd, void *bytes, size_t size,
					     struct sockaddr_in6 *from, struct in6_addr *to)
{
	char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
	struct iovec data = {bytes, size};
	struct msghdr message = message_of(from, &data, control, sizeof(control));
	ssize_t got = recvmsg(fd, &message, 0);
	struct cmsghdr *first = got < 0 ? NULL : CMSG_FIRSTHDR(&message);
	struct in6_pktinfo info;

	if (!first || first->cmsg_level != IPPROTO_IPV6 || first->cmsg_type != IPV6_PKTINFO)
		return -1;
	memcpy(&info, CMSG_DATA(first), sizeof(info));
	*to = info.ipi6_addr;
	return got;
}

/* Sends a datagram with this source address, through the interface that routing chooses. */
static inline ssize_t send_with_source(int fd, const void *bytes, size_t size,
				       const struct in6_addr *source, const struct sockaddr_in6 *to)
{
	struct in6_pktinfo info = {.ipi6_addr = *source};
	char control[CMSG_SPACE(sizeof(info))] = {0};
	struct iovec data = {(void *)bytes, size};
	struct msghdr message = message_of(to, &data, control, sizeof(control));
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = IPPROTO_IPV6;
	header->cmsg_type = IPV6_PKTINFO;
	header->cmsg_len = CMSG_LEN(sizeof(info));
	memcpy(CMSG_DATA(header), &info, sizeof(info));
	return sendmsg(fd, &message, 0);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets.h - sockets of the host: those that take what comes to a port from anybody, and
 * those that are connected.
 */
#ifndef NET_SOCKETS_H
#define NET_SOCKETS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "cni/address.h"
#include "cni/error.h"

struct nl_sock;

enum socket_state {
	SOCKET_LISTENING, /* TCP and SCTP: it listens; UDP: it is bound and not connected */
	SOCKET_BOUND,     /* also TCP that is bound and does not listen yet */
	SOCKET_CONNECTED,
};

/* Ports in host byte order. */
struct host_socket {
	enum protocol protocol;
	bool both_families; /* at ::, and takes IPv4 too */
	uint16_t port;
	uint16_t peer_port;
	uint32_t interface; /* that it is bound to; 0: none */
	uint32_t inode;     /* as in /proc/PID/fd */
	uint64_t cookie;    /* SO_COOKIE */
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t peer[CNI_ADDRESS_SIZE]; /* not connected: any address */
};

/* Begins as {0}. */
struct socket_list {
	struct host_socket *sockets;
	size_t count;
};

struct socket_query {
	enum protocol protocol;
	bool ipv4; /* also sockets that are IPv4 and nothing else */
	enum socket_state state;
	const struct port_range *ranges; /* of the ports; PORT_COVER_RANGES at most. Without any
					  * the connected ones are all found, others none */
	size_t range_count;
};

/* Adds what the kernel has in the namespace of the socket, which speaks NETLINK_SOCK_DIAG.
 * Nothing is ever added of a protocol that the kernel doesn't have. Code 102: it has the
 * protocol, but cannot say (no udp_diag or tcp_diag). */
int sockets_find(struct socket_list *list, struct nl_sock *socket, const struct socket_query *query,
		 struct cni_error *err);

/* The kernel ends a connected one: what its program calls next fails with ECONNABORTED, and it is
 * connected to nobody. 0 also where there is no such socket any more; else -errno: the kernel may
 * not have it (-EOPNOTSUPP or -EINVAL, without CONFIG_INET_DIAG_DESTROY). */
int sockets_end(struct nl_sock *socket, const struct host_socket *ended);

void sockets_release(struct socket_list *list);

#endif

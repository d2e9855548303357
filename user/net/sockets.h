/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sockets.h - sockets of the host: those that have a port, and those that are connected.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "lib/error.h"

struct netlink;

enum socket_state {
	SOCKET_BOUND,     /* TCP: listens, or may yet; SCTP: listens; UDP: is not connected */
	SOCKET_LISTENING, /* the same without those that do not listen yet, which takes less long */
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
	uint32_t waiting;   /* of TCP that listens: connections that it has not accepted yet ... */
	uint32_t backlog;   /* ... and how many may wait */
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t peer[CNI_ADDRESS_SIZE]; /* not connected: any address */
};

/* Begins as {0}. */
struct socket_list {
	struct host_socket *sockets;
	size_t count;
};

/* Adds all that the kernel has in the namespace of the netlink socket, which speaks
 * NETLINK_SOCK_DIAG; nothing of a protocol that the kernel doesn't have.
 * CNI_ERROR_KERNEL_REFUSED: it has the protocol, but cannot say (no udp_diag or tcp_diag). */
int sockets_find(struct socket_list *list, struct netlink *socket, enum protocol protocol,
		 enum socket_state state, struct cni_error *err);

/* Adds those of all protocols that are bound, in the network namespace of this thread.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int sockets_find_bound(struct socket_list *list, struct cni_error *err);

/* Adds the one of TCP or UDP that gets what comes to this port at this address, from wherever that
 * is, if it is not there yet: a socket that listens, or is not connected. To ask for all that are
 * bound takes milliseconds, this some microseconds. The netlink socket speaks NETLINK_SOCK_DIAG.
 * What the kernel does not say is left out. */
void sockets_find_at(struct socket_list *list, struct netlink *socket, enum protocol protocol,
		     const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

/* Has the kernel end a connected one: what its program calls next fails with ECONNABORTED, and it
 * is connected to nobody. 0, also where there is no such socket any more; else -1 and errno:
 * EOPNOTSUPP or EINVAL from a kernel without CONFIG_INET_DIAG_DESTROY. */
int sockets_end(struct netlink *socket, const struct host_socket *ended);

void sockets_release(struct socket_list *list);

#define cleanup_sockets __attribute__((cleanup(sockets_release)))

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sockets.h - sockets of the host that have a port. */
#pragma once

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "abi.h"
#include "lib/address.h"
#include "lib/error.h"

struct netlink;

#define PROCESS_NAME_SIZE 64
#define HOLDER_TEXT_SIZE (PROCESS_NAME_SIZE + 32) /* of its name and number */

/* A process that has a socket open. */
struct socket_holder {
	pid_t pid; /* 0: /proc shows none; the kernel has sockets, too */
	char name[PROCESS_NAME_SIZE];
	bool has_argument; /* that was asked for */
};

/* TCP: it listens, or may yet; SCTP: it listens; UDP: it is not connected. Ports are in host byte
 * order. */
struct host_socket {
	enum protocol protocol;
	bool both_families; /* at ::, and takes IPv4 too */
	uint16_t port;
	uint32_t inode;   /* as in /proc/PID/fd */
	uint32_t waiting; /* of TCP that listens: connections that it has not accepted yet ... */
	uint32_t backlog; /* ... and how many may wait */
	uint8_t address[CNI_ADDRESS_SIZE];
	struct socket_holder holder; /* of processes_find_holders() */
};

/* Begins as {0}. */
struct socket_list {
	struct host_socket *sockets;
	size_t count;
};

/* Adds those of all protocols, in the network namespace of this thread; nothing of a protocol that
 * the kernel doesn't have. CNI_ERROR_KERNEL_REFUSED: it has the protocol, but cannot say (no
 * udp_diag or tcp_diag); CNI_ERROR_IO. */
int sockets_find_bound(struct socket_list *list, struct cni_error *err);

/* The same of one protocol, without those of TCP that do not listen yet: for what takes
 * milliseconds above it takes some 60 us. The netlink socket speaks NETLINK_SOCK_DIAG.
 * CNI_ERROR_KERNEL_REFUSED. */
int sockets_find_listening(struct socket_list *list, struct netlink *socket, enum protocol protocol,
			   struct cni_error *err);

/* Adds the one of TCP or UDP that gets what comes to this port at this address, from wherever that
 * is, if it is not there yet: a socket that listens, or is not connected. To ask for all that are
 * bound takes milliseconds, this some microseconds. The netlink socket speaks NETLINK_SOCK_DIAG.
 * What the kernel does not say is left out. */
void sockets_find_at(struct socket_list *list, struct netlink *socket, enum protocol protocol,
		     const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

void sockets_release(struct socket_list *list);

enum listening {
	LISTENING,
	LISTENING_AT_LOOPBACK, /* only */
	LISTENING_ELSEWHERE,   /* only at another address, or the other family */
	LISTENING_NOT,
};

/* *where becomes the address of the socket that listens, or of the one that is at fault; NULL:
 * there is neither. */
enum listening listening_at(const struct socket_list *sockets, enum protocol protocol,
			    const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			    const uint8_t **where);

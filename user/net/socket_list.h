/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_list.h - sockets of the network namespace we are in (sock_diag(7)).
 */
#ifndef NET_SOCKET_LIST_H
#define NET_SOCKET_LIST_H

#include <stddef.h>
#include <stdint.h>

#include "cni/address.h"
#include "cni/error.h"

/* A socket of TCP or UDP. Ports in host byte order; an address that is not set is any address
 * of its family, as in struct portmap_key. */
struct inet_socket {
	uint8_t source[CNI_ADDRESS_SIZE];
	uint8_t destination[CNI_ADDRESS_SIZE];
	uint16_t source_port;
	uint16_t destination_port;
	uint32_t inode;  /* as in /proc/PID/fd */
	uint64_t cookie; /* SO_COOKIE */
};

/* Those of the IP protocol in any of the states, a bit each: 1 << TCP_LISTEN. A UDP socket
 * that is connected is in TCP_ESTABLISHED, another one in TCP_CLOSE. Takes a millisecond or
 * two for UDP, whose whole table is looked through. *sockets is malloc'ed. Code 5, also where
 * the kernel has no sock_diag. */
int socket_list_read(int protocol, uint32_t states, struct inet_socket **sockets, size_t *count,
		     struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listeners.h - sockets of the host that take what comes to a port from anybody.
 */
#ifndef NET_LISTENERS_H
#define NET_LISTENERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi.h"
#include "cni/address.h"
#include "cni/error.h"

struct nl_sock;

/* TCP and SCTP: it listens; UDP: it is bound to the port and not connected. */
struct listener {
	enum protocol protocol;
	bool both_families; /* at ::, and takes IPv4 too */
	uint16_t port;
	uint32_t inode; /* of the socket */
	uint8_t address[CNI_ADDRESS_SIZE];
};

/* Begins as {0}. */
struct listener_list {
	struct listener *listeners;
	size_t count;
};

struct listener_query {
	enum protocol protocol;
	bool ipv4;                       /* also sockets that are IPv4 and nothing else */
	bool bound_too;                  /* also TCP that is bound and does not listen yet */
	const struct port_range *ranges; /* PORT_COVER_RANGES at most */
	size_t range_count;
};

/* Adds what the kernel has in the namespace of the socket, which speaks NETLINK_SOCK_DIAG.
 * Nothing is ever added of a protocol that the kernel doesn't have. Code 102: it has the
 * protocol, but cannot say (no udp_diag or tcp_diag). */
int listeners_find(struct listener_list *list, struct nl_sock *socket,
		   const struct listener_query *query, struct cni_error *err);
void listeners_release(struct listener_list *list);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * netlink.h - netlink sockets and single requests on them.
 */
#ifndef NET_NETLINK_H
#define NET_NETLINK_H

#include <netlink/msg.h>
#include <netlink/netlink.h>

#include "lib/error.h"

/* A socket in the namespace the process is in, to talk to rtnetlink. NULL and code 5. */
struct nl_sock *netlink_open(struct cni_error *err);
/* The same to talk to another part of the kernel: NETLINK_SOCK_DIAG. */
struct nl_sock *netlink_open_protocol(int protocol, struct cni_error *err);
/* A socket that speaks for another namespace: only its making happens in there. */
struct nl_sock *netlink_open_in(int netns, struct cni_error *err);

typedef int (*netlink_parse)(struct nl_msg *message, void *context);

/* Sends a request of this type with this fixed header and calls `parse` for every
 * message that comes back, until the dump ends; else for the one message that is the answer,
 * or, with NLM_F_ACK, until the kernel says that it is done. 0, or libnl's negative
 * NLE_ code, which for one object that does not exist is an ordinary answer, and errno where
 * the kernel refused; -NLE_DUMP_INTR: the list changed meanwhile, ask again. */
int netlink_get(struct nl_sock *socket, int type, int flags, void *header, size_t size,
		netlink_parse parse, void *context);

/* The same with a request that has been made, or not, for want of memory: NULL. Frees it. */
int netlink_request(struct nl_sock *socket, struct nl_msg *request, netlink_parse parse,
		    void *context);

static inline void netlink_cleanup(struct nl_sock **socket)
{
	nl_socket_free(*socket);
}

#define cleanup_netlink __attribute__((cleanup(netlink_cleanup)))

#endif

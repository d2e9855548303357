/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.h - requests to the kernel by netlink, and its answers. */
#pragma once

#include <linux/netlink.h>
#include <netlink/attr.h>
#include <netlink/msg.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"

/* A socket to one part of the kernel. libnl makes and reads the messages; its own sockets take four
 * more system calls each. */
struct netlink {
	int fd;
};

/* Opens a socket in the namespace the process is in, for one part of the kernel: NETLINK_ROUTE,
 * NETLINK_SOCK_DIAG. NULL and CNI_ERROR_IO. */
struct netlink *netlink_open(int protocol, struct cni_error *err);
/* Returns the process's own one, which is opened once and stays open, in the namespace that the
 * process was in then; NULL and CNI_ERROR_IO. Nothing is asked by it while an answer of it is being
 * taken. */
struct netlink *netlink_own(int protocol, struct cni_error *err);
/* Closes them: what follows may need other files, which the process may have no room for. */
void netlink_close_own(void);
/* Returns that for rtnetlink. */
struct netlink *netlink_route(struct cni_error *err);
/* Reads SO_NETNS_COOKIE (Linux 5.14) of the namespace this process runs in, by that socket.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int netlink_get_netns_cookie(uint64_t *cookie, struct cni_error *err);
/* Opens one for rtnetlink in another namespace: only its making happens in there. */
struct netlink *netlink_open_in(int netns, struct cni_error *err);

/* Makes a request that begins with this fixed header; attributes are put behind it. */
struct nl_msg *netlink_begin(int type, int flags, void *fixed, size_t size);

/* Takes one message of an answer. */
typedef void (*netlink_take)(struct nlmsghdr *message, void *context);

/* Sends the request and calls `take` for every message that comes back, until the dump ends; else
 * for the one message that is the answer, or, with NLM_F_ACK, until the kernel says that it is
 * done. 0, or -1 and the kernel's errno, which for one object that does not exist is an ordinary
 * answer. EAGAIN: the list changed during the dump; what was taken may miss some of it. ENOTSOCK:
 * the socket is NULL. */
int netlink_ask(struct netlink *socket, struct nl_msg *request, netlink_take take, void *context);

/* Returns the number by which the namespace of the socket, which speaks rtnetlink, knows another
 * one, as IFLA_LINK_NETNSID has it. -1: it knows it by none. */
int netlink_netns_id(struct netlink *socket, int netns);

/* Finds an attribute inside of another one, which may be NULL. NULL: there is none. */
static inline struct nlattr *netlink_find(const struct nlattr *nest, int type)
{
	return nest ? nla_find(nla_data(nest), nla_len(nest), type) : NULL;
}

/* Returns whether the attribute is there and is this text. */
static inline bool netlink_is(const struct nlattr *attribute, const char *text)
{
	return attribute && !nla_strcmp(attribute, text);
}

/* Closes it; NULL: does nothing. */
void netlink_close(struct netlink **socket);

static inline void netlink_cleanup_request(struct nl_msg **request)
{
	nlmsg_free(*request);
}

#define cleanup_netlink __attribute__((cleanup(netlink_close)))
#define cleanup_request __attribute__((cleanup(netlink_cleanup_request)))

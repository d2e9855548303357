/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.c - netlink sockets and single requests on them. */
#include "net/netlink.h"

#include <linux/rtnetlink.h>
#include <stdbool.h>

#include "net/netns.h"

struct nl_sock *netlink_open_protocol(int protocol, struct cni_error *err)
{
	struct nl_sock *socket = nl_socket_alloc();
	int result;

	if (!socket) {
		cni_error_no_memory(err);
		return NULL;
	}
	result = nl_connect(socket, protocol);
	if (result < 0) {
		nl_socket_free(socket);
		cni_error_set(err, CNI_ERROR_IO, "cannot open a netlink socket: %s",
			      nl_geterror(result));
		return NULL;
	}
	return socket;
}

struct nl_sock *netlink_open(struct cni_error *err)
{
	return netlink_open_protocol(NETLINK_ROUTE, err);
}

static int open_here(void *context, struct cni_error *err)
{
	struct nl_sock **socket = context;

	*socket = netlink_open(err);
	return *socket ? 0 : -1;
}

struct nl_sock *netlink_open_in(int netns, struct cni_error *err)
{
	struct nl_sock *socket = NULL;

	if (netns_call(netns, open_here, &socket, err))
		return NULL;
	return socket;
}

/* A single reply is followed by an acknowledgement, a dump ends by itself. */
static int finish(struct nl_msg *message, void *context)
{
	*(bool *)context = true;
	return NL_STOP;
}

/* Said by any message of a dump during which the list changed. The rest is still to be
 * read: it must not be taken for the answer to the next request. */
static int interrupt(struct nl_msg *message, void *context)
{
	*(bool *)context = true;
	return NL_OK;
}

static int receive(struct nl_sock *socket, struct nl_cb *callbacks)
{
	bool finished = false, interrupted = false;
	int result = 0;

	nl_cb_set(callbacks, NL_CB_DUMP_INTR, NL_CB_CUSTOM, interrupt, &interrupted);
	nl_cb_set(callbacks, NL_CB_ACK, NL_CB_CUSTOM, finish, &finished);
	nl_cb_set(callbacks, NL_CB_FINISH, NL_CB_CUSTOM, finish, &finished);
	while (!finished && result >= 0)
		result = nl_recvmsgs(socket, callbacks);
	if (result < 0)
		return result;
	return interrupted ? -NLE_DUMP_INTR : 0;
}

int netlink_get(struct nl_sock *socket, int type, int flags, void *header, size_t size,
		int (*parse)(struct nl_msg *message, void *context), void *context)
{
	struct nl_cb *callbacks = nl_cb_alloc(NL_CB_DEFAULT);
	int result;

	if (!callbacks)
		return -NLE_NOMEM;
	nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, parse, context);
	result = nl_send_simple(socket, type, NLM_F_REQUEST | flags, header, size);
	if (result >= 0)
		result = receive(socket, callbacks);
	nl_cb_put(callbacks);
	return result;
}

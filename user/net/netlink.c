/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.c - netlink sockets and single requests on them. */
#include "net/netlink.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>

#include "net/netns.h"

/* What a dump comes in at most; a link without its statistics takes less than 2 KiB. */
#define BUFFER_SIZE 32768

/* Each message is read once, and no acknowledgement asked for behind an answer: two of three
 * system calls are saved by that. */
static void be_quick(struct nl_sock *socket)
{
	nl_socket_disable_auto_ack(socket);
	nl_socket_disable_msg_peek(socket);
}

struct nl_sock *netlink_open_protocol(int protocol, struct cni_error *err)
{
	struct nl_sock *socket = nl_socket_alloc();
	int result;

	if (!socket || nl_socket_set_msg_buf_size(socket, BUFFER_SIZE) < 0) {
		nl_socket_free(socket);
		cni_error_no_memory(err);
		return NULL;
	}
	be_quick(socket);
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

struct exchange {
	netlink_parse parse;
	void *context;
	bool wants_ack;
	bool finished;
	bool interrupted;
};

/* A dump ends by itself, and what is acknowledged by that. */
static int finish(struct nl_msg *message, void *context)
{
	struct exchange *exchange = context;

	exchange->finished = true;
	return NL_STOP;
}

static int take(struct nl_msg *message, void *context)
{
	struct exchange *exchange = context;

	if (!(nlmsg_hdr(message)->nlmsg_flags & NLM_F_MULTI) && !exchange->wants_ack)
		exchange->finished = true;
	return exchange->parse ? exchange->parse(message, exchange->context) : NL_OK;
}

/* Said by any message of a dump during which the list changed. The rest is still to be
 * read: it must not be taken for the answer to the next request. */
static int interrupt(struct nl_msg *message, void *context)
{
	struct exchange *exchange = context;

	exchange->interrupted = true;
	return NL_OK;
}

static int refuse(struct sockaddr_nl *from, struct nlmsgerr *said, void *context)
{
	errno = -said->error;
	return -nl_syserr2nlerr(said->error);
}

static int receive(struct nl_sock *socket, struct nl_cb *callbacks, struct exchange *exchange)
{
	int result = 0;

	nl_cb_set(callbacks, NL_CB_VALID, NL_CB_CUSTOM, take, exchange);
	nl_cb_set(callbacks, NL_CB_DUMP_INTR, NL_CB_CUSTOM, interrupt, exchange);
	nl_cb_set(callbacks, NL_CB_ACK, NL_CB_CUSTOM, finish, exchange);
	nl_cb_set(callbacks, NL_CB_FINISH, NL_CB_CUSTOM, finish, exchange);
	nl_cb_err(callbacks, NL_CB_CUSTOM, refuse, NULL);
	while (!exchange->finished && result >= 0)
		result = nl_recvmsgs(socket, callbacks);
	if (result < 0)
		return result;
	return exchange->interrupted ? -NLE_DUMP_INTR : 0;
}

int netlink_request(struct nl_sock *socket, struct nl_msg *request, netlink_parse parse,
		    void *context)
{
	struct nl_cb *callbacks = nl_cb_alloc(NL_CB_DEFAULT);
	struct exchange exchange = {.parse = parse, .context = context};
	int result = -NLE_NOMEM;

	if (callbacks && request) {
		exchange.wants_ack = nlmsg_hdr(request)->nlmsg_flags & NLM_F_ACK;
		result = nl_send_auto(socket, request);
	}
	if (result >= 0)
		result = receive(socket, callbacks, &exchange);
	nlmsg_free(request);
	nl_cb_put(callbacks);
	return result;
}

int netlink_get(struct nl_sock *socket, int type, int flags, void *header, size_t size,
		netlink_parse parse, void *context)
{
	struct nl_msg *request = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);

	if (request && nlmsg_append(request, header, size, 0)) {
		nlmsg_free(request);
		request = NULL;
	}
	return netlink_request(socket, request, parse, context);
}

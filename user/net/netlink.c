/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.c - requests to the kernel by netlink, and its answers. */
#include "net/netlink.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/memory.h"
#include "net/netns.h"

/* What a dump comes in at most. */
#define ANSWER_SIZE 32768

/* With a descriptor that we made libnl leaves the buffers' sizes and the port to the kernel: that
 * saves three of six system calls for each socket. */
struct nl_sock *netlink_open(int protocol, struct cni_error *err)
{
	struct nl_sock *opened = need(nl_socket_alloc());
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol), result;

	/* Each message is read once, and no acknowledgement asked for behind an answer: that saves
	 * two of three system calls. */
	nl_socket_disable_auto_ack(opened);
	nl_socket_disable_msg_peek(opened);
	nl_socket_set_msg_buf_size(opened, ANSWER_SIZE);
	result = fd < 0 ? -1 : nl_socket_set_fd(opened, protocol, fd);
	if (!result)
		return opened;
	cni_error_set(err, CNI_ERROR_IO, "cannot open a netlink socket: %s",
		      fd < 0 ? strerror(errno) : nl_geterror(result));
	if (fd >= 0)
		close(fd);
	nl_socket_free(opened);
	return NULL;
}

struct nl_sock *netlink_route(struct cni_error *err)
{
	static struct nl_sock *socket;

	if (!socket)
		socket = netlink_open(NETLINK_ROUTE, err);
	return socket;
}

static int open_here(void *context, struct cni_error *err)
{
	struct nl_sock **socket = context;

	*socket = netlink_open(NETLINK_ROUTE, err);
	return *socket ? 0 : -1;
}

struct nl_sock *netlink_open_in(int netns, struct cni_error *err)
{
	struct nl_sock *socket = NULL;

	netns_call(netns, open_here, &socket, err);
	return socket;
}

struct nl_msg *netlink_begin(int type, int flags, void *fixed, size_t size)
{
	struct nl_msg *request = need(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags));

	need(nlmsg_append(request, fixed, size, NLMSG_ALIGNTO) ? NULL : request);
	return request;
}

struct exchange {
	netlink_take take;
	void *context;
	bool wants_ack, finished;
	int error; /* the first one */
};

static void fail(struct exchange *exchange, int error)
{
	if (!exchange->error)
		exchange->error = error;
}

/* In a container's namespace its own processes may write to our socket, which the kernel alone has
 * anything to say to. */
static int check_sender(struct nl_msg *message, void *context)
{
	return nlmsg_get_src(message)->nl_pid ? NL_SKIP : NL_OK;
}

/* Goes on after a failure: the rest must not be taken for the answer to the next request. */
static int take_message(struct nl_msg *message, void *context)
{
	struct nlmsghdr *header = nlmsg_hdr(message);
	struct exchange *exchange = context;

	if (!(header->nlmsg_flags & NLM_F_MULTI) && !exchange->wants_ack)
		exchange->finished = true;
	if (exchange->take && !exchange->error)
		exchange->take(header, exchange->context);
	return NL_OK;
}

/* A dump may end with an error, too. */
static int finish(struct nl_msg *message, void *context)
{
	const struct nlmsghdr *header = nlmsg_hdr(message);
	struct exchange *exchange = context;
	int error = 0;

	if (nlmsg_datalen(header) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(header), sizeof(error));
	if (error < 0)
		fail(exchange, -error);
	exchange->finished = true;
	return NL_OK;
}

static int refuse(struct sockaddr_nl *from, struct nlmsgerr *said, void *context)
{
	fail(context, -said->error);
	return NL_STOP;
}

int netlink_ask(struct nl_sock *socket, struct nl_msg *request, netlink_take take, void *context)
{
	struct exchange exchange = {.take = take, .context = context};
	int result = -NLE_NOMEM;

	errno = ENOMEM;
	if (socket && request) {
		exchange.wants_ack = nlmsg_hdr(request)->nlmsg_flags & NLM_F_ACK;
		nl_socket_modify_cb(socket, NL_CB_MSG_IN, NL_CB_CUSTOM, check_sender, NULL);
		nl_socket_modify_cb(socket, NL_CB_VALID, NL_CB_CUSTOM, take_message, &exchange);
		nl_socket_modify_cb(socket, NL_CB_ACK, NL_CB_CUSTOM, finish, &exchange);
		nl_socket_modify_cb(socket, NL_CB_FINISH, NL_CB_CUSTOM, finish, &exchange);
		nl_socket_modify_err_cb(socket, NL_CB_CUSTOM, refuse, &exchange);
		errno = EIO; /* unless a system call says more */
		result = nl_send_auto(socket, request);
	}
	while (result >= 0 && !exchange.finished)
		result = nl_recvmsgs_default(socket);
	if (result < 0)
		fail(&exchange, result == -NLE_DUMP_INTR ? EAGAIN : errno);
	errno = exchange.error;
	return exchange.error ? -1 : 0;
}

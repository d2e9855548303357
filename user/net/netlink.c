/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netlink.c - requests to the kernel by netlink, and its answers. */
#include "net/netlink.h"

#include <errno.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/memory.h"
#include "net/netns.h"

#ifndef SO_NETNS_COOKIE
#define SO_NETNS_COOKIE 71
#endif

/* What a dump comes in at most. */
#define ANSWER_SIZE 32768

struct netlink *netlink_open(int protocol, struct cni_error *err)
{
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	struct netlink *opened;

	if (fd < 0)
		return cni_error_null(err, CNI_ERROR_IO, "cannot open a netlink socket: %s",
				      strerror(errno));
	opened = or_exit(malloc(sizeof(*opened)));
	opened->fd = fd;
	return opened;
}

void netlink_close(struct netlink **socket)
{
	if (*socket)
		close((*socket)->fd);
	free(*socket);
	*socket = NULL;
}

static struct netlink *own[MAX_LINKS];

struct netlink *netlink_own(int protocol, struct cni_error *err)
{
	if (!own[protocol])
		own[protocol] = netlink_open(protocol, err);
	return own[protocol];
}

void netlink_close_own(void)
{
	for (int protocol = 0; protocol < MAX_LINKS; protocol++)
		netlink_close(&own[protocol]);
}

struct netlink *netlink_route(struct cni_error *err)
{
	return netlink_own(NETLINK_ROUTE, err);
}

int netlink_get_netns_cookie(uint64_t *cookie, struct cni_error *err)
{
	struct netlink *route = netlink_route(err);
	socklen_t size = sizeof(*cookie);

	if (!route)
		return -1;
	if (!getsockopt(route->fd, SOL_SOCKET, SO_NETNS_COOKIE, cookie, &size))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the kernel does not tell the network namespace's cookie (%s);"
			     " Linux 5.15 or newer is needed",
			     strerror(errno));
}

static int open_here(void *context, struct cni_error *err)
{
	struct netlink **socket = context;

	*socket = netlink_open(NETLINK_ROUTE, err);
	return *socket ? 0 : -1;
}

struct netlink *netlink_open_in(int netns, struct cni_error *err)
{
	struct netlink *socket = NULL;

	netns_call(netns, open_here, &socket, err);
	return socket;
}

struct nl_msg *netlink_begin(int type, int flags, void *fixed, size_t size)
{
	struct nl_msg *request = or_exit(nlmsg_alloc_simple(type, NLM_F_REQUEST | flags));

	or_exit(nlmsg_append(request, fixed, size, NLMSG_ALIGNTO) ? NULL : request);
	return request;
}

struct exchange {
	netlink_take take;
	void *context;
	uint32_t sequence; /* of the request, and so of the answer */
	bool wants_ack, finished, changed;
	int error; /* the first one */
};

static void note_error(struct exchange *exchange, int error)
{
	if (!exchange->error)
		exchange->error = error;
}

/* An acknowledgement, an error, or a dump's end, which may be an error, too: each begins with the
 * kernel's negative errno, or 0. */
static void finish_exchange(struct exchange *exchange, const struct nlmsghdr *header)
{
	int error = 0;

	if (nlmsg_datalen(header) >= (int)sizeof(error))
		memcpy(&error, nlmsg_data(header), sizeof(error));
	if (error < 0)
		note_error(exchange, -error);
	exchange->finished = true;
}

static void take_message(struct exchange *exchange, struct nlmsghdr *header)
{
	exchange->changed |= header->nlmsg_flags & NLM_F_DUMP_INTR;
	if (header->nlmsg_type == NLMSG_ERROR || header->nlmsg_type == NLMSG_DONE) {
		finish_exchange(exchange, header);
		return;
	}
	if (!(header->nlmsg_flags & NLM_F_MULTI) && !exchange->wants_ack)
		exchange->finished = true;
	if (exchange->take && !exchange->error)
		exchange->take(header, exchange->context);
}

/* In a container's namespace its own processes may write to our socket, which the kernel alone has
 * anything to say to. Returns the size, or -1 and errno. */
static ssize_t receive_from_kernel(const struct netlink *socket, void *answer)
{
	struct iovec vector = {answer, ANSWER_SIZE};
	struct sockaddr_nl from;
	struct msghdr message;
	ssize_t size;

	do {
		message = (struct msghdr){.msg_name = &from,
					  .msg_namelen = sizeof(from),
					  .msg_iov = &vector,
					  .msg_iovlen = 1};
		size = recvmsg(socket->fd, &message, 0);
	} while (size < 0 ? errno == EINTR : from.nl_pid != 0);
	if (size < 0 || !(message.msg_flags & MSG_TRUNC))
		return size;
	errno = EMSGSIZE;
	return -1;
}

/* Of an earlier request that failed half-way more may still come. */
static void read_answer(const struct netlink *socket, struct exchange *exchange)
{
	_Alignas(struct nlmsghdr) uint8_t answer[ANSWER_SIZE];

	while (!exchange->finished) {
		struct nlmsghdr *header = (struct nlmsghdr *)answer;
		ssize_t size = receive_from_kernel(socket, answer);
		int left = (int)size;

		if (size < 0) {
			note_error(exchange, errno);
			return;
		}
		for (; nlmsg_ok(header, left); header = nlmsg_next(header, &left))
			if (header->nlmsg_seq == exchange->sequence)
				take_message(exchange, header);
	}
}

int netlink_ask(struct netlink *socket, struct nl_msg *request, netlink_take take, void *context)
{
	static uint32_t last_sequence;
	struct nlmsghdr *header = nlmsg_hdr(request);
	struct exchange exchange = {
		.take = take,
		.context = context,
		.sequence = ++last_sequence,
		.wants_ack = header->nlmsg_flags & NLM_F_ACK,
	};

	if (!socket) {
		errno = ENOTSOCK;
		return -1;
	}
	header->nlmsg_seq = exchange.sequence;
	if (send(socket->fd, header, header->nlmsg_len, 0) < 0)
		return -1;
	read_answer(socket, &exchange);
	if (exchange.changed)
		note_error(&exchange, EAGAIN);
	errno = exchange.error;
	return exchange.error ? -1 : 0;
}

static void take_netns_id(struct nlmsghdr *message, void *context)
{
	nla_memcpy(context, nlmsg_find_attr(message, sizeof(struct rtgenmsg), NETNSA_NSID),
		   sizeof(int));
}

int netlink_netns_id(struct netlink *socket, int netns)
{
	struct rtgenmsg header = {0};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETNSID, 0, &header, sizeof(header));
	int id = NETNSA_NSID_NOT_ASSIGNED;

	nla_put_u32(request, NETNSA_FD, (uint32_t)netns);
	return netlink_ask(socket, request, take_netns_id, &id) ? NETNSA_NSID_NOT_ASSIGNED : id;
}

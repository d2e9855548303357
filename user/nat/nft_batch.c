/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_batch.c - requests that change nf_tables, and that the kernel carries out all or none. */
#include "nat/nft_rule.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/memory.h"
#include "net/netlink.h"

#define ANSWER_SIZE 8192
#define ANSWER_SECONDS 5

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

/* A kernel that has nf_conntrack built in shows its parameters, and has the rest built in, too. */
bool netfilter_has(const char *module)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/module/%s", module);
	return is_there(path) ||
	       (!is_there("/sys/module/nf_conntrack/initstate") &&
		(is_there("/sys/module/nf_conntrack") || !is_there("/sys/module")));
}

struct nl_msg *nft_request_begin(int type, uint8_t family, int flags)
{
	struct nfgenmsg fixed = {.nfgen_family = family, .version = NFNETLINK_V0};

	return netlink_begin(NFNL_SUBSYS_NFTABLES << 8 | type, flags, &fixed, sizeof(fixed));
}

/* No number is used twice: an answer to an earlier batch may still arrive at the same socket. */
static void put_request(struct nft_batch *batch, struct nl_msg *request)
{
	static uint32_t numbers;
	static const char padding[NLMSG_ALIGNTO] = {0};
	struct nlmsghdr *header = nlmsg_hdr(request);

	header->nlmsg_seq = batch->last = ++numbers;
	fwrite(header, header->nlmsg_len, 1, batch->stream);
	fwrite(padding, 1, NLMSG_ALIGN(header->nlmsg_len) - header->nlmsg_len, batch->stream);
	nlmsg_free(request);
}

static void put_mark(struct nft_batch *batch, int type)
{
	struct nfgenmsg fixed = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

	put_request(batch, netlink_begin(type, 0, &fixed, sizeof(fixed)));
}

void nft_batch_add(struct nft_batch *batch, struct nl_msg *request)
{
	if (!batch->stream) {
		batch->stream = or_exit(open_memstream(&batch->text, &batch->size));
		put_mark(batch, NFNL_MSG_BATCH_BEGIN);
		batch->first = batch->last;
	}
	batch->last_at = ftell(batch->stream);
	put_request(batch, request);
}

/* Each request that fails is answered, or the batch by the number of its first one, and of those
 * that do not fail the last one. */
static int read_answers(const struct netlink *socket, uint32_t first, uint32_t last)
{
	_Alignas(struct nlmsghdr) char text[ANSWER_SIZE];

	for (;;) {
		ssize_t got = recv(socket->fd, text, sizeof(text), 0);
		struct nlmsghdr *header = (struct nlmsghdr *)text;
		int left = (int)got;

		if (got < 0)
			return errno;
		for (; nlmsg_ok(header, left); header = nlmsg_next(header, &left)) {
			const struct nlmsgerr *said = nlmsg_data(header);

			if (header->nlmsg_type == NLMSG_ERROR && header->nlmsg_seq >= first &&
			    (said->error || header->nlmsg_seq == last))
				return -said->error;
		}
	}
}

/* A batch is one message, for which the usual buffer may be too small. More errors than there is
 * room for may be lost: the first one is not. */
static void prepare_socket(const struct netlink *socket, size_t size)
{
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	int room = (int)size, on = 1;

	setsockopt(socket->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(socket->fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room));
	setsockopt(socket->fd, SOL_NETLINK, NETLINK_NO_ENOBUFS, &on, sizeof(on));
}

int nft_batch_send(struct nft_batch *batch, struct netlink *socket)
{
	struct nlmsghdr *last;
	int result;

	put_mark(batch, NFNL_MSG_BATCH_END);
	or_exit(fclose(batch->stream) ? NULL : batch->text);
	last = (struct nlmsghdr *)(batch->text + batch->last_at);
	last->nlmsg_flags |= NLM_F_ACK;
	if (socket)
		prepare_socket(socket, batch->size);
	if (!socket || send(socket->fd, batch->text, batch->size, 0) < 0)
		result = errno;
	else
		result = read_answers(socket, batch->first, batch->last - 1);
	free(batch->text);
	*batch = (struct nft_batch){0};
	return result;
}

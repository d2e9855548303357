/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_batch.c - requests that change nf_tables, of which the kernel carries out all or none. */
#include "nat/nft_batch.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "lib/memory.h"
#include "net/netlink.h"

#define ANSWER_SIZE 32768

struct nl_msg *nft_request_begin(int type, uint8_t family, int flags)
{
	struct nfgenmsg fixed = {.nfgen_family = family, .version = NFNETLINK_V0};

	return netlink_begin(NFNL_SUBSYS_NFTABLES << 8 | type, flags, &fixed, sizeof(fixed));
}

/* Answers to an earlier batch may still come by the same socket, so no number is used twice. */
static uint32_t append(struct nft_batch *batch, struct nl_msg *request)
{
	static uint32_t last_sequence;
	struct nlmsghdr *header = nlmsg_hdr(request);
	size_t size = NLMSG_ALIGN(header->nlmsg_len);

	header->nlmsg_seq = ++last_sequence;
	batch->bytes = or_exit(realloc(batch->bytes, batch->size + size));
	memset(batch->bytes + batch->size, 0, size);
	memcpy(batch->bytes + batch->size, header, header->nlmsg_len);
	batch->size += size;
	nlmsg_free(request);
	return last_sequence;
}

static uint32_t append_mark(struct nft_batch *batch, int type)
{
	struct nfgenmsg fixed = {.version = NFNETLINK_V0, .res_id = htons(NFNL_SUBSYS_NFTABLES)};

	return append(batch, netlink_begin(type, 0, &fixed, sizeof(fixed)));
}

void nft_batch_add(struct nft_batch *batch, struct nl_msg *request)
{
	if (!batch->size)
		batch->first = append_mark(batch, NFNL_MSG_BATCH_BEGIN);
	batch->last = append(batch, request);
}

/* Each request is answered; where all are refused, only the mark may be. */
static int read_answers(const struct nft_batch *batch, int socket)
{
	_Alignas(struct nlmsghdr) char answer[ANSWER_SIZE];
	int error = 0;

	for (;;) {
		ssize_t length = recv(socket, answer, sizeof(answer), 0);
		struct nlmsghdr *header = (struct nlmsghdr *)answer;
		int rest = (int)length;

		if (length < 0)
			return errno;
		for (; nlmsg_ok(header, rest); header = nlmsg_next(header, &rest)) {
			const struct nlmsgerr *said = nlmsg_data(header);

			if (header->nlmsg_type != NLMSG_ERROR || header->nlmsg_seq < batch->first)
				continue;
			if (!error)
				error = -said->error;
			if (header->nlmsg_seq == batch->last ||
			    (header->nlmsg_seq == batch->first && said->error))
				return error;
		}
	}
}

int nft_batch_send(struct nft_batch *batch, int socket)
{
	int error = 0;

	if (batch->size) {
		append_mark(batch, NFNL_MSG_BATCH_END);
		error = send(socket, batch->bytes, batch->size, 0) < 0
				? errno
				: read_answers(batch, socket);
	}
	free(batch->bytes);
	*batch = (struct nft_batch){0};
	return error;
}

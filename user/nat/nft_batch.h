/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_batch.h - requests that change nf_tables, and that the kernel carries out all or none. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct netlink;
struct nl_msg;

/* Begins as {0}. */
struct nft_batch {
	char *text;
	size_t size;
	FILE *stream;
	long last_at;         /* where the last request begins */
	uint32_t first, last; /* numbers of its requests; 0: it has none */
};

/* Returns whether this module of netfilter is loaded or built in, or /sys does not say. nfnetlink
 * loads nf_tables for anyone who asks; where netfilter is made of modules, one that is not there
 * has no rules. */
bool netfilter_has(const char *module);

/* Begins a request to nf_tables, of nft's family. */
struct nl_msg *nft_request_begin(int type, uint8_t family, int flags);

/* Takes over the request. None needs NLM_F_ACK: an answer to each would be more than a socket has
 * room for. */
void nft_batch_add(struct nft_batch *batch, struct nl_msg *request);
/* Ends the batch. 0, or the errno of the first request that fails. The socket speaks
 * NETLINK_NETFILTER; NULL: it could not be opened, which errno says. */
int nft_batch_send(struct nft_batch *batch, struct netlink *socket);

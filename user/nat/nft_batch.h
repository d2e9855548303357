/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_batch.h - requests that change nf_tables, of which the kernel carries out all or none.
 */
#ifndef NAT_NFT_BATCH_H
#define NAT_NFT_BATCH_H

#include <netlink/msg.h>
#include <stddef.h>
#include <stdint.h>

/* Begins as {0}. */
struct nft_batch {
	char *bytes;
	size_t size;
	uint32_t first, last; /* sequence numbers; of the mark that begins it, and of a request */
};

/* Begins a request to nf_tables, of nft's family. */
struct nl_msg *nft_request_begin(int type, uint8_t family, int flags);

/* Adds a request with NLM_F_ACK, which is freed. */
void nft_batch_add(struct nft_batch *batch, struct nl_msg *request);

/* Sends all and takes the answers; of no requests nothing is sent. 0, or the first error, as an
 * errno: EAGAIN where the socket has a time limit and the kernel does not answer. Frees them. */
int nft_batch_send(struct nft_batch *batch, int socket);

#endif

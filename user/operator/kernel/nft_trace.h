/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_trace.h - which rule or policy of nftables, or of iptables-nft, drops the packets of one
 * connection.
 *
 * A table of our own has the kernel report each chain and rule that they meet. The table belongs to
 * a netlink socket, and the kernel removes it with that socket, however this process ends.
 */
#pragma once

#include <linux/netfilter/nf_tables.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stdint.h>

#include "abi.h"
#include "lib/address.h"
#include "lib/error.h"

struct netlink;

/* By what a client's packets, and the answers to it, are recognised. */
struct nft_traced {
	enum protocol protocol;
	uint8_t client[CNI_ADDRESS_SIZE];
	uint16_t client_port;
	const char *devices[2]; /* where they come in; NULL: no more */
	bool with_bridges;      /* and by ports of bridges */
};

/* Begins as {0}. */
struct nft_trace {
	struct nft_traced traced;
	struct netlink *tables; /* NULL: there is none */
	struct netlink *events;
};

/* Where a packet was dropped. */
struct nft_drop {
	uint8_t family;
	char table[NFT_TABLE_MAXNAMELEN];
	char chain[NFT_CHAIN_MAXNAMELEN];
	uint64_t handle; /* of the rule; 0: by the chain's policy */
	bool is_answer, is_forward;
};

/* Returns "inet". */
const char *nft_family_word(uint8_t family);

/* Begins a trace in the namespace that this process is in. Loads no kernel module.
 * CNI_ERROR_KERNEL_REFUSED. Close it also after a failure. */
int nft_trace_open(struct nft_trace *trace, const struct nft_traced *traced, struct cni_error *err);
void nft_trace_close(struct nft_trace *trace);

/* Reads what the kernel has reported by now. Returns whether a packet was dropped. */
bool nft_trace_read(struct nft_trace *trace, struct nft_drop *drop);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nat_search.h - one search for rules: where it is, and what it takes.
 */
#pragma once

#include <linux/netfilter/nfnetlink.h>

#include "nat/legacy_table.h"
#include "nat/nat_question.h"
#include "nat/nft_rule.h"
#include "net/netlink.h"

#define MAX_STARTS 64

struct chain {
	uint8_t family;
	char table[NFT_TABLE_MAXNAMELEN];
	char name[NFT_CHAIN_MAXNAMELEN];
	size_t offset;    /* of iptables-legacy */
	int32_t priority; /* of a start at a hook */
	uint8_t hooks;    /* of a start */
};

struct search {
	const struct nat_question *question;
	struct nat_rule_list *found;
	struct netlink *socket;
	const struct legacy_table *legacy; /* in which it is searched; NULL: in nftables */

	struct nat_rule_list reading; /* of the chain that is being read */
	struct chain starts[MAX_STARTS];
	size_t start_count, chains_read, lookups;
	uint32_t objects; /* of all tables */
	int failure;      /* errno */
};

/* Returns whether a rule is one of those that are asked for. */
bool nat_search_wants(const struct search *search, const struct nat_rule *rule);
/* Takes a rule of the chain that is being read; the context is the search. */
void nat_search_take(void *context, const struct nat_rule *rule);

/* Asks for a list, again where it changes meanwhile; what has gone has nothing. `count` is of what
 * is taken. */
void nat_search_dump(struct search *search, struct nl_msg *request, netlink_take take,
		     void *context, size_t *count);

static inline struct bytes nft_attributes_of(const struct nlmsghdr *message)
{
	return (struct bytes){(uint8_t *)nlmsg_attrdata(message, sizeof(struct nfgenmsg)),
			      (size_t)nlmsg_attrlen(message, sizeof(struct nfgenmsg))};
}

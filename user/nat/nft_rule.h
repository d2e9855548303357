/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_rule.h - rules and chains as nf_tables tells them. Without any I/O.
 */
#ifndef NAT_NFT_RULE_H
#define NAT_NFT_RULE_H

#include "nat/nat_rule.h"

/* Returns whether the attributes of NFT_MSG_NEWCHAIN are a chain that packets come through before
 * they are routed. */
bool nft_chain_is_prerouting(struct bytes attributes);
/* Of such a chain: packets come to smaller numbers first. */
int32_t nft_chain_priority(struct bytes attributes);

/* Reads what the attributes of NFT_MSG_NEWRULE say about destinations. */
void nft_rule_parse(uint8_t family, struct bytes attributes, struct nat_rule *rule);

#endif

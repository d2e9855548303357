/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_rule.h - rules as nf_tables tells them, and what stands in its messages. Without any I/O.
 */
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>
#include <netlink/attr.h>
#include <string.h>

#include "nat/nat_rule.h"

/* Reads what the attributes of NFT_MSG_NEWRULE say about destinations. */
void nft_rule_parse(uint8_t family, struct bytes attributes, struct nat_rule *rule);

static inline struct bytes nft_value_of(const struct nlattr *attribute)
{
	return (struct bytes){nla_data(attribute), (size_t)nla_len(attribute)};
}

static inline const struct nlattr *nft_first_of(struct bytes attributes)
{
	return (const struct nlattr *)attributes.data;
}

/* Returns the attribute of this type; without bytes where there is none. */
static inline struct bytes nft_find(struct bytes attributes, int type)
{
	const struct nlattr *found = nla_find(nft_first_of(attributes), (int)attributes.size, type);

	return found ? nft_value_of(found) : (struct bytes){0};
}

/* Reads a number, big endian as all of nf_tables; `missing` where it is not there. */
static inline uint32_t nft_number_at(struct bytes attributes, int type, uint32_t missing)
{
	uint32_t number;

	return bytes_copy_front(&number, sizeof(number), nft_find(attributes, type)) ? ntohl(number)
										     : missing;
}

static inline bool nft_is(struct bytes bytes, const char *text)
{
	size_t length = strlen(text);

	return bytes.size >= length && !memcmp(bytes.data, text, length) &&
	       (bytes.size == length || !bytes.data[length]);
}

static inline struct bytes nft_value_at(struct bytes expression, int type)
{
	return nft_find(nft_find(expression, type), NFTA_DATA_VALUE);
}

static inline uint16_t nft_port_in(const uint8_t *bytes)
{
	return (uint16_t)(bytes[0] << 8 | bytes[1]);
}

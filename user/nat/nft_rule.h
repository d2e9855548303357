/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_rule.h - rules, and elements of sets and maps, as nf_tables tells them; and changes of them.
 */
#pragma once

#include <arpa/inet.h>
#include <linux/netfilter/nf_tables.h>
#include <netlink/attr.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
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

/* One element of the set that the rule looks packets up in. */
struct nft_element {
	uint8_t key[64];
	size_t size;
	uint8_t key_end[64];         /* of a range; else the same as key */
	char chain[NFT_NAME_MAXLEN]; /* of a verdict map: the one to jump to; "": none */
	bool ends_interval;          /* no element: the interval before it ends before this key */
	bool is_interval;            /* of a set of intervals: of an address the end is not known */
};

/* Calls `take` for each element in NFT_MSG_NEWSETELEM. */
void nft_elements_parse(struct bytes attributes,
			void (*take)(void *context, const struct nft_element *element),
			void *context);

/* Sorts them and leaves those that are elements, with the ends of their ranges. Returns how many.
 */
size_t nft_elements_close(struct nft_element *elements, size_t count);

/* Makes the rule as if it had this element's conditions, and its jump, in place of the look-up.
 * False: the key has neither port nor address, or the element no chain. */
bool nft_rule_of_element(const struct nat_rule *rule, const struct nat_lookup *lookup,
			 const struct nft_element *element, struct nat_rule *narrowed);

#define NFT_KEY_SIZE 28 /* an address, a protocol, a port; each in whole registers */

/* Writes the key that a packet to this port is looked up by; `ipv4` says of which family the rule
 * is. Returns its size; 0: it is made of more, or only of one field. */
size_t nft_key_make(const struct nat_lookup *lookup, const struct portmap_key *key, bool ipv4,
		    uint8_t made[NFT_KEY_SIZE]);

/* --- changes, all or none (nft_batch.c) ------------------------------------------------------ */

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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nft_set.h - the elements of sets and maps, as nf_tables tells them. Without any I/O.
 */
#pragma once

#include <linux/netfilter/nf_tables.h>

#include "nat/nat_rule.h"

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

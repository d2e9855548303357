/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_set.c - the elements of sets and maps, as nf_tables tells them. */
#include "nat/nft_set.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nat/nft_rule.h"

/* As it is, for the chain is asked for. */
static void copy_chain(char chain[NFT_NAME_MAXLEN], struct bytes name)
{
	if (!name.size || name.size >= NFT_NAME_MAXLEN)
		return;
	memcpy(chain, name.data, name.size);
	chain[name.size] = '\0';
}

static bool parse_element(struct bytes attributes, struct nft_element *element)
{
	struct bytes key = nft_value_at(attributes, NFTA_SET_ELEM_KEY);
	struct bytes end = nft_value_at(attributes, NFTA_SET_ELEM_KEY_END);

	if (!key.size || key.size > sizeof(element->key))
		return false;
	if (end.size != key.size)
		end = key;
	*element = (struct nft_element){.size = key.size};
	memcpy(element->key, key.data, key.size);
	memcpy(element->key_end, end.data, key.size);
	copy_chain(element->chain,
		   nft_find(nft_find(nft_find(attributes, NFTA_SET_ELEM_DATA), NFTA_DATA_VERDICT),
			    NFTA_VERDICT_CHAIN));
	element->ends_interval =
		nft_number_at(attributes, NFTA_SET_ELEM_FLAGS, 0) & NFT_SET_ELEM_INTERVAL_END;
	return true;
}

void nft_elements_parse(struct bytes attributes,
			void (*take)(void *context, const struct nft_element *element),
			void *context)
{
	struct bytes list = nft_find(attributes, NFTA_SET_ELEM_LIST_ELEMENTS);
	const struct nlattr *attribute;
	struct nft_element element;
	int rest;

	nla_for_each_attr(attribute, nft_first_of(list), (int)list.size,
			  rest) if (parse_element(nft_value_of(attribute), &element))
		take(context, &element);
}

static int compare_elements(const void *left, const void *right)
{
	const struct nft_element *a = left, *b = right;
	int keys = memcmp(a->key, b->key, sizeof(a->key));

	return keys ? keys : b->ends_interval - a->ends_interval;
}

/* A set of intervals of one field tells where each begins, and where none begins behind it the
 * first port that is not in it. */
size_t nft_elements_close(struct nft_element *elements, size_t count)
{
	bool has_intervals = false;
	size_t kept = 0;

	qsort(elements, count, sizeof(*elements), compare_elements);
	for (size_t i = 0; i < count; i++)
		has_intervals = has_intervals || elements[i].ends_interval;
	for (size_t i = 0; i < count; i++) {
		uint16_t end = i + 1 < count ? nft_port_in(elements[i + 1].key) : 0;

		if (elements[i].ends_interval)
			continue;
		elements[kept] = elements[i];
		elements[kept].is_interval = has_intervals;
		if (has_intervals && elements[i].size == 2) {
			end--;
			elements[kept].key_end[0] = (uint8_t)(end >> 8);
			elements[kept].key_end[1] = (uint8_t)end;
		}
		kept++;
	}
	return kept;
}

static bool has_bytes_at(const struct nft_element *element, int at, size_t size)
{
	return at >= 0 && (size_t)at + size <= element->size;
}

/* kube-proxy's chains have the service's name, and the rule no comment. */
static void take_chain_of_element(struct nat_rule *rule, const struct nft_element *element)
{
	snprintf(rule->target, sizeof(rule->target), "%s", element->chain);
	if (!*rule->comment)
		nat_text_copy(
			rule->comment, sizeof(rule->comment),
			(struct bytes){(const uint8_t *)element->chain, strlen(element->chain)});
}

bool nft_rule_of_element(const struct nat_rule *rule, const struct nat_lookup *lookup,
			 const struct nft_element *element, struct nat_rule *narrowed)
{
	size_t size = rule->ipv4 ? 4 : CNI_ADDRESS_SIZE;
	bool has_address = has_bytes_at(element, lookup->address_at, size);
	const uint8_t *address = element->key + lookup->address_at;
	bool has_port = has_bytes_at(element, lookup->port_at, 2);
	struct port_range range;

	if (lookup->is_verdict ? !*element->chain : !has_port && !has_address)
		return false;
	*narrowed = *rule;
	if (has_port) {
		range.first = nft_port_in(element->key + lookup->port_at);
		range.last = nft_port_in(element->key_end + lookup->port_at);
		nat_rule_limit_ports(narrowed, &range, 1);
	}
	if (lookup->is_verdict)
		take_chain_of_element(narrowed, element);
	if (has_bytes_at(element, lookup->protocol_at, 1))
		narrowed->protocol = element->key[lookup->protocol_at];
	if (!has_address)
		return true;
	/* An address of a family that is not known, or a range of them, is a condition that is not
	 * known. */
	if (rule->ipv4 != rule->ipv6 && !element->is_interval &&
	    !memcmp(address, element->key_end + lookup->address_at, size))
		nat_rule_limit_address(narrowed, rule->ipv4, address, NULL, size);
	else
		narrowed->restricted = true;
	return true;
}

static size_t put_field(uint8_t made[NFT_KEY_SIZE], int at, const void *bytes, size_t size)
{
	size_t whole = (size + NFT_REG32_SIZE - 1) / NFT_REG32_SIZE * NFT_REG32_SIZE;

	if (at < 0 || (size_t)at + whole > NFT_KEY_SIZE)
		return 0;
	memcpy(made + at, bytes, size);
	return whole;
}

size_t nft_key_make(const struct nat_lookup *lookup, const struct portmap_key *key, bool ipv4,
		    uint8_t made[NFT_KEY_SIZE])
{
	uint8_t port[2] = {(uint8_t)(key->host_port >> 8), (uint8_t)key->host_port};
	size_t begin = ipv4 ? 12 : 0, size = 0, one;

	memset(made, 0, NFT_KEY_SIZE);
	size += put_field(made, lookup->address_at, key->host_address + begin,
			  CNI_ADDRESS_SIZE - begin);
	size += put_field(made, lookup->protocol_at, &key->protocol, 1);
	one = size;
	size += put_field(made, lookup->port_at, port, sizeof(port));
	/* The fields stand side by side from 0 on, or there is another one between them. */
	if (!one || size == one || (size_t)lookup->port_at + NFT_REG32_SIZE > size)
		return 0;
	return size;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_chain.c - reads the rules of one chain of nftables. */
#include "nat/nft_chain.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "nat/nft_batch.h"
#include "nat/nft_set.h"

#define MAX_LOOKUPS 64
#define MAX_ELEMENTS 65536

/* NAT_WHERE_QUICK: rules of a chain that are read; elements that are asked for, 3 us each. */
#define QUICK_RULES 256
#define MAX_ASKED 256

static void take_nft_rule(struct nlmsghdr *message, void *context)
{
	const struct nfgenmsg *header = nlmsg_data(message);
	struct nat_rule rule;

	nft_rule_parse(header->nfgen_family, nft_attributes_of(message), &rule);
	nat_search_take(context, &rule);
}

struct elements {
	struct nft_element *list;
	size_t count;
};

static void keep_element(void *context, const struct nft_element *element)
{
	struct elements *elements = context;

	if (elements->count < MAX_ELEMENTS)
		*ARRAY_ADD(elements->list, elements->count) = *element;
}

static void take_elements(struct nlmsghdr *message, void *context)
{
	nft_elements_parse(nft_attributes_of(message), keep_element, context);
}

static struct nl_msg *ask_elements(const struct chain *chain, const struct nat_lookup *lookup,
				   int flags)
{
	struct nl_msg *request = nft_request_begin(NFT_MSG_GETSETELEM, chain->family, flags);

	nla_put_string(request, NFTA_SET_ELEM_LIST_TABLE, chain->table);
	nla_put_string(request, NFTA_SET_ELEM_LIST_SET, lookup->set);
	return request;
}

static bool find_element(struct search *search, const struct chain *chain,
			 const struct nat_lookup *lookup, struct bytes key,
			 struct elements *elements)
{
	cleanup_request struct nl_msg *request = ask_elements(chain, lookup, 0);
	struct nlattr *list = nla_nest_start(request, NFTA_SET_ELEM_LIST_ELEMENTS);
	struct nlattr *element = nla_nest_start(request, NFTA_LIST_ELEM);
	struct nlattr *value = nla_nest_start(request, NFTA_SET_ELEM_KEY);

	nla_put(request, NFTA_DATA_VALUE, (int)key.size, key.data);
	nla_nest_end(request, value);
	nla_nest_end(request, element);
	nla_nest_end(request, list);
	return !netlink_ask(search->socket, request, take_elements, elements) || errno == ENOENT;
}

/* Asks for a port at an address, or at all of the host's where the key has one. */
static bool find_port(struct search *search, const struct chain *chain, const struct nat_rule *rule,
		      const struct portmap_key *port, struct elements *elements)
{
	const struct nat_asked *asked = search->question->asked;
	bool everywhere = cni_address_is_any(port->host_address) && rule->lookup.address_at >= 0;
	uint8_t key[NFT_KEY_SIZE];
	struct portmap_key at = *port;
	size_t size;

	for (size_t i = 0; i < (everywhere ? asked->address_count : 1); i++) {
		if (everywhere)
			memcpy(at.host_address, asked->addresses[i], CNI_ADDRESS_SIZE);
		if (cni_address_is_ipv4(at.host_address) ? !rule->ipv4 : !rule->ipv6)
			continue;
		size = nft_key_make(&rule->lookup, &at, rule->ipv4, key);
		if (!size || !find_element(search, chain, &rule->lookup, (struct bytes){key, size},
					   elements))
			return false;
	}
	return true;
}

/* kube-proxy's maps have an element for each Service. */
static bool find_ports(struct search *search, const struct chain *chain,
		       const struct nat_rule *rule, struct elements *elements)
{
	const struct nat_asked *asked = search->question->asked;

	if (!asked || !rule->lookup.is_verdict || rule->ipv4 == rule->ipv6 ||
	    asked->key_count * (asked->address_count + 1) > MAX_ASKED)
		return false;
	for (size_t i = 0; i < asked->key_count; i++)
		if (!find_port(search, chain, rule, &asked->keys[i], elements))
			return false;
	return true;
}

/* In place of a rule that looks the port or the address up in a set: one for each element that is
 * asked for. */
static void resolve_lookup(struct search *search, const struct chain *chain,
			   const struct nat_rule *rule, const struct nat_lookup *lookup,
			   struct nat_rule_list *list)
{
	cleanup_request struct nl_msg *request = ask_elements(chain, lookup, NLM_F_DUMP);
	struct elements elements = {0};
	struct nat_rule narrowed;

	if (search->lookups++ >= MAX_LOOKUPS)
		return;
	if (lookup != &rule->lookup || !find_ports(search, chain, rule, &elements)) {
		elements.count = 0;
		if (lookup->is_verdict && lookup->address_at >= 0 &&
		    search->question->place == NAT_WHERE_QUICK) {
			search->found->is_partial = true;
			return;
		}
		nat_search_dump(search, request, take_elements, &elements, &elements.count);
	}
	elements.count = nft_elements_close(elements.list, elements.count);
	for (size_t i = 0; i < elements.count; i++)
		if (nft_rule_of_element(rule, lookup, &elements.list[i], &narrowed) &&
		    nat_search_wants(search, &narrowed))
			nat_rule_list_append(list, &narrowed);
	free(elements.list);
}

static void resolve_lookups(struct search *search, const struct chain *chain,
			    const struct nat_rule *rule, struct nat_rule_list *list)
{
	cleanup_nat_rules struct nat_rule_list at_port = {0};

	if (*rule->lookup.set)
		resolve_lookup(search, chain, rule, &rule->lookup, &at_port);
	else
		nat_rule_list_append(&at_port, rule);
	for (size_t i = 0; i < at_port.count; i++)
		if (*rule->address_lookup.set)
			resolve_lookup(search, chain, &at_port.rules[i],
				       &at_port.rules[i].address_lookup, list);
		else
			nat_rule_list_append(list, &at_port.rules[i]);
}

static void take_size(struct nlmsghdr *message, void *context)
{
	*(uint32_t *)context = nft_number_at(nft_attributes_of(message), NFTA_CHAIN_USE, 0);
}

/* Its rules, and those that jump to it. */
static bool is_quick(const struct search *search, const struct chain *chain)
{
	cleanup_request struct nl_msg *request =
		nft_request_begin(NFT_MSG_GETCHAIN, chain->family, 0);
	uint32_t size = 0;

	if (search->question->place != NAT_WHERE_QUICK)
		return true;
	nla_put_string(request, NFTA_CHAIN_TABLE, chain->table);
	nla_put_string(request, NFTA_CHAIN_NAME, chain->name);
	return netlink_ask(search->socket, request, take_size, &size) || size <= QUICK_RULES;
}

void nft_chain_read(struct search *search, const struct chain *chain)
{
	cleanup_request struct nl_msg *request =
		nft_request_begin(NFT_MSG_GETRULE, chain->family, NLM_F_DUMP);
	struct nat_rule_list resolved = {0}, *list = &search->reading;

	if (!is_quick(search, chain)) {
		search->found->is_partial = true;
		return;
	}
	nla_put_string(request, NFTA_RULE_TABLE, chain->table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain->name);
	nat_search_dump(search, request, take_nft_rule, search, &list->count);
	for (size_t i = 0; i < list->count; i++)
		resolve_lookups(search, chain, &list->rules[i], &resolved);
	nat_rule_list_release(list);
	*list = resolved;
}

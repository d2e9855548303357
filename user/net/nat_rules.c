/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rules.c - the rules of this network namespace that give packets another destination. */
#include "net/nat_rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "net/netlink.h"
#include "net/nft_rule.h"
#include "net/nftables.h"

#define MAX_ROOTS 16
#define MAX_DEPTH 16 /* as in the kernel */
#define MAX_CHAINS 256
#define MAX_RULES 1024
#define MAX_LOOKUPS 64
#define MAX_ELEMENTS 65536
#define TRIES 3

struct chain {
	uint8_t family;
	char table[NFT_TABLE_MAXNAMELEN];
	char name[NFT_CHAIN_MAXNAMELEN];
	size_t offset;    /* of iptables-legacy */
	int32_t priority; /* of a root */
};

struct search {
	struct nat_rule_list *found;
	bool (*concerns)(const void *context, const struct nat_rule *rule);
	const void *context;
	struct nl_sock *socket;
	const struct legacy_table *legacy; /* in which it is searched; NULL: in nftables */

	struct nat_rule_list reading; /* of the chain that is being read */
	struct chain roots[MAX_ROOTS];
	size_t root_count, chains_read, lookups;
	int failure; /* errno */
};

/* Very many are more than anybody wants to know. */
static void list_append(struct nat_rule_list *list, const struct nat_rule *rule)
{
	if (list->count < MAX_RULES)
		*ARRAY_ADD(list->rules, list->count) = *rule;
}

void nat_rule_list_release(struct nat_rule_list *list)
{
	free(list->rules);
	*list = (struct nat_rule_list){0};
}

static void take_rule(void *context, const struct nat_rule *rule)
{
	struct search *search = context;

	if ((rule->translates || rule->jumps) && search->concerns(search->context, rule))
		list_append(&search->reading, rule);
}

static uint8_t family_of(const struct nlmsghdr *message)
{
	return ((const struct nfgenmsg *)nlmsg_data(message))->nfgen_family;
}

static bool copy_name(char *to, size_t room, const struct nlattr *name)
{
	return name && nla_len(name) > 0 && nla_strlcpy(to, name, room) < room;
}

static const struct nlattr *find(struct nlmsghdr *message, int type)
{
	return nlmsg_find_attr(message, sizeof(struct nfgenmsg), type);
}

/* Packets come to them in the order of their priorities, else of their age, in which they are
 * listed. */
static void add_root(struct search *search, const struct chain *chain)
{
	size_t place = search->root_count++;

	for (; place && search->roots[place - 1].priority > chain->priority; place--)
		search->roots[place] = search->roots[place - 1];
	search->roots[place] = *chain;
}

static void take_chain(struct nlmsghdr *message, void *context)
{
	struct chain chain = {.family = family_of(message)};
	struct search *search = context;

	if (chain.family != NFPROTO_IPV4 && chain.family != NFPROTO_IPV6 &&
	    chain.family != NFPROTO_INET)
		return;
	if (search->root_count < MAX_ROOTS &&
	    nft_chain_is_nat_prerouting(nftables_attributes(message)) &&
	    copy_name(chain.table, sizeof(chain.table), find(message, NFTA_CHAIN_TABLE)) &&
	    copy_name(chain.name, sizeof(chain.name), find(message, NFTA_CHAIN_NAME))) {
		chain.priority = nft_chain_priority(nftables_attributes(message));
		add_root(search, &chain);
	}
}

static void take_nft_rule(struct nlmsghdr *message, void *context)
{
	struct nat_rule rule;

	nft_rule_parse(family_of(message), nftables_attributes(message), &rule);
	take_rule(context, &rule);
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
	nft_elements_parse(nftables_attributes(message), keep_element, context);
}

/* In place of a rule that looks the port up in a set: one for each element that is asked for. */
static void resolve_lookup(struct search *search, const struct chain *chain,
			   const struct nat_rule *rule, struct nat_rule_list *list)
{
	cleanup_request struct nl_msg *request = NULL;
	struct elements elements = {0};
	struct nat_rule narrowed;

	if (search->lookups++ >= MAX_LOOKUPS)
		return;
	request = nftables_begin(NFT_MSG_GETSETELEM, chain->family, NLM_F_DUMP);
	nla_put_string(request, NFTA_SET_ELEM_LIST_TABLE, chain->table);
	nla_put_string(request, NFTA_SET_ELEM_LIST_SET, rule->lookup.set);
	netlink_ask(search->socket, request, take_elements, &elements);
	elements.count = nft_elements_close(elements.list, elements.count);
	for (size_t i = 0; i < elements.count; i++)
		if (nft_rule_of_element(rule, &elements.list[i], &narrowed) &&
		    search->concerns(search->context, &narrowed))
			list_append(list, &narrowed);
	free(elements.list);
}

/* A chain that changes meanwhile is read again; one that has gone has no rules. */
static void read_nft_chain(struct search *search, const struct chain *chain)
{
	cleanup_request struct nl_msg *request =
		nftables_begin(NFT_MSG_GETRULE, chain->family, NLM_F_DUMP);
	struct nat_rule_list resolved = {0}, *list = &search->reading;
	int result = -1;

	nla_put_string(request, NFTA_RULE_TABLE, chain->table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain->name);
	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		nat_rule_list_release(&search->reading);
		result = netlink_ask(search->socket, request, take_nft_rule, search);
	}
	if (result && errno != ENOENT)
		search->failure = errno;
	for (size_t i = 0; i < list->count; i++)
		if (*list->rules[i].lookup.set)
			resolve_lookup(search, chain, &list->rules[i], &resolved);
		else
			list_append(&resolved, &list->rules[i]);
	nat_rule_list_release(list);
	*list = resolved;
}

static bool visit(struct search *search, const struct chain *chain, unsigned int depth,
		  struct nat_rule *translation);

/* Whether the rule translates, or what it jumps to: its destination is what packets get there. */
static bool follow(struct search *search, const struct chain *chain, unsigned int depth,
		   struct nat_rule *rule)
{
	struct chain next = *chain;
	struct nat_rule translation;

	if (rule->translates)
		return true;
	if (strlen(rule->target) >= sizeof(next.name))
		return false;
	memcpy(next.name, rule->target, strlen(rule->target) + 1);
	next.offset = rule->target_offset;
	if (!visit(search, &next, depth + 1, &translation))
		return false;
	memcpy(rule->new_address, translation.new_address, sizeof(rule->new_address));
	rule->new_port = translation.new_port;
	return true;
}

/* Finds in a chain, and in those that it jumps to. Whether packets are translated there; the first
 * rule by which is left in *translation. */
static bool visit(struct search *search, const struct chain *chain, unsigned int depth,
		  struct nat_rule *translation)
{
	cleanup_nat_rules struct nat_rule_list list = {0};
	bool translates = false;

	if (depth == MAX_DEPTH || search->chains_read++ >= MAX_CHAINS)
		return false;
	if (search->legacy)
		ipt_chain_parse(search->legacy, chain->offset, take_rule, search);
	else
		read_nft_chain(search, chain);
	list = search->reading;
	search->reading = (struct nat_rule_list){0};
	for (size_t i = 0; i < list.count; i++) {
		struct nat_rule *rule = &list.rules[i];

		if (!follow(search, chain, depth, rule))
			continue;
		if (rule->names_port)
			list_append(search->found, rule);
		if (!translates)
			*translation = *rule;
		translates = true;
	}
	return translates;
}

static void visit_roots(struct search *search)
{
	struct nat_rule translation;

	for (size_t i = 0; i < search->root_count; i++)
		visit(search, &search->roots[i], 0, &translation);
}

static void search_nftables(struct search *search)
{
	cleanup_request struct nl_msg *request =
		nftables_begin(NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, NLM_F_DUMP);
	int result = -1;

	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		search->root_count = 0;
		result = netlink_ask(search->socket, request, take_chain, search);
	}
	/* A kernel without nf_tables says so by an error. */
	visit_roots(search);
}

static int search_legacy(struct search *search, bool ipv4)
{
	struct legacy_table table;
	int result = legacy_table_read(ipv4, &table);

	if (!table.entries)
		return result;
	search->legacy = &table;
	search->roots[0] = (struct chain){.offset = table.hooks.begin[NF_INET_PRE_ROUTING]};
	search->root_count = 1;
	visit_roots(search);
	search->legacy = NULL;
	free((void *)table.entries);
	return 0;
}

int nat_rules_find(struct nat_rule_list *found,
		   bool (*concerns)(const void *context, const struct nat_rule *rule),
		   const void *context, struct cni_error *err)
{
	struct search search = {.found = found, .concerns = concerns, .context = context};
	cleanup_error struct cni_error none = {0};
	cleanup_netlink struct nl_sock *socket = NULL;
	const char *what = "nftables";

	/* A kernel without netfilter has no such sockets. */
	if (nftables_may_have_rules())
		socket = netlink_open(NETLINK_NETFILTER, &none);
	search.socket = socket;
	if (socket)
		search_nftables(&search);
	if (!search.failure) {
		what = "iptables-legacy";
		if (!search_legacy(&search, true) && !search_legacy(&search, false))
			return 0;
		search.failure = errno;
	}
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read the NAT rules of %s: %s",
			     what, strerror(search.failure));
}

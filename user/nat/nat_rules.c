/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rules.c - the rules of this network namespace that give packets another destination. */
#include "nat/nat_rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "nat/legacy_table.h"
#include "net/netlink.h"
#include "nat/nft_batch.h"
#include "nat/nft_rule.h"
#include "nat/nft_set.h"

#define MAX_STARTS 64
#define MAX_DEPTH 16 /* as in the kernel */
#define MAX_CHAINS 16384
#define MAX_LOOKUPS 64
#define MAX_ELEMENTS 65536
#define TRIES 3
#define TABLE_OF_IPTABLES "nat"

/* The chains that port mappers are known by. */
static const struct {
	const char *table, *chain;
	bool of_portmap, translates;
} known[] = {
	{TABLE_OF_IPTABLES, NAT_CHAIN_OF_PORTMAP, true, true},
	{NAT_TABLE_OF_PORTMAP, "hostip_hostports", true, true},
	{NAT_TABLE_OF_PORTMAP, "hostports", true, true},
	{NAT_TABLE_OF_PORTMAP, "masquerading", true, false},
	{TABLE_OF_IPTABLES, "DOCKER", false, true},
	{"docker-bridges", "nat-prerouting-and-output", false, true},
	{TABLE_OF_IPTABLES, "NETAVARK-HOSTPORT-DNAT", false, true},
	{"netavark", "NETAVARK-HOSTPORT-DNAT", false, true},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

struct chain {
	uint8_t family;
	char table[NFT_TABLE_MAXNAMELEN];
	char name[NFT_CHAIN_MAXNAMELEN];
	size_t offset;    /* of iptables-legacy */
	int32_t priority; /* of a start at a hook */
};

struct search {
	const struct nat_question *question;
	struct nat_rule_list *found;
	struct netlink *socket;
	const struct legacy_table *legacy; /* in which it is searched; NULL: in nftables */

	struct nat_rule_list reading; /* of the chain that is being read */
	struct chain starts[MAX_STARTS];
	size_t start_count, chains_read, lookups;
	int failure; /* errno */
};

static struct bytes attributes_of(const struct nlmsghdr *message)
{
	return (struct bytes){(uint8_t *)nlmsg_attrdata(message, sizeof(struct nfgenmsg)),
			      (size_t)nlmsg_attrlen(message, sizeof(struct nfgenmsg))};
}

static void list_append(struct nat_rule_list *list, const struct nat_rule *rule)
{
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
	const struct nat_question *question = search->question;

	if ((rule->verdict || rule->jumps || question->place == NAT_OF_PORTMAP) &&
	    question->concerns(question->context, rule))
		list_append(&search->reading, rule);
}

/* --- where it begins ------------------------------------------------------------------------ */

static bool is_asked_for(const struct search *search, size_t number)
{
	return search->question->place == NAT_OF_PORTMAP ? known[number].of_portmap
							 : known[number].translates;
}

/* Of a table that is known, the chains that are. One that does not exist is empty. */
static void take_table(struct nlmsghdr *message, void *context)
{
	const struct nlattr *name =
		nlmsg_find_attr(message, sizeof(struct nfgenmsg), NFTA_TABLE_NAME);
	struct search *search = context;

	for (size_t i = 0; i < KNOWN && search->start_count < MAX_STARTS; i++) {
		struct chain *chain = &search->starts[search->start_count];

		if (!netlink_is(name, known[i].table) || !is_asked_for(search, i))
			continue;
		*chain = (struct chain){
			.family = ((const struct nfgenmsg *)nlmsg_data(message))->nfgen_family};
		memcpy(chain->table, known[i].table, strlen(known[i].table));
		memcpy(chain->name, known[i].chain, strlen(known[i].chain));
		search->start_count++;
	}
}

/* Packets come to them in the order of their priorities, else of their age, in which they are
 * listed. */
static void add_hook(struct search *search, const struct chain *chain)
{
	size_t place = search->start_count++;

	for (; place && search->starts[place - 1].priority > chain->priority; place--)
		search->starts[place] = search->starts[place - 1];
	search->starts[place] = *chain;
}

static bool copy_name(char *to, size_t room, struct bytes name)
{
	bool fits = name.size && name.size < room;

	if (fits)
		memcpy(to, name.data, name.size);
	return fits;
}

static void take_chain(struct nlmsghdr *message, void *context)
{
	struct bytes attributes = attributes_of(message);
	struct bytes hook = nft_find(attributes, NFTA_CHAIN_HOOK);
	struct chain chain = {
		.family = ((const struct nfgenmsg *)nlmsg_data(message))->nfgen_family,
		.priority = (int32_t)nft_number_at(hook, NFTA_HOOK_PRIORITY, 0),
	};
	struct search *search = context;

	if ((chain.family == NFPROTO_IPV4 || chain.family == NFPROTO_IPV6 ||
	     chain.family == NFPROTO_INET) &&
	    search->start_count < MAX_STARTS &&
	    nft_number_at(hook, NFTA_HOOK_HOOKNUM, NF_INET_NUMHOOKS) == NF_INET_PRE_ROUTING &&
	    copy_name(chain.table, sizeof(chain.table), nft_find(attributes, NFTA_CHAIN_TABLE)) &&
	    copy_name(chain.name, sizeof(chain.name), nft_find(attributes, NFTA_CHAIN_NAME)))
		add_hook(search, &chain);
}

/* --- chains of nftables --------------------------------------------------------------------- */

/* A list that changes meanwhile is asked for again; what has gone has nothing. */
static void dump_list(struct search *search, struct nl_msg *request, netlink_take take,
		      void *context, size_t *count)
{
	int result = -1;

	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++) {
		*count = 0;
		result = netlink_ask(search->socket, request, take, context);
	}
	/* A kernel without nf_tables says so by EINVAL. */
	if (result && errno != ENOENT && errno != EINVAL && errno != EOPNOTSUPP)
		search->failure = errno;
}

static void take_nft_rule(struct nlmsghdr *message, void *context)
{
	const struct nfgenmsg *header = nlmsg_data(message);
	struct nat_rule rule;

	nft_rule_parse(header->nfgen_family, attributes_of(message), &rule);
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
	nft_elements_parse(attributes_of(message), keep_element, context);
}

/* In place of a rule that looks the port up in a set: one for each element that is asked for. */
static void resolve_lookup(struct search *search, const struct chain *chain,
			   const struct nat_rule *rule, struct nat_rule_list *list)
{
	const struct nat_question *question = search->question;
	cleanup_request struct nl_msg *request = NULL;
	struct elements elements = {0};
	struct nat_rule narrowed;

	if (search->lookups++ >= MAX_LOOKUPS)
		return;
	request = nft_request_begin(NFT_MSG_GETSETELEM, chain->family, NLM_F_DUMP);
	nla_put_string(request, NFTA_SET_ELEM_LIST_TABLE, chain->table);
	nla_put_string(request, NFTA_SET_ELEM_LIST_SET, rule->lookup.set);
	dump_list(search, request, take_elements, &elements, &elements.count);
	elements.count = nft_elements_close(elements.list, elements.count);
	for (size_t i = 0; i < elements.count; i++)
		if (nft_rule_of_element(rule, &elements.list[i], &narrowed) &&
		    question->concerns(question->context, &narrowed))
			list_append(list, &narrowed);
	free(elements.list);
}

static void read_nft_chain(struct search *search, const struct chain *chain)
{
	cleanup_request struct nl_msg *request =
		nft_request_begin(NFT_MSG_GETRULE, chain->family, NLM_F_DUMP);
	struct nat_rule_list resolved = {0}, *list = &search->reading;

	nla_put_string(request, NFTA_RULE_TABLE, chain->table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain->name);
	dump_list(search, request, take_nft_rule, search, &list->count);
	for (size_t i = 0; i < list->count; i++)
		if (*list->rules[i].lookup.set)
			resolve_lookup(search, chain, &list->rules[i], &resolved);
		else
			list_append(&resolved, &list->rules[i]);
	nat_rule_list_release(list);
	*list = resolved;
}

/* --- from chain to chain -------------------------------------------------------------------- */

static bool visit_chain(struct search *search, const struct chain *chain, unsigned int depth,
			struct nat_rule *translation);

/* Whether the rule translates, or what it jumps to: its destination is what packets get there. */
static bool follow_jump(struct search *search, const struct chain *chain, unsigned int depth,
			struct nat_rule *rule)
{
	struct chain next = *chain;
	struct nat_rule translation;

	if (rule->verdict || !rule->jumps)
		return rule->verdict;
	if (strlen(rule->target) >= sizeof(next.name))
		return false;
	memcpy(next.name, rule->target, strlen(rule->target) + 1);
	next.offset = rule->target_offset;
	if (!visit_chain(search, &next, depth + 1, &translation))
		return false;
	rule->verdict = translation.verdict;
	memcpy(rule->new_address, translation.new_address, sizeof(rule->new_address));
	rule->new_port = translation.new_port;
	return true;
}

/* Finds in a chain, and in those that it jumps to. Whether packets are translated there; the first
 * rule by which is left in *translation. */
static bool visit_chain(struct search *search, const struct chain *chain, unsigned int depth,
			struct nat_rule *translation)
{
	bool of_portmap = search->question->place == NAT_OF_PORTMAP, translates = false;
	cleanup_nat_rules struct nat_rule_list list = {0};

	/* What portmap's chains of containers jump to only marks packets. */
	if (depth > (of_portmap ? 1 : MAX_DEPTH) || search->chains_read++ >= MAX_CHAINS)
		return false;
	if (search->legacy)
		legacy_chain_parse(search->legacy, chain->offset, take_rule, search);
	else
		read_nft_chain(search, chain);
	list = search->reading;
	search->reading = (struct nat_rule_list){0};
	for (size_t i = 0; i < list.count; i++) {
		struct nat_rule *rule = &list.rules[i];
		bool leads_on = follow_jump(search, chain, depth, rule);

		if (of_portmap || (leads_on && rule->names_port))
			list_append(search->found, rule);
		if (leads_on && !translates)
			*translation = *rule;
		translates |= leads_on;
	}
	return translates;
}

static void visit_starts(struct search *search)
{
	struct nat_rule translation;

	for (size_t i = 0; i < search->start_count; i++)
		visit_chain(search, &search->starts[i], 0, &translation);
}

static void search_nftables(struct search *search)
{
	bool by_name = search->question->place != NAT_AT_PREROUTING;
	cleanup_request struct nl_msg *request = nft_request_begin(
		by_name ? NFT_MSG_GETTABLE : NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, NLM_F_DUMP);
	cleanup_error struct cni_error none = {0};
	cleanup_netlink struct netlink *socket = NULL;

	/* A kernel without netfilter has no such sockets. */
	if (netfilter_has("nft_chain_nat"))
		socket = netlink_open(NETLINK_NETFILTER, &none);
	if (!socket)
		return;
	search->socket = socket;
	dump_list(search, request, by_name ? take_table : take_chain, search, &search->start_count);
	visit_starts(search);
}

static void find_legacy_starts(struct search *search, const struct legacy_table *table)
{
	struct chain *chain = search->starts;

	*chain = (struct chain){.offset = table->hook_begin[NF_INET_PRE_ROUTING]};
	if (search->question->place == NAT_AT_PREROUTING)
		chain++;
	else
		for (size_t i = 0; i < KNOWN; i++)
			if (is_asked_for(search, i) && !strcmp(known[i].table, table->name) &&
			    legacy_chain_find(table, known[i].chain, &chain->offset))
				chain++;
	search->start_count = (size_t)(chain - search->starts);
}

static int search_legacy_table(struct search *search, bool ipv4, const char *name)
{
	struct legacy_table table;

	if (!legacy_table_exists(ipv4, name) ||
	    (search->question->place == NAT_OF_PORTMAP && !legacy_may_have_portmap()))
		return 0;
	if (legacy_table_read(ipv4, name, &table))
		return -1;
	search->legacy = &table;
	find_legacy_starts(search, &table);
	visit_starts(search);
	search->legacy = NULL;
	free((void *)table.entries);
	return 0;
}

static int search_legacy(struct search *search)
{
	bool everywhere = search->question->place == NAT_AT_PREROUTING;

	for (int ipv4 = 0; ipv4 < 2; ipv4++)
		if ((everywhere && search_legacy_table(search, ipv4, "mangle")) ||
		    search_legacy_table(search, ipv4, TABLE_OF_IPTABLES))
			return -1;
	return 0;
}

int nat_rules_find(struct nat_rule_list *found, const struct nat_question *question,
		   struct cni_error *err)
{
	struct search search = {.found = found, .question = question};
	const char *what = "nftables";

	search_nftables(&search);
	if (!search.failure) {
		what = "iptables-legacy";
		if (!search_legacy(&search))
			return 0;
		search.failure = errno;
	}
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read the NAT rules of %s: %s",
			     what, strerror(search.failure));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rules.c - the rules of this network namespace that give packets another destination. */
#include "nat/nat_rules.h"

#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "nat/legacy_table.h"
#include "nat/nat_rule.h"
#include "nat/nft_rule.h"
#include "nat/engine_chains.h"
#include "net/netlink.h"

#define MAX_DEPTH 16 /* as in the kernel */
#define MAX_STARTS 64
#define MAX_CHAINS 16384
#define MAX_LOOKUPS 64
#define MAX_ELEMENTS 65536
#define TRIES 3

/* NAT_WHERE_QUICK: chains and sets of all tables, up to which chains are listed; rules of a chain
 * that are read; elements that are asked for, 3 us each. */
#define QUICK_OBJECTS 256
#define QUICK_RULES 256
#define MAX_ASKED 256

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

static struct bytes nft_attributes_of(const struct nlmsghdr *message)
{
	return (struct bytes){(uint8_t *)nlmsg_attrdata(message, sizeof(struct nfgenmsg)),
			      (size_t)nlmsg_attrlen(message, sizeof(struct nfgenmsg))};
}

static void nat_rule_list_append(struct nat_rule_list *list, const struct nat_rule *rule)
{
	*ARRAY_ADD(list->rules, list->count) = *rule;
}

void nat_rule_list_release(struct nat_rule_list *list)
{
	free(list->rules);
	*list = (struct nat_rule_list){0};
}

/* Returns whether a rule is one of those that are asked for. */
static bool nat_search_wants(const struct search *search, const struct nat_rule *rule)
{
	const struct nat_question *question = search->question;

	return question->asked ? nat_rule_is_asked_for(rule, question->asked)
			       : question->concerns(question->context, rule);
}

/* Takes a rule of the chain that is being read; the context is the search. */
static void nat_search_take(void *context, const struct nat_rule *rule)
{
	struct search *search = context;

	if ((rule->verdict || rule->jumps || search->question->place == NAT_OF_PORTMAP) &&
	    nat_search_wants(search, rule))
		nat_rule_list_append(&search->reading, rule);
}

/* Asks for a list, again where it changes meanwhile; what has gone has nothing. `count` is of what
 * is taken. */
static void nat_search_dump(struct search *search, struct nl_msg *request, netlink_take take,
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

/* --- one chain of nftables ------------------------------------------------------------------ */

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

/* Leaves in search->reading the chain's rules that are asked for, with one for each element of a
 * set in place of a look-up. */
static void nft_chain_read(struct search *search, const struct chain *chain)
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

/* --- where it begins ------------------------------------------------------------------------ */

static bool is_start(const struct search *search, const struct nat_chain *chain)
{
	if (search->question->place == NAT_OF_PORTMAP)
		return chain->start == NAT_START_PORTMAP;
	return chain->start != NAT_START_NONE && chain->hooks;
}

/* Of a table that is known, the chains that are. One that does not exist is empty. */
static void take_table(struct nlmsghdr *message, void *context)
{
	uint8_t family = ((const struct nfgenmsg *)nlmsg_data(message))->nfgen_family;
	struct bytes attributes = nft_attributes_of(message);
	struct bytes table = nft_find(attributes, NFTA_TABLE_NAME);
	struct search *search = context;

	if (family != NFPROTO_IPV4 && family != NFPROTO_IPV6 && family != NFPROTO_INET)
		return;
	search->objects += nft_number_at(attributes, NFTA_TABLE_USE, 0);
	for (const struct nat_chain *known = nat_chains;
	     known->name && search->start_count < MAX_STARTS; known++) {
		struct chain *chain = &search->starts[search->start_count];

		if (!known->table || !nft_is(table, known->table) || !is_start(search, known))
			continue;
		*chain = (struct chain){.family = family, .hooks = known->hooks};
		memcpy(chain->table, known->table, strlen(known->table));
		memcpy(chain->name, known->name, strlen(known->name));
		search->start_count++;
	}
}

/* Packets come to them in the order of their priorities, and of two with the same one to the
 * younger first; the older is listed first. */
static void add_hook(struct search *search, const struct chain *chain)
{
	size_t place = search->start_count++;

	for (; place && search->starts[place - 1].hooks == chain->hooks &&
	       search->starts[place - 1].priority >= chain->priority;
	     place--)
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
	struct bytes attributes = nft_attributes_of(message);
	struct bytes hook = nft_find(attributes, NFTA_CHAIN_HOOK);
	uint32_t number = nft_number_at(hook, NFTA_HOOK_HOOKNUM, NF_INET_NUMHOOKS);
	struct chain chain = {
		.family = ((const struct nfgenmsg *)nlmsg_data(message))->nfgen_family,
		.priority = (int32_t)nft_number_at(hook, NFTA_HOOK_PRIORITY, 0),
		.hooks = number == NF_INET_PRE_ROUTING ? NAT_FROM_OUTSIDE : NAT_FROM_HOST,
	};
	struct search *search = context;

	if ((chain.family == NFPROTO_IPV4 || chain.family == NFPROTO_IPV6 ||
	     chain.family == NFPROTO_INET) &&
	    search->start_count < MAX_STARTS &&
	    (number == NF_INET_PRE_ROUTING || number == NF_INET_LOCAL_OUT) &&
	    copy_name(chain.table, sizeof(chain.table), nft_find(attributes, NFTA_CHAIN_TABLE)) &&
	    copy_name(chain.name, sizeof(chain.name), nft_find(attributes, NFTA_CHAIN_NAME)))
		add_hook(search, &chain);
}

/* --- from chain to chain -------------------------------------------------------------------- */

/* What is known of the way to a chain. */
struct approach {
	const struct nat_rule *outer; /* the rule that jumps to it, with its own way's conditions */
	unsigned int depth;
	bool names_port; /* one of these rules does */
};

static bool visit_chain(struct search *search, const struct chain *chain,
			const struct approach *approach, struct nat_rule *translation);

/* Whether the rule translates, or what it jumps to: its destination is what packets get there. */
static bool follow_jump(struct search *search, const struct chain *chain,
			const struct approach *approach, struct nat_rule *rule)
{
	const struct approach onwards = {rule, approach->depth + 1,
					 approach->names_port || rule->names_port};
	struct chain next = *chain;
	struct nat_rule translation;

	rule->whole = !rule->restricted;
	if (rule->verdict || !rule->jumps)
		return rule->verdict;
	if (strlen(rule->target) >= sizeof(next.name))
		return false;
	memcpy(next.name, rule->target, strlen(rule->target) + 1);
	next.offset = rule->target_offset;
	if (!visit_chain(search, &next, &onwards, &translation))
		return false;
	rule->whole = translation.whole;
	rule->verdict = translation.verdict;
	memcpy(rule->new_address, translation.new_address, sizeof(rule->new_address));
	rule->new_port = translation.new_port;
	rule->is_one_of_several = translation.is_one_of_several;
	return true;
}

static bool is_same(const struct nat_rule *one, const struct nat_rule *other)
{
	return one->legacy == other->legacy && one->family == other->family &&
	       one->handle == other->handle && one->protocol == other->protocol &&
	       one->range_count == other->range_count &&
	       !memcmp(one->ports, other->ports, sizeof(one->ports)) &&
	       !memcmp(one->address, other->address, sizeof(one->address)) &&
	       !memcmp(one->mask, other->mask, sizeof(one->mask)) &&
	       one->new_port == other->new_port &&
	       one->is_one_of_several == other->is_one_of_several &&
	       !memcmp(one->new_address, other->new_address, sizeof(one->new_address)) &&
	       !strcmp(one->table, other->table) && !strcmp(one->chain_name, other->chain_name) &&
	       !strcmp(one->target, other->target);
}

static void add_found(struct search *search, const struct nat_rule *rule)
{
	struct nat_rule_list *found = search->found;

	for (size_t i = 0; search->question->asked && i < found->count; i++) {
		struct nat_rule *known = &found->rules[i];

		if (is_same(known, rule)) {
			known->hooks |= rule->hooks;
			known->not_loopback |= rule->not_loopback;
			return;
		}
	}
	nat_rule_list_append(found, rule);
}

static bool is_found(const struct search *search, const struct approach *approach,
		     const struct nat_rule *rule)
{
	return search->question->place == NAT_OF_PORTMAP || rule->names_port ||
	       (!rule->jumps && !approach->names_port && rule->whole);
}

/* Narrows a rule to what comes to it this way. False: nobody asks for that. */
static bool comes_to(const struct search *search, const struct approach *approach,
		     struct nat_rule *rule)
{
	rule->hooks = approach->outer->hooks;
	return !search->question->asked ||
	       (nat_rule_limit_to(rule, approach->outer) && nat_search_wants(search, rule));
}

/* Adds to the first translation of a chain another one, which may get what the first one leaves. */
static void add_translation(struct nat_rule *first, const struct nat_rule *next)
{
	bool of_one_family = (first->ipv4 && next->ipv4) || (first->ipv6 && next->ipv6);

	first->is_one_of_several |= next->is_one_of_several ||
				    (of_one_family && (first->new_port != next->new_port ||
						       memcmp(first->new_address, next->new_address,
							      sizeof(first->new_address)) != 0));
	first->whole |= next->whole;
}

/* Finds in a chain, and in those that it jumps to. Whether packets are translated there; the first
 * rule by which is left in *translation, and whether all are. */
static bool visit_chain(struct search *search, const struct chain *chain,
			const struct approach *approach, struct nat_rule *translation)
{
	bool of_portmap = search->question->place == NAT_OF_PORTMAP;
	bool translates = false;
	cleanup_nat_rules struct nat_rule_list list = {0};

	/* What portmap's chains of containers jump to only marks packets. */
	if (approach->depth > (of_portmap ? 1 : MAX_DEPTH) || search->chains_read++ >= MAX_CHAINS)
		return false;
	if (search->legacy)
		legacy_chain_parse(search->legacy, chain->offset, nat_search_take, search);
	else
		nft_chain_read(search, chain);
	list = search->reading;
	search->reading = (struct nat_rule_list){0};
	for_each (rule, list.rules, list.count) {
		bool leads_on = comes_to(search, approach, rule) &&
				follow_jump(search, chain, approach, rule);

		if (of_portmap || (leads_on && is_found(search, approach, rule)))
			add_found(search, rule);
		if (leads_on && translates)
			add_translation(translation, rule);
		else if (leads_on)
			*translation = *rule;
		translates |= leads_on;
	}
	return translates;
}

static void visit_starts(struct search *search)
{
	struct nat_rule translation, none;

	for (size_t i = 0; i < search->start_count; i++) {
		const struct approach approach = {&none, 0, false};

		nat_rule_begin(&none, true, true);
		none.hooks = search->starts[i].hooks;
		visit_chain(search, &search->starts[i], &approach, &translation);
	}
}

static void list_starts(struct search *search)
{
	cleanup_request struct nl_msg *tables =
		nft_request_begin(NFT_MSG_GETTABLE, NFPROTO_UNSPEC, NLM_F_DUMP);
	cleanup_request struct nl_msg *chains =
		nft_request_begin(NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, NLM_F_DUMP);
	enum nat_place place = search->question->place;

	if (place != NAT_EVERYWHERE)
		nat_search_dump(search, tables, take_table, search, &search->start_count);
	if (place == NAT_OF_PORTMAP)
		return;
	search->found->is_partial = search->objects > QUICK_OBJECTS;
	if (!search->found->is_partial && (place == NAT_EVERYWHERE || search->objects))
		nat_search_dump(search, chains, take_chain, search, &search->start_count);
}

static void search_nftables(struct search *search)
{
	cleanup_error struct cni_error none = {0};

	/* A kernel without netfilter has no such sockets. */
	if (netfilter_has("nft_chain_nat"))
		search->socket = netlink_own(NETLINK_NETFILTER, &none);
	if (!search->socket)
		return;
	list_starts(search);
	visit_starts(search);
}

static void find_legacy_starts(struct search *search, const struct legacy_table *table)
{
	bool of_portmap = search->question->place == NAT_OF_PORTMAP;
	struct chain *chain = search->starts;

	if (!of_portmap)
		*chain++ = (struct chain){.offset = table->hook_begin[NF_INET_PRE_ROUTING],
					  .hooks = NAT_FROM_OUTSIDE};
	if (!of_portmap && table->valid_hooks & 1U << NF_INET_LOCAL_OUT)
		*chain++ = (struct chain){.offset = table->hook_begin[NF_INET_LOCAL_OUT],
					  .hooks = NAT_FROM_HOST};
	for (const struct nat_chain *known = nat_chains; of_portmap && known->name; known++)
		if (is_start(search, known) && !strcmp(known->table, table->name) &&
		    legacy_chain_find(table, known->name, &chain->offset))
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
	bool everywhere = search->question->place == NAT_EVERYWHERE;

	for (int ipv4 = 0; ipv4 < 2; ipv4++)
		if ((everywhere && search_legacy_table(search, ipv4, "mangle")) ||
		    search_legacy_table(search, ipv4, NAT_TABLE_OF_IPTABLES))
			return -1;
	return 0;
}

static int compare_ports(const void *one, const void *other)
{
	const struct portmap_key *a = one, *b = other;

	return (int)a->host_port - (int)b->host_port;
}

/* Returns the keys, malloc'ed, in the order in which rules are asked about them. */
static struct portmap_key *sort_keys(const struct nat_asked *asked)
{
	struct portmap_key *keys = or_exit(calloc(asked->key_count + 1, sizeof(*keys)));

	if (asked->key_count)
		memcpy(keys, asked->keys, asked->key_count * sizeof(*keys));
	qsort(keys, asked->key_count, sizeof(*keys), compare_ports);
	return keys;
}

int nat_rules_find(struct nat_rule_list *found, const struct nat_question *question,
		   struct cni_error *err)
{
	struct nat_question asking = *question;
	struct nat_asked asked = question->asked ? *question->asked : (struct nat_asked){0};
	cleanup_free struct portmap_key *keys = sort_keys(&asked);
	struct search search = {.found = found, .question = &asking};
	const char *what = "nftables";

	asked.keys = keys;
	asking.asked = question->asked ? &asked : NULL;
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

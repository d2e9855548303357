/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rules.c - the rules of this network namespace that give packets another destination. */
#include "net/nat_rules.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "net/ipt_table.h"
#include "net/netlink.h"
#include "net/nft_rule.h"

#define MAX_TABLES 16
#define MAX_LOOKUPS 64
#define MAX_ELEMENTS 65536
#define TRIES 3

struct nft_table {
	uint8_t family;
	char name[NFT_TABLE_MAXNAMELEN];
};

struct search {
	struct nat_graph *graph;
	bool (*concerns)(const void *context, const struct nat_rule *rule);
	const void *context;
	struct nft_table tables[MAX_TABLES]; /* that have NAT */
	size_t table_count;
	bool no_memory;
};

static bool is_there(const char *path)
{
	return !access(path, F_OK);
}

/* nfnetlink loads nf_tables for anyone who asks. Where netfilter is made of modules, one that is
 * not there has no rules. (A kernel that has nf_conntrack built in shows its parameters.) */
static bool may_have_nftables(void)
{
	if (!is_there("/sys/module"))
		return true;
	if (!is_there("/sys/module/nf_conntrack"))
		return false;
	return !is_there("/sys/module/nf_conntrack/initstate") ||
	       is_there("/sys/module/nft_chain_nat");
}

static bool take_rule(void *context, const struct nat_rule *rule)
{
	struct search *search = context;
	bool kept =
		*rule->lookup.set || (rule->names_port && search->concerns(search->context, rule));

	search->no_memory = search->no_memory || nat_graph_add(search->graph, rule, kept);
	return !search->no_memory;
}

/* What follows nfgenmsg. */
static struct nft_bytes attributes_of(struct nl_msg *message, uint8_t *family)
{
	struct nlmsghdr *header = nlmsg_hdr(message);
	struct nfgenmsg *fixed = nlmsg_data(header);

	if (nlmsg_datalen(header) < (int)NLMSG_ALIGN(sizeof(*fixed)))
		return (struct nft_bytes){0};
	*family = fixed->nfgen_family;
	return (struct nft_bytes){
		.data = (const uint8_t *)nlmsg_attrdata(header, sizeof(*fixed)),
		.size = (size_t)nlmsg_attrlen(header, sizeof(*fixed)),
	};
}

static void remember_table(struct search *search, uint8_t family, struct nft_bytes name)
{
	struct nft_table *table = &search->tables[search->table_count];

	for (size_t i = 0; i < search->table_count; i++)
		if (search->tables[i].family == family && nft_is(name, search->tables[i].name))
			return;
	if (search->table_count == MAX_TABLES || name.size >= sizeof(table->name))
		return;
	*table = (struct nft_table){.family = family};
	memcpy(table->name, name.data, name.size);
	search->table_count++;
}

static int take_chain(struct nl_msg *message, void *context)
{
	struct search *search = context;
	uint8_t family = NFPROTO_UNSPEC;
	struct nft_bytes attributes = attributes_of(message, &family);
	struct nft_bytes table = nft_find(attributes, NFTA_CHAIN_TABLE);

	if ((family != NFPROTO_IPV4 && family != NFPROTO_IPV6 && family != NFPROTO_INET) ||
	    !nft_chain_is_nat_prerouting(attributes))
		return NL_OK;
	remember_table(search, family, table);
	if (nat_graph_add_root(
		    search->graph,
		    nft_chain_number(family, table, nft_find(attributes, NFTA_CHAIN_NAME))))
		search->no_memory = true;
	return NL_OK;
}

static int take_nft_rule(struct nl_msg *message, void *context)
{
	uint8_t family = NFPROTO_UNSPEC;
	struct nft_bytes attributes = attributes_of(message, &family);
	struct nat_rule rule;

	nft_rule_parse(family, attributes, &rule);
	take_rule(context, &rule);
	return NL_OK;
}

/* A dump, of what has these names. */
static int dump(struct nl_sock *socket, int type, uint8_t family, int table_attribute,
		const char *table, int set_attribute, const char *set, netlink_parse parse,
		void *context)
{
	struct nfgenmsg fixed = {.nfgen_family = family, .version = NFNETLINK_V0};
	struct nl_msg *request =
		nlmsg_alloc_simple(NFNL_SUBSYS_NFTABLES << 8 | type, NLM_F_REQUEST | NLM_F_DUMP);

	if (request && (nlmsg_append(request, &fixed, sizeof(fixed), NLMSG_ALIGNTO) ||
			(table && nla_put_string(request, table_attribute, table)) ||
			(set && nla_put_string(request, set_attribute, set)))) {
		nlmsg_free(request);
		request = NULL;
	}
	return netlink_request(socket, request, parse, context);
}

/* Rules of a table that changes meanwhile are read again; what was read of it is there twice then,
 * which does no harm. */
static int read_table(struct search *search, struct nl_sock *socket, const struct nft_table *table)
{
	int result = -NLE_DUMP_INTR;

	for (int i = 0; i < TRIES && result == -NLE_DUMP_INTR; i++)
		result = dump(socket, NFT_MSG_GETRULE, table->family, NFTA_RULE_TABLE, table->name,
			      0, NULL, take_nft_rule, search);
	return result == -NLE_OBJ_NOTFOUND ? 0 : result;
}

struct elements {
	struct nft_element *list;
	size_t count;
};

static void keep_element(void *context, const struct nft_element *element)
{
	struct elements *elements = context;
	size_t count = elements->count;
	struct nft_element *grown = elements->list;

	if (count == MAX_ELEMENTS)
		return;
	if (!(count & (count - 1))) {
		grown = reallocarray(grown, count ? count * 2 : 1, sizeof(*grown));
		if (!grown)
			return;
		elements->list = grown;
	}
	grown[elements->count++] = *element;
}

static int take_elements(struct nl_msg *message, void *context)
{
	uint8_t family;

	nft_elements_parse(attributes_of(message, &family), keep_element, context);
	return NL_OK;
}

/* One rule for each of the set's elements that is asked for. */
static void resolve_lookup(struct search *search, struct nl_sock *socket, struct nat_rule rule)
{
	struct elements elements = {0};
	struct nat_rule narrowed;

	dump(socket, NFT_MSG_GETSETELEM, rule.lookup.family, NFTA_SET_ELEM_LIST_TABLE,
	     rule.lookup.table, NFTA_SET_ELEM_LIST_SET, rule.lookup.set, take_elements, &elements);
	elements.count = nft_elements_close(elements.list, elements.count);
	for (size_t i = 0; i < elements.count; i++)
		if (nft_rule_of_element(&rule, &elements.list[i], &narrowed) &&
		    search->concerns(search->context, &narrowed) &&
		    nat_graph_append(search->graph, &narrowed))
			break;
	free(elements.list);
}

/* What looks ports up in a set is a rule for all ports, until that has been read. */
static void resolve_lookups(struct search *search, struct nl_sock *socket)
{
	size_t count = search->graph->rule_count;
	size_t resolved = 0;

	for (size_t i = 0; i < count; i++) {
		struct nat_rule *rule = &search->graph->rules[i];

		if (!*rule->lookup.set)
			continue;
		if (rule->effective && resolved++ < MAX_LOOKUPS)
			resolve_lookup(search, socket, *rule);
		search->graph->rules[i].effective = false;
	}
}

static int read_nftables(struct search *search, struct nl_sock *socket)
{
	int result = -NLE_DUMP_INTR;

	for (int i = 0; i < TRIES && result == -NLE_DUMP_INTR; i++)
		result = dump(socket, NFT_MSG_GETCHAIN, NFPROTO_UNSPEC, 0, NULL, 0, NULL,
			      take_chain, search);
	/* A kernel without nf_tables says so by an error. */
	if (!search->table_count)
		return 0;
	for (size_t i = 0; !result && i < search->table_count; i++)
		result = read_table(search, socket, &search->tables[i]);
	return result;
}

/* Whether the table is there: asking for it would make it. */
static bool has_legacy_nat(const char *path)
{
	FILE *file = fopen(path, "re");
	char line[64];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strcmp(line, "nat\n");
	if (file)
		fclose(file);
	return found;
}

/* The structures and numbers of both families are the same. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo), "getinfo");
_Static_assert(sizeof(struct ipt_get_entries) == sizeof(struct ip6t_get_entries), "get_entries");
_Static_assert(IPT_SO_GET_INFO == IP6T_SO_GET_INFO, "get info");
_Static_assert(IPT_SO_GET_ENTRIES == IP6T_SO_GET_ENTRIES, "get entries");

static int read_entries(struct search *search, bool ipv4, int socket)
{
	struct ipt_getinfo info = {.name = "nat"};
	cleanup_free struct ipt_get_entries *entries = NULL;
	socklen_t length = sizeof(info);
	struct ipt_hooks hooks;
	int level = ipv4 ? SOL_IP : SOL_IPV6;

	if (getsockopt(socket, level, IPT_SO_GET_INFO, &info, &length))
		return -1;
	length = (socklen_t)(sizeof(*entries) + info.size);
	entries = calloc(1, length);
	if (!entries)
		return -1;
	memcpy(entries->name, info.name, sizeof(entries->name));
	entries->size = info.size;
	if (getsockopt(socket, level, IPT_SO_GET_ENTRIES, entries, &length))
		return -1;
	memcpy(hooks.begin, info.hook_entry, sizeof(hooks.begin));
	hooks.valid = info.valid_hooks;
	if (nat_graph_add_root(search->graph,
			       ipt_chain_number(ipv4, hooks.begin[NF_INET_PRE_ROUTING])))
		return -1;
	ipt_table_parse(ipv4, &hooks, (const uint8_t *)entries->entrytable, info.size, take_rule,
			search);
	return 0;
}

/* EAGAIN: it changed between the two questions. */
static int read_legacy(struct search *search, bool ipv4)
{
	cleanup_close int fd = -1;
	int result = -1;

	if (!has_legacy_nat(ipv4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names"))
		return 0;
	fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	if (fd < 0)
		return -1;
	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++)
		result = read_entries(search, ipv4, fd);
	return result;
}

static int refuse(const char *what, const char *why, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read the NAT rules of %s: %s",
			     what, why);
}

int nat_rules_find(struct nat_graph *graph,
		   bool (*concerns)(const void *context, const struct nat_rule *rule),
		   const void *context, struct cni_error *err)
{
	struct search search = {.graph = graph, .concerns = concerns, .context = context};
	cleanup_netlink struct nl_sock *socket = NULL;
	struct cni_error none = {0};
	int result = 0;

	if (may_have_nftables())
		socket = netlink_open_protocol(NETLINK_NETFILTER, &none);
	cni_error_release(&none);
	if (socket)
		result = read_nftables(&search, socket);
	if (result)
		return refuse("nftables", nl_geterror(result), err);
	if (read_legacy(&search, true) || read_legacy(&search, false))
		return refuse("iptables-legacy", strerror(errno), err);
	if (search.no_memory)
		return cni_error_no_memory(err);
	nat_graph_walk(graph);
	if (socket)
		resolve_lookups(&search, socket);
	return 0;
}

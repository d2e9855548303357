/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* portmap_rules.c - the rules by which the reference plugin portmap sends packets to containers. */
#include "nat/portmap_rules.h"

#include <errno.h>
#include <linux/netfilter/nf_tables.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/cleanup.h"
#include "nat/nat_rule.h"
#include "nat/nft_rule.h"
#include "nat/engine_chains.h"
#include "net/netlink.h"

#define CHAIN_OF_CONTAINER "CNI-DN-"
#define CHAIN_OF_MARKS "CNI-HOSTPORT-SETMARK"
#define CHAIN_OF_MARKS_OF_KUBE "KUBE-MARK-MASQ"

/* From: dnat name: "NETWORK" id: "ID". False: it is not there whole. */
static bool take_quoted(const char *comment, const char *before, char name[NAT_COMMENT_SIZE])
{
	const char *begin = strstr(comment, before), *end;

	if (!begin)
		return false;
	begin += strlen(before);
	end = strchr(begin, '"');
	if (!end)
		return false;
	snprintf(name, NAT_COMMENT_SIZE, "%.*s", (int)(end - begin), begin);
	return true;
}

/* In iptables a rule that jumps to the container's chain, in nftables any has its ID. */
static bool take_names(struct portmap_entry *entry)
{
	const struct nat_rule *rule = &entry->rule;

	if (!strcmp(rule->table, NAT_TABLE_OF_PORTMAP))
		snprintf(entry->id, sizeof(entry->id), "%s", rule->comment);
	else if (strcmp(rule->chain_name, NAT_CHAIN_OF_PORTMAP) != 0 || !rule->jumps ||
		 !take_quoted(rule->comment, "name: \"", entry->network) ||
		 !take_quoted(rule->comment, "id: \"", entry->id))
		return false;
	return *entry->id;
}

static bool is_containers_chain(const char *name)
{
	return !strncmp(name, CHAIN_OF_CONTAINER, strlen(CHAIN_OF_CONTAINER));
}

static bool concerns_container(const void *id, const struct nat_rule *rule)
{
	struct portmap_entry entry = {.rule = *rule};

	return !id || is_containers_chain(rule->chain_name) ||
	       (take_names(&entry) && !strcmp(entry.id, id));
}

/* While they are read. */
struct reading {
	struct portmap_entries *entries;
	const struct nat_rule *rules; /* all that were found */
	size_t first; /* of those that were read since the last one of a container */
	bool barred;  /* before it came a rule that is nobody's */
};

/* A port, and nothing else. In a container's chain other rules mark what is to be masqueraded. */
static bool is_as_written(const struct nat_rule *rule)
{
	if (!rule->verdict)
		return !strcmp(rule->target, CHAIN_OF_MARKS) ||
		       !strcmp(rule->target, CHAIN_OF_MARKS_OF_KUBE);
	return !rule->restricted && !rule->excepts && rule->protocol && rule->new_port &&
	       rule->range_count == 1 && rule->ports[0].first == rule->ports[0].last;
}

static void add_entry(struct reading *reading, const struct nat_rule *rule,
		      struct portmap_entry entry)
{
	static const uint8_t none[CNI_ADDRESS_SIZE];

	entry.rule = *rule;
	entry.is_address = memcmp(rule->new_address, none, sizeof(none)) != 0;
	entry.is_port = rule->verdict && !rule->jumps;
	entry.changed |= entry.is_port && !is_as_written(rule);
	*ARRAY_ADD(reading->entries->list, reading->entries->count) = entry;
}

/* The rules of the chain that it jumps to are the container's, too: those for its protocol. */
static void add_jump(struct reading *reading, size_t number, struct portmap_entry entry)
{
	const struct nat_rule *jump = &reading->rules[number];

	for (size_t i = reading->first; i < number; i++)
		entry.changed |= is_containers_chain(reading->rules[i].chain_name) &&
				 !is_as_written(&reading->rules[i]);
	for (size_t i = reading->first; i < number; i++)
		if (reading->rules[i].verdict &&
		    (!jump->protocol || reading->rules[i].protocol == jump->protocol))
			add_entry(reading, &reading->rules[i], entry);
	entry.conditional = jump->restricted || jump->excepts || !nat_rule_has_any_address(jump);
	add_entry(reading, jump, entry);
}

static void take_rule(struct reading *reading, size_t number)
{
	const struct nat_rule *rule = &reading->rules[number];
	const struct nat_rule *last = number ? rule - 1 : rule;
	struct portmap_entry entry = {.rule = *rule};

	if (last->legacy != rule->legacy || last->family != rule->family ||
	    strcmp(last->table, rule->table) != 0)
		reading->barred = false;
	if (is_containers_chain(rule->chain_name))
		return;
	entry.changed = reading->barred;
	if (!take_names(&entry))
		reading->barred |= !is_containers_chain(rule->target);
	else if (rule->jumps)
		add_jump(reading, number, entry);
	else
		add_entry(reading, rule, entry);
	reading->first = number + 1;
}

int portmap_entries_read(struct portmap_entries *entries, const char *id, struct cni_error *err)
{
	const struct nat_question question = {
		.place = NAT_OF_PORTMAP, .concerns = concerns_container, .context = id};
	cleanup_nat_rules struct nat_rule_list found = {0};
	struct reading reading = {.entries = entries};

	if (nat_rules_find(&found, &question, err))
		return -1;
	reading.rules = found.rules;
	for (size_t i = 0; i < found.count; i++)
		take_rule(&reading, i);
	return 0;
}

void portmap_entries_release(struct portmap_entries *entries)
{
	free(entries->list);
	*entries = (struct portmap_entries){0};
}

bool portmap_entry_is_of(const struct portmap_entry *entry, const char *network, const char *id)
{
	return !strcmp(entry->id, id) && (!*entry->network || !strcmp(entry->network, network));
}

/* --- removal ------------------------------------------------------------------------------ */

/* handle 0: all of the chain's. */
static void batch_delete_rule(struct nft_batch *batch, const struct portmap_entry *entry,
			      const char *chain, uint64_t handle)
{
	struct nl_msg *request = nft_request_begin(NFT_MSG_DELRULE, entry->rule.family, 0);

	nla_put_string(request, NFTA_RULE_TABLE, entry->rule.table);
	nla_put_string(request, NFTA_RULE_CHAIN, chain);
	if (handle)
		nla_put_u64(request, NFTA_RULE_HANDLE, htobe64(handle));
	nft_batch_add(batch, request);
}

/* Of one container more than one rule may jump to its chain. */
static bool is_last_to_chain(const struct portmap_entries *entries, size_t number)
{
	const struct portmap_entry *entry = &entries->list[number];

	if (!is_containers_chain(entry->rule.target))
		return false;
	for (size_t i = number + 1; i < entries->count; i++)
		if (!entries->list[i].rule.legacy &&
		    entries->list[i].rule.family == entry->rule.family &&
		    !strcmp(entries->list[i].rule.target, entry->rule.target))
			return false;
	return true;
}

/* Of a rule with a set of ports each port is an entry. */
static bool is_same_rule(const struct nat_rule *one, const struct nat_rule *other)
{
	return one->handle == other->handle && one->legacy == other->legacy &&
	       one->family == other->family && !strcmp(one->table, other->table);
}

static void write_batch(struct nft_batch *batch, const struct portmap_entries *entries,
			const char *network, const char *id)
{
	for (size_t i = 0; i < entries->count; i++) {
		const struct portmap_entry *entry = &entries->list[i];
		struct nl_msg *request;

		if (entry->rule.legacy || is_containers_chain(entry->rule.chain_name) ||
		    !portmap_entry_is_of(entry, network, id) ||
		    (i && is_same_rule(&entry->rule, &entry[-1].rule)))
			continue;
		batch_delete_rule(batch, entry, entry->rule.chain_name, entry->rule.handle);
		if (!is_last_to_chain(entries, i))
			continue;
		request = nft_request_begin(NFT_MSG_DELCHAIN, entry->rule.family, 0);
		batch_delete_rule(batch, entry, entry->rule.target, 0);
		nla_put_string(request, NFTA_CHAIN_TABLE, entry->rule.table);
		nla_put_string(request, NFTA_CHAIN_NAME, entry->rule.target);
		nft_batch_add(batch, request);
	}
}

int portmap_entries_remove(const struct portmap_entries *entries, const char *network,
			   const char *id, struct cni_error *err)
{
	cleanup_netlink struct netlink *socket = NULL;
	struct nft_batch batch = {0};
	int error;

	write_batch(&batch, entries, network, id);
	if (!batch.last)
		return 0;
	socket = netlink_open(NETLINK_NETFILTER, NULL);
	error = nft_batch_send(&batch, socket);
	return error ? cni_error_set(err,
				     error == ENOENT ? CNI_ERROR_TRY_AGAIN
						     : CNI_ERROR_KERNEL_REFUSED,
				     "cannot remove the rules of portmap: %s", strerror(error))
		     : 0;
}

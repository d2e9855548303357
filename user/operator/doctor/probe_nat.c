/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_nat.c - which rule of the host's NAT gives another destination to packets for a container.
 */
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "nat/nat_rules.h"
#include "operator/doctor/probe_remedy.h"
#include "operator/print/format.h"

/* "nft ip nat, chain PREROUTING, rule handle 4 (tcp dport 80 redirect to :81)" */
static char *describe(const struct nat_rule *rule)
{
	cleanup_ruleset struct ruleset ruleset = {0};
	struct nft_drop at = {.family = rule->family, .handle = rule->handle};
	cleanup_free char *text = NULL;

	if (rule->legacy)
		return cni_format("iptables-legacy, table nat, chain %s (%s)", rule->chain_name,
				  rule->verdict);
	snprintf(at.table, sizeof(at.table), "%s", rule->table);
	ruleset_read(&ruleset, &at, NULL);
	text = ruleset_rule(&ruleset, rule->chain_name, rule->handle);
	return cni_format("nft %s %s, chain %s, rule handle %llu (%s)",
			  nft_family_word(rule->family), rule->table, rule->chain_name,
			  (unsigned long long)rule->handle, text ? text : rule->verdict);
}

/* The first rule that packets meet which come to the container by our translation. */
static char *find_rule(const struct cause *cause)
{
	const struct portmap *portmap = &cause->subject->mapping->portmap;
	struct portmap_key key = {.protocol = cause->way->packet.protocol,
				  .host_port = portmap->container_port};
	const struct nat_asked asked = {.keys = &key, .key_count = 1};
	const struct nat_question question = {.place = NAT_EVERYWHERE, .asked = &asked};
	cleanup_nat_rules struct nat_rule_list found = {0};
	cleanup_error struct cni_error ignored = {0};

	memcpy(key.host_address, portmap->container_address, CNI_ADDRESS_SIZE);
	if (nat_rules_find(&found, &question, &ignored))
		return NULL;
	for (size_t i = 0; i < found.count; i++)
		if (found.rules[i].verdict && found.rules[i].hooks & NAT_FROM_OUTSIDE)
			return describe(&found.rules[i]);
	return NULL;
}

char *probe_nat_cause(const struct cause *cause)
{
	const struct portmap *portmap = &cause->subject->mapping->portmap;
	const struct probe_result *result = cause->result;
	cleanup_free char *rule = find_rule(cause);
	bool is_known = rule || result->was_diverted;
	char meant[ENDPOINT_TEXT_SIZE], taken[ENDPOINT_TEXT_SIZE] = "the host itself";

	format_endpoint(portmap->container_address, portmap->container_port, meant);
	if (result->was_diverted)
		format_endpoint(result->diverted_to, result->diverted_port, taken);
	return is_known ? cni_format("translated to %s, and then taken to %s by another NAT of the"
				     " host: %s",
				     meant, taken, rule ? rule : "which rule that is was not found")
			: NULL;
}

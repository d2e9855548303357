/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conditional.c - portmap's rules for some packets alone. */
#include "operator/migrate/conditional.h"

#include <stdio.h>
#include <string.h>

#include "conf/conditions.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "operator/run_command.h"
#include "operator/view/add_cache.h"

#define IPTABLES_SECONDS 30
#define RULE_WORDS 18 /* of a rule without conditions */
#define MAX_WORDS 9   /* of conditions: a "!", a match and its value, once for each of three */

static const char *const keys_of_family[] = {[false] = "conditionsV6", [true] = "conditionsV4"};

/* "8080,8443", as portmap writes them. */
static void list_ports(const struct nat_rule *rule, char *text, size_t size)
{
	size_t length = 0;

	*text = '\0';
	for (size_t i = 0; i < rule->range_count && length < size; i++)
		length += (size_t)snprintf(text + length, size - length, "%s%u", i ? "," : "",
					   rule->ports[i].first);
}

/* `iptables -C`, with which portmap asks, too. */
static bool iptables_has(const struct nat_rule *rule, const json_t *conditions)
{
	static const char *const programs[2][2] = {{"ip6tables-nft", "ip6tables-legacy"},
						   {"iptables-nft", "iptables-legacy"}};
	char protocol[4], ports[NAT_RULE_RANGES * sizeof("65535,")];
	const char *arguments[RULE_WORDS + MAX_WORDS + 1] = {
		programs[rule->ipv4][rule->legacy],
		"-w",
		"-t",
		rule->table,
		"-C",
		rule->chain_name,
		"-p",
		protocol,
		"-m",
		"comment",
		"--comment",
		rule->comment,
		"-m",
		"multiport",
		"--destination-ports",
		ports,
		"-j",
		rule->target,
	};
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = IPTABLES_SECONDS};
	const json_t *word;
	size_t i;

	if (json_array_size(conditions) > MAX_WORDS)
		return false;
	json_array_foreach (conditions, i, word)
		arguments[RULE_WORDS + i] = json_string_value(word);
	snprintf(protocol, sizeof(protocol), "%u", rule->protocol);
	list_ports(rule, ports, sizeof(ports));
	return command_run(&run);
}

bool conditional_as_listed(const json_t *cached, const struct portmap_entry *entry)
{
	cleanup_json json_t *config = cached ? add_cache_config(cached) : NULL;
	cleanup_json json_t *ours = conditions_translate(config);
	const json_t *conditions = cni_json_get(config, keys_of_family[entry->rule.ipv4]);

	if (!json_array_size(conditions))
		return false;
	return !ours || iptables_has(&entry->rule, conditions);
}

char *conditional_translate(json_t *config)
{
	cleanup_json json_t *ours = conditions_translate(config);
	const char *key;
	json_t *value;

	/* An interface that one list excludes is none for other networks either. */
	if (!ours || !json_object_size(ours) || json_object_get(ours, "excludeInterfaces"))
		return NULL;
	json_object_foreach (ours, key, value)
		if (cni_json_get(config, key))
			return NULL;
	for (size_t i = 0; i < 2; i++)
		cni_json_delete(config, keys_of_family[i]);
	json_object_update(config, ours);
	return conditions_print(ours);
}

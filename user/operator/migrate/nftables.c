/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * nftables.c - portmap's table cni_hostport: the chains hostports and hostip_hostports translate,
 * the chain masquerading is for hairpin. The comment of each rule is the container's ID.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/json.h"
#include "lib/address.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/migrate/rules.h"
#include "operator/run_command.h"

#define TABLE "cni_hostport"
#define SECONDS 30

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const char *family_of(bool ipv6)
{
	return ipv6 ? "ip6" : "ip";
}

static enum protocol protocol_of(const char *word)
{
	return !strcmp(word, "tcp")    ? PROTOCOL_TCP
	       : !strcmp(word, "udp")  ? PROTOCOL_UDP
	       : !strcmp(word, "sctp") ? PROTOCOL_SCTP
				       : (enum protocol)0;
}

/* A condition of the rule. False: it is none that portmap writes. */
static bool take_match(const json_t *match, struct portmap_key *key)
{
	const json_t *payload = json_object_get(json_object_get(match, "left"), "payload");
	const json_t *right = json_object_get(match, "right");
	const char *field = text_of(payload, "field");

	if (strcmp(text_of(match, "op"), "==") != 0)
		return false;
	if (!strcmp(field, "dport")) {
		key->protocol = protocol_of(text_of(payload, "protocol"));
		key->host_port = (uint16_t)json_integer_value(right);
		return key->protocol && key->host_port;
	}
	return !strcmp(field, "daddr") && json_is_string(right) &&
	       !cni_address_parse(json_string_value(right), key->host_address);
}

/* False: the rule translates nothing, or not as portmap does. */
static bool take_expressions(const json_t *expressions, struct portmap_rule *rule)
{
	const json_t *expression, *dnat, *match;
	bool translates = false;
	size_t i;

	json_array_foreach (expressions, i, expression) {
		match = json_object_get(expression, "match");
		dnat = json_object_get(expression, "dnat");
		/* What is not known may be a restriction, which a mapping of ours would lack. */
		if (match ? !take_match(match, &rule->key)
			  : !dnat && !json_object_get(expression, "counter"))
			return false;
		if (!dnat)
			continue;
		rule->container_port = (uint16_t)json_integer_value(json_object_get(dnat, "port"));
		translates = !cni_address_parse(text_of(dnat, "addr"), rule->container_address);
	}
	return translates && rule->key.host_port && rule->container_port && *rule->id;
}

static bool is_ports_chain(const char *chain)
{
	return !strcmp(chain, "hostports") || !strcmp(chain, "hostip_hostports");
}

static void take_rule(struct portmap_rules *rules, const json_t *said)
{
	bool ipv6 = rules->sources[rules->source_count - 1].ipv6;
	struct portmap_rule rule = {.source = rules->source_count - 1};

	memcpy(rule.key.host_address, ipv6 ? cni_address_any_ipv6 : cni_address_any_ipv4,
	       sizeof(rule.key.host_address));
	snprintf(rule.chain, sizeof(rule.chain), "%s", text_of(said, "chain"));
	snprintf(rule.id, sizeof(rule.id), "%s", text_of(said, "comment"));
	cni_printable(rule.id, "");
	rule.handle = json_integer_value(json_object_get(said, "handle"));
	if (!is_ports_chain(rule.chain))
		return;
	if (!take_expressions(json_object_get(said, "expr"), &rule))
		rule_leave(&rule, RULE_NOT_UNDERSTOOD);
	*ARRAY_ADD(rules->rules, rules->count) = rule;
}

static bool has_masquerade(const json_t *entries, const char *id)
{
	const json_t *entry, *rule;
	size_t i;

	json_array_foreach (entries, i, entry) {
		rule = json_object_get(entry, "rule");
		if (!strcmp(text_of(rule, "chain"), "masquerading") &&
		    !strcmp(text_of(rule, "comment"), id))
			return true;
	}
	return false;
}

/* Packets come to hostip_hostports first. */
static void take_rules_of(struct portmap_rules *rules, const json_t *entries, const char *chain)
{
	const json_t *entry, *rule;
	size_t i;

	json_array_foreach (entries, i, entry) {
		rule = json_object_get(entry, "rule");
		if (!strcmp(text_of(rule, "chain"), chain))
			take_rule(rules, rule);
	}
}

static void take_table(struct portmap_rules *rules, bool ipv6, json_t *entries)
{
	size_t first = rules->count;

	*ARRAY_ADD(rules->sources, rules->source_count) = (struct rule_source){
		.name = "nftables", .ipv6 = ipv6, .table = json_incref(entries)};
	take_rules_of(rules, entries, "hostip_hostports");
	take_rules_of(rules, entries, "hostports");
	for (size_t i = first; i < rules->count; i++)
		rules->rules[i].masquerades = has_masquerade(entries, rules->rules[i].id);
}

/* `nft list table` fails where there is none; the list of tables does not. */
static int find_table(bool ipv6, bool *found, struct cni_error *err)
{
	const char *const arguments[] = {"nft", "list", "tables", family_of(ipv6), NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE], line[64];

	*found = false;
	if (!command_run(&run))
		return run.missing ? 0
				   : cni_error_set(err, CNI_ERROR_IO, "cannot read the rules: %s",
						   command_run_why(&run, why));
	snprintf(line, sizeof(line), "table %s " TABLE "\n", family_of(ipv6));
	*found = run.output && strstr(run.output, line);
	return 0;
}

/* NULL: it fails. */
static json_t *read_entries(bool ipv6, struct cni_error *err)
{
	const char *const arguments[] = {"nft",           "-j",  "list", "table",
					 family_of(ipv6), TABLE, NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	cleanup_json json_t *whole = NULL;
	char why[COMMAND_FAILURE_SIZE];
	json_t *entries;

	if (!command_run(&run)) {
		cni_error_set(err, CNI_ERROR_IO, "cannot read the rules: %s",
			      command_run_why(&run, why));
		return NULL;
	}
	cni_json_begin();
	whole = json_loadb(run.output ? run.output : "", run.length, 0, NULL);
	entries = json_object_get(whole, "nftables");
	if (json_is_array(entries))
		return json_incref(entries);
	cni_error_set(err, CNI_ERROR_IO, "cannot read the rules: nft -j prints no list");
	return NULL;
}

static int read_table(struct portmap_rules *rules, bool ipv6, struct cni_error *err)
{
	cleanup_json json_t *entries = read_entries(ipv6, err);

	if (!entries)
		return -1;
	take_table(rules, ipv6, entries);
	return 0;
}

int nftables_rules_read(struct portmap_rules *rules, struct cni_error *err)
{
	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		bool found;

		if (find_table(ipv6, &found, err) || (found && read_table(rules, ipv6, err)))
			return -1;
	}
	return 0;
}

/* Whether a rule of this container stays in the table. */
static bool container_stays(const struct portmap_rules *rules, size_t source, const char *id)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].source == source && !rule_goes(&rules->rules[i]) &&
		    !strcmp(rules->rules[i].id, id))
			return true;
	return false;
}

static const struct portmap_rule *find_rule(const struct portmap_rules *rules, size_t source,
					    const json_t *said)
{
	json_int_t handle = json_integer_value(json_object_get(said, "handle"));

	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].source == source && rules->rules[i].handle == handle)
			return &rules->rules[i];
	return NULL;
}

/* Writes the commands. Returns whether a rule of a container's stays. */
static bool write_deletions(const struct portmap_rules *rules, size_t source, FILE *script)
{
	const struct rule_source *table = &rules->sources[source];
	const json_t *entry, *said;
	bool stays = false;
	size_t i;

	json_array_foreach (table->table, i, entry) {
		const struct portmap_rule *rule;
		const char *chain;
		bool goes;

		said = json_object_get(entry, "rule");
		chain = text_of(said, "chain");
		rule = find_rule(rules, source, said);
		if (rule)
			goes = rule_goes(rule);
		else if (!strcmp(chain, "masquerading"))
			goes = !container_stays(rules, source, text_of(said, "comment"));
		else if (is_ports_chain(chain))
			goes = false;
		else
			continue;
		stays |= !goes;
		if (goes)
			fprintf(script, "delete rule %s " TABLE " %s handle %lld\n",
				family_of(table->ipv6), chain,
				(long long)json_integer_value(json_object_get(said, "handle")));
	}
	return stays;
}

static int run_script(const char *script, struct cni_error *err)
{
	static const char *const arguments[] = {"nft", "-f", "-", NULL};
	cleanup_command struct command_run run = {
		.arguments = arguments, .input = script, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE];

	if (command_run(&run))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot remove portmap's rules: %s",
			     command_run_why(&run, why));
}

/* A container may have started since the table was read: it goes only if it has no more ports. */
static int remove_empty_table(bool ipv6, struct cni_error *err)
{
	cleanup_json json_t *entries = read_entries(ipv6, err);
	const json_t *entry;
	char script[64];
	size_t i;

	if (!entries)
		return -1;
	json_array_foreach (entries, i, entry) {
		const char *chain = text_of(json_object_get(entry, "rule"), "chain");

		if (is_ports_chain(chain) || !strcmp(chain, "masquerading"))
			return 0;
	}
	snprintf(script, sizeof(script), "delete table %s " TABLE "\n", family_of(ipv6));
	return run_script(script, err);
}

int nftables_rules_remove(const struct portmap_rules *rules, size_t source, struct cni_error *err)
{
	cleanup_free char *script = NULL;
	bool stays;
	size_t size;
	FILE *stream = need(open_memstream(&script, &size));

	stays = write_deletions(rules, source, stream);
	need(fclose(stream) ? NULL : script);
	if (*script && run_script(script, err))
		return -1;
	return stays ? 0 : remove_empty_table(rules->sources[source].ipv6, err);
}

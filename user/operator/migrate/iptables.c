/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * iptables.c - portmap's chains in the table nat of iptables:
 *
 *   PREROUTING, OUTPUT -> CNI-HOSTPORT-DNAT -> CNI-DN-<hash of the container>
 *                             -> CNI-HOSTPORT-SETMARK: a mark for
 *   POSTROUTING        -> CNI-HOSTPORT-MASQ, which masquerades what has it
 *
 * Up to 0.7 it was CNI-HOSTPORT-SNAT -> CNI-SN-<hash> that masqueraded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/migrate/rules.h"
#include "operator/run_command.h"

#define MAX_WORDS 64
#define SECONDS 30

#define CHAIN_DNAT "CNI-HOSTPORT-DNAT"
#define CHAIN_OF_CONTAINER "CNI-DN-"
#define CHAIN_SETMARK "CNI-HOSTPORT-SETMARK"

/* A line of iptables-save. */
struct line {
	char *words[MAX_WORDS];
	size_t count;
	bool cut;        /* it is longer than fits here */
	char text[4096]; /* where they lie */
};

static bool begins(const char *text, const char *with)
{
	return !strncmp(text, with, strlen(with));
}

/* Chains that portmap alone uses. */
static bool is_chain_of_portmap(const char *name)
{
	return begins(name, "CNI-HOSTPORT-") || begins(name, CHAIN_OF_CONTAINER) ||
	       begins(name, "CNI-SN-");
}

/* Words may be in quotes, and have quotes in them behind a backslash. */
static void split(struct line *line, const char *text, size_t length)
{
	char *to = line->text, *end = line->text + sizeof(line->text) - 1;
	bool quoted = false, inside = false;
	const char *from;

	line->count = 0;
	for (from = text; from < text + length && to < end; from++) {
		if (*from == ' ' && !quoted) {
			*to++ = '\0';
			inside = false;
			continue;
		}
		if (!inside) {
			if (line->count == MAX_WORDS)
				break;
			line->words[line->count++] = to;
			inside = true;
		}
		if (*from == '"')
			quoted = !quoted;
		else if (*from == '\\' && from + 1 < text + length)
			*to++ = *++from;
		else
			*to++ = *from;
	}
	line->cut = from < text + length;
	*to = '\0';
}

static bool is_among(const char *word, const char *const *words)
{
	while (*words && strcmp(word, *words) != 0)
		words++;
	return *words;
}

/* Whether the rule has none but these options. An option that is not known may restrict who reaches
 * the port, as portmap's own conditionsV4 do, and a mapping of ours has no such restriction. */
static bool has_only(const struct line *line, const char *const *options)
{
	static const char *const matches[] = {"comment", "multiport", "tcp", "udp",
					      "sctp",    "mark",      NULL};

	if (line->cut || line->count % 2)
		return false;
	for (size_t i = 2; i < line->count; i += 2)
		if (!is_among(line->words[i], options) ||
		    (!strcmp(line->words[i], "-m") && !is_among(line->words[i + 1], matches)))
			return false;
	return true;
}

/* The word behind this one; "": there is none. */
static const char *value_of(const struct line *line, const char *option)
{
	for (size_t i = 0; i + 1 < line->count; i++)
		if (!strcmp(line->words[i], option))
			return line->words[i + 1];
	return "";
}

/* "-A CHAIN ..." */
static bool is_rule_of(const struct line *line, const char *chain)
{
	return line->count > 2 && !strcmp(line->words[0], "-A") && begins(line->words[1], chain);
}

/* Calls visit for each line that begins with "-A" or ":"; stops where it fails. */
static int each_line(const char *text,
		     int (*visit)(const struct line *line, const char *raw, size_t length,
				  void *context),
		     void *context)
{
	struct line line;

	while (text && *text) {
		size_t length = strcspn(text, "\n");

		if (begins(text, "-A ") || *text == ':') {
			split(&line, text, length);
			if (visit(&line, text, length, context))
				return -1;
		}
		text += length;
		text += *text == '\n';
	}
	return 0;
}

/* From: dnat name: "NETWORK" id: "ID" */
static void take_quoted(const char *comment, const char *before, char name[RULE_NAME_SIZE])
{
	const char *begin = strstr(comment, before);
	size_t length;

	*name = '\0';
	if (!begin)
		return;
	begin += strlen(before);
	length = strcspn(begin, "\"");
	if (length < RULE_NAME_SIZE)
		snprintf(name, RULE_NAME_SIZE, "%.*s", (int)length, begin);
	cni_printable(name, "");
}

/* "10.88.0.2:80", "[fd00::2]:80" */
static bool take_target(const char *text, struct portmap_rule *rule)
{
	const char *colon = strrchr(text, ':');
	char address[64];

	if (!colon)
		return false;
	snprintf(address, sizeof(address), "%.*s",
		 (int)(*text == '[' ? colon - text - 2 : colon - text), text + (*text == '['));
	rule->container_port = (uint16_t)atoi(colon + 1);
	return rule->container_port && !cni_address_parse(address, rule->container_address);
}

static enum protocol protocol_of(const char *word)
{
	return !strcmp(word, "tcp")    ? PROTOCOL_TCP
	       : !strcmp(word, "udp")  ? PROTOCOL_UDP
	       : !strcmp(word, "sctp") ? PROTOCOL_SCTP
				       : (enum protocol)0;
}

/* Protocol, -d and --dport. */
static bool take_key(const struct line *line, bool ipv6, struct portmap_key *key)
{
	char address[64];

	*key = (struct portmap_key){.protocol = protocol_of(value_of(line, "-p")),
				    .host_port = (uint16_t)atoi(value_of(line, "--dport"))};
	snprintf(address, sizeof(address), "%s", value_of(line, "-d"));
	address[strcspn(address, "/")] = '\0';
	memcpy(key->host_address, ipv6 ? cni_address_any_ipv6 : cni_address_any_ipv4,
	       sizeof(key->host_address));
	return key->protocol && key->host_port &&
	       (!*address || !cni_address_parse(address, key->host_address));
}

/* While a table is read. */
struct reading {
	struct portmap_rules *rules;
	size_t source;
	size_t first; /* of its rules */
	size_t jumps; /* to containers' chains, so far */
	bool barred;  /* a rule before the next jump may keep packets away */
};

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == '\0';
}

/* What an administrator has put into the chain is not ours to remove. */
static bool is_portmaps_own(const struct line *line)
{
	static const char *const options[] = {"-d", "-p", "-m", "--dport", "-j", "--to-destination",
					      NULL};
	const char *target = strrchr(value_of(line, "--to-destination"), ':');
	const char *length = strchr(value_of(line, "-d"), '/');

	return has_only(line, options) && target && is_number(target + 1) &&
	       is_number(value_of(line, "--dport")) &&
	       (!length || !strcmp(length, "/32") || !strcmp(length, "/128"));
}

static void take_port(struct reading *reading, const struct line *line)
{
	const struct rule_source *source = &reading->rules->sources[reading->source];
	struct portmap_rule rule = {.source = reading->source};

	if (!take_key(line, source->ipv6, &rule.key) ||
	    !take_target(value_of(line, "--to-destination"), &rule) || !is_portmaps_own(line))
		rule_leave(&rule, RULE_NOT_UNDERSTOOD);
	snprintf(rule.chain, sizeof(rule.chain), "%s", line->words[1]);
	*ARRAY_ADD(reading->rules->rules, reading->rules->count) = rule;
}

static int visit_port(const struct line *line, const char *raw, size_t length, void *context)
{
	if (is_rule_of(line, CHAIN_OF_CONTAINER) && !strcmp(value_of(line, "-j"), "DNAT"))
		take_port(context, line);
	return 0;
}

static void leave_chain(const struct reading *reading, const char *chain)
{
	for (size_t i = reading->first; i < reading->rules->count; i++)
		if (!strcmp(reading->rules->rules[i].chain, chain))
			rule_leave(&reading->rules->rules[i], RULE_NOT_UNDERSTOOD);
}

/* The rules of a chain get the name of the rule that jumps there. */
static void take_name(struct reading *reading, const struct line *line)
{
	const char *chain = value_of(line, "-j"), *comment = value_of(line, "--comment");

	reading->jumps++;
	for (size_t i = reading->first; i < reading->rules->count; i++) {
		struct portmap_rule *rule = &reading->rules->rules[i];

		if (strcmp(rule->chain, chain) != 0)
			continue;
		if (!rule->order)
			rule->order = reading->jumps;
		take_quoted(comment, "name: \"", rule->network);
		take_quoted(comment, "id: \"", rule->id);
	}
}

static void take_jump(struct reading *reading, const struct line *line)
{
	static const char *const options[] = {"-p", "-m", "--comment", "--dports", "-j", NULL};
	const char *chain = value_of(line, "-j");

	if (begins(chain, CHAIN_OF_CONTAINER))
		take_name(reading, line);
	if (begins(chain, CHAIN_OF_CONTAINER) && has_only(line, options) && !reading->barred)
		return;
	leave_chain(reading, chain);
	reading->rules->sources[reading->source].others = true;
	/* A jump with a condition concerns its own chain alone. */
	reading->barred |= !begins(chain, CHAIN_OF_CONTAINER);
}

static void take_mark(struct reading *reading, const struct line *line)
{
	static const char *const options[] = {"-s", "-d", "-p", "-m", "--dport", "-j", NULL};
	static const char *const targets[] = {CHAIN_SETMARK, "KUBE-MARK-MASQ", NULL};
	bool ipv6 = reading->rules->sources[reading->source].ipv6;
	struct portmap_key key;

	if (!has_only(line, options) || !is_among(value_of(line, "-j"), targets) ||
	    !take_key(line, ipv6, &key)) {
		leave_chain(reading, line->words[1]);
		return;
	}
	for (size_t i = reading->first; i < reading->rules->count; i++) {
		struct portmap_rule *rule = &reading->rules->rules[i];

		if (strcmp(rule->chain, line->words[1]) != 0 ||
		    memcmp(&rule->key, &key, sizeof(key)))
			continue;
		rule->masquerades = true;
		rule->masquerades_all |= !*value_of(line, "-s");
	}
}

/* In the other chains that all containers share, what is unknown stays, and its chain with it. */
static void take_shared(struct reading *reading, const struct line *line)
{
	static const char *const options[] = {"-s",          "-d",      "-p",       "-m",
					      "--comment",   "--dport", "--dports", "--mark",
					      "--set-xmark", "-j",      NULL};
	static const char *const targets[] = {"MASQUERADE", "MARK", NULL};
	const char *target = value_of(line, "-j");

	if (!has_only(line, options) || (!is_among(target, targets) && !begins(target, "CNI-SN-")))
		reading->rules->sources[reading->source].others = true;
}

static int visit_rest(const struct line *line, const char *raw, size_t length, void *context)
{
	if (is_rule_of(line, CHAIN_DNAT))
		take_jump(context, line);
	else if (is_rule_of(line, "CNI-HOSTPORT-"))
		take_shared(context, line);
	else if (is_rule_of(line, CHAIN_OF_CONTAINER) && strcmp(value_of(line, "-j"), "DNAT") != 0)
		take_mark(context, line);
	return 0;
}

static int visit_any(const struct line *line, const char *raw, size_t length, void *context)
{
	return *line->words[0] == ':' && is_chain_of_portmap(line->words[0] + 1) ? -1 : 0;
}

/* Packets come to chains in the order of the jumps; iptables-save may print them in another one. */
static int compare_order(const void *a, const void *b)
{
	const struct portmap_rule *one = a, *other = b;

	if (one->order != other->order)
		return one->order < other->order ? -1 : 1;
	return (int)one->key.host_port - (int)other->key.host_port;
}

static void read_table(struct portmap_rules *rules, const struct rule_source *what, char *text)
{
	struct reading reading = {
		.rules = rules, .source = rules->source_count, .first = rules->count};
	struct rule_source *source;

	if (!each_line(text, visit_any, NULL)) {
		free(text);
		return;
	}
	source = ARRAY_ADD(rules->sources, rules->source_count);
	*source = *what;
	source->text = text;
	each_line(text, visit_port, &reading);
	each_line(text, visit_rest, &reading);
	if (rules->count > reading.first)
		qsort(rules->rules + reading.first, rules->count - reading.first,
		      sizeof(*rules->rules), compare_order);
}

/* iptables-legacy makes its table, and loads modules, when it is asked what is in it. */
static bool has_legacy_nat(bool ipv6)
{
	char names[256] = "\n"; /* one a line */

	text_file_read(ipv6 ? "/proc/net/ip6_tables_names" : "/proc/net/ip_tables_names", names + 1,
		       sizeof(names) - 1);
	return strstr(names, "\nnat\n");
}

static int read_source(struct portmap_rules *rules, const struct rule_source *what, bool *missing,
		       struct cni_error *err)
{
	const char *const arguments[] = {what->save, "-t", "nat", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	char why[COMMAND_FAILURE_SIZE];

	if (command_run(&run)) {
		if (run.output)
			read_table(rules, what, TAKE(run.output));
		return 0;
	}
	*missing = run.missing;
	if (run.missing)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot read the rules: %s",
			     command_run_why(&run, why));
}

int iptables_rules_read(struct portmap_rules *rules, struct cni_error *err)
{
	/* Where iptables has one form only, its programs have the short names. */
	static const struct rule_source nft[][2] = {
		{{.name = "iptables",
		  .save = "iptables-nft-save",
		  .restore = "iptables-nft-restore"},
		 {.name = "iptables", .save = "iptables-save", .restore = "iptables-restore"}},
		{{.name = "iptables",
		  .save = "ip6tables-nft-save",
		  .restore = "ip6tables-nft-restore",
		  .ipv6 = true},
		 {.name = "iptables",
		  .save = "ip6tables-save",
		  .restore = "ip6tables-restore",
		  .ipv6 = true}},
	};
	static const struct rule_source legacy[] = {
		{.name = "iptables-legacy",
		 .save = "iptables-legacy-save",
		 .restore = "iptables-legacy-restore"},
		{.name = "iptables-legacy",
		 .save = "ip6tables-legacy-save",
		 .restore = "ip6tables-legacy-restore",
		 .ipv6 = true},
	};

	for (int ipv6 = 0; ipv6 < 2; ipv6++) {
		bool missing = false;

		if (read_source(rules, &nft[ipv6][0], &missing, err) ||
		    (missing && read_source(rules, &nft[ipv6][1], &missing, err)) ||
		    (!missing && has_legacy_nat(ipv6) &&
		     read_source(rules, &legacy[ipv6], &missing, err)))
			return -1;
	}
	return 0;
}

/* While the commands are written that remove rules. */
struct removal {
	const struct portmap_rules *rules;
	size_t source;
	FILE *script;
	bool all;            /* nothing of portmap's stays in the table */
	bool foreign;        /* and somebody else jumps to its chains */
	bool portless_stays; /* a container may start just now */
};

static bool is_in(const struct removal *removal, const struct portmap_rule *rule, const char *chain)
{
	return rule->source == removal->source && !strcmp(rule->chain, chain);
}

static bool has_ports(const struct removal *removal, const char *chain)
{
	for (size_t i = 0; i < removal->rules->count; i++)
		if (is_in(removal, &removal->rules->rules[i], chain))
			return true;
	return false;
}

/* A chain without ports is what a killed portmap has left, or what one makes just now. */
static bool chain_goes(const struct removal *removal, const char *chain)
{
	for (size_t i = 0; i < removal->rules->count; i++)
		if (is_in(removal, &removal->rules->rules[i], chain) &&
		    !rule_goes(&removal->rules->rules[i]))
			return false;
	return !removal->portless_stays || has_ports(removal, chain);
}

static bool port_goes(const struct removal *removal, const struct line *line)
{
	bool ipv6 = removal->rules->sources[removal->source].ipv6;
	struct portmap_key key;

	if (!take_key(line, ipv6, &key))
		return false;
	for (size_t i = 0; i < removal->rules->count; i++) {
		const struct portmap_rule *rule = &removal->rules->rules[i];

		if (is_in(removal, rule, line->words[1]) && !memcmp(&rule->key, &key, sizeof(key)))
			return rule_goes(rule);
	}
	return false;
}

static void delete_line(const struct removal *removal, const char *raw, size_t length)
{
	fprintf(removal->script, "-D%.*s\n", (int)(length - 2), raw + 2);
}

/* Rules that are removed one by one: in a chain that stays. */
static int visit_deleted(const struct line *line, const char *raw, size_t length, void *context)
{
	const struct removal *removal = context;
	const char *target = value_of(line, "-j");

	if (*line->words[0] == ':')
		return 0;
	if (is_rule_of(line, CHAIN_OF_CONTAINER)) {
		if (chain_goes(removal, line->words[1]) ? !has_ports(removal, line->words[1])
							: port_goes(removal, line))
			delete_line(removal, raw, length);
	} else if (is_rule_of(line, CHAIN_DNAT)) {
		if (begins(target, CHAIN_OF_CONTAINER) && chain_goes(removal, target))
			delete_line(removal, raw, length);
	} else if (removal->all &&
		   (is_chain_of_portmap(target) || is_chain_of_portmap(line->words[1]))) {
		delete_line(removal, raw, length);
	}
	return 0;
}

static bool whole_chain_goes(const struct removal *removal, const char *name)
{
	if (begins(name, CHAIN_OF_CONTAINER))
		return chain_goes(removal, name);
	return removal->all && is_chain_of_portmap(name);
}

static int visit_emptied(const struct line *line, const char *raw, size_t length, void *context)
{
	const struct removal *removal = context;

	/* A container may start now: of the chains that containers share, and of those without
	 * ports, only the lines that were read are deleted, and -X refuses a chain that has got
	 * more. */
	if (*line->words[0] == ':' && begins(line->words[0] + 1, CHAIN_OF_CONTAINER) &&
	    has_ports(removal, line->words[0] + 1) && chain_goes(removal, line->words[0] + 1))
		fprintf(removal->script, "-F %s\n", line->words[0] + 1);
	return 0;
}

static int visit_removed(const struct line *line, const char *raw, size_t length, void *context)
{
	const struct removal *removal = context;

	if (*line->words[0] == ':' && whole_chain_goes(removal, line->words[0] + 1))
		fprintf(removal->script, "-X %s\n", line->words[0] + 1);
	return 0;
}

/* portmap's own jumps are the ones without conditions but these. */
static int visit_foreign(const struct line *line, const char *raw, size_t length, void *context)
{
	struct removal *removal = context;
	const char *target = value_of(line, "-j"), *chain = line->words[0];

	if (*chain == ':' || !is_chain_of_portmap(target))
		return 0;
	chain = line->words[1];
	if (!is_chain_of_portmap(chain) && strcmp(chain, "PREROUTING") != 0 &&
	    strcmp(chain, "OUTPUT") != 0 && strcmp(chain, "POSTROUTING") != 0)
		removal->foreign = true;
	return 0;
}

static char *write_script(struct removal *removal)
{
	const char *text = removal->rules->sources[removal->source].text;
	char *script = NULL;
	size_t size;

	removal->script = need(open_memstream(&script, &size));
	fputs("*nat\n", removal->script);
	each_line(text, visit_deleted, removal);
	each_line(text, visit_emptied, removal);
	each_line(text, visit_removed, removal);
	fputs("COMMIT\n", removal->script);
	return need(fclose(removal->script) ? NULL : script);
}

static bool all_go(const struct portmap_rules *rules, size_t source)
{
	for (size_t i = 0; i < rules->count; i++)
		if (rules->rules[i].source == source && !rule_goes(&rules->rules[i]))
			return false;
	return true;
}

static int change_table(struct removal *removal, struct cni_error *err)
{
	const struct rule_source *table = &removal->rules->sources[removal->source];
	const char *const arguments[] = {table->restore, "-w", "10", "--noflush", NULL};
	cleanup_command struct command_run run = {.arguments = arguments, .seconds = SECONDS};
	cleanup_free char *script = write_script(removal);
	char why[COMMAND_FAILURE_SIZE];

	run.input = script;
	if (command_run(&run))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot remove portmap's rules: %s",
			     command_run_why(&run, why));
}

int iptables_rules_remove(const struct portmap_rules *rules, size_t source, struct cni_error *err)
{
	const struct rule_source *table = &rules->sources[source];
	struct removal removal = {.rules = rules, .source = source};
	cleanup_error struct cni_error in_use = {0};

	each_line(table->text, visit_foreign, &removal);
	removal.all = all_go(rules, source) && !removal.foreign && !table->others;
	if (!change_table(&removal, &in_use))
		return 0;
	/* The table changes as a whole or not at all. What portmap has added since it was read
	 * needs the shared chains, and may be in a chain that was empty. */
	removal.all = false;
	removal.portless_stays = true;
	return change_table(&removal, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ruleset.c - what stands in a table of nftables, as nft prints it. */
#include "operator/doctor/ruleset.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/run.h"
#include "lib/text.h"

#define COMMAND_SECONDS 5
#define RULE_SIZE 1024 /* what is longer is a set of many elements, and cut */
#define CALLS_DEEP 8
#define ESTABLISHED "established"

void ruleset_read(struct ruleset *ruleset, const struct nft_drop *drop,
		  const struct namespace *inside)
{
	const char *const arguments[] = {"nft",       "-a",    "-t",
					 "list",      "table", nft_family_word(drop->family),
					 drop->table, NULL};
	cleanup_command struct command_run command = {.arguments = arguments,
						      .seconds = COMMAND_SECONDS};

	ruleset_release(ruleset);
	if (!namespace_run(inside, &command))
		return;
	ruleset->text = command.output;
	command.output = NULL;
}

void ruleset_release(struct ruleset *ruleset)
{
	free(ruleset->text);
	ruleset->text = NULL;
}

/* --- lines -------------------------------------------------------------------------------- */

/* The rules of one chain, of which each rules_next() reads one. */
struct rules {
	const char *next; /* NULL: no more */
	char rule[RULE_SIZE];
	uint64_t handle;
};

/* Where the chain begins; NULL: there is none. */
static const char *find_chain(const struct ruleset *ruleset, const char *chain)
{
	cleanup_free char *title = cni_format("\n\tchain %s {", chain);

	return ruleset->text ? strstr(ruleset->text, title) : NULL;
}

static struct rules rules_of(const struct ruleset *ruleset, const char *chain)
{
	const char *begin = find_chain(ruleset, chain);

	begin = begin ? strchr(begin + 1, '\n') : NULL;
	return (struct rules){.next = begin ? begin + 1 : NULL};
}

/* Counters say nothing about whom a rule concerns, and differ from moment to moment. */
static void strip_counter(char *rule)
{
	char *begin = strstr(rule, "counter packets ");
	int length = 0;

	if (begin)
		sscanf(begin, "counter packets %*u bytes %*u %n", &length);
	if (length)
		memmove(begin, begin + length, strlen(begin + length) + 1);
}

static bool rules_next(struct rules *rules)
{
	while (rules->next && strncmp(rules->next, "\t}", 2) != 0) {
		const char *line = rules->next;
		const char *end = strchrnul(line, '\n');
		char *handle;

		rules->next = *end ? end + 1 : NULL;
		line += strspn(line, " \t");
		snprintf(rules->rule, sizeof(rules->rule), "%.*s", (int)(end - line), line);
		handle = strstr(rules->rule, " # handle ");
		if (!handle)
			continue;
		*handle = '\0';
		rules->handle = strtoull(handle + strlen(" # handle "), NULL, 10);
		return true;
	}
	return false;
}

char *ruleset_rule(const struct ruleset *ruleset, const char *chain, uint64_t handle)
{
	struct rules rules = rules_of(ruleset, chain);

	while (handle && rules_next(&rules))
		if (rules.handle == handle) {
			strip_counter(rules.rule);
			return cni_format("%s", rules.rule);
		}
	return NULL;
}

bool ruleset_is_forward(const struct ruleset *ruleset, const char *chain)
{
	const char *begin = find_chain(ruleset, chain);
	const char *end = begin ? strstr(begin, "\n\t}") : NULL;
	const char *hook = begin ? strstr(begin, " hook forward ") : NULL;

	return hook && (!end || hook < end);
}

bool ruleset_has_rule(const struct ruleset *ruleset, const char *chain, const char *rule)
{
	struct rules rules = rules_of(ruleset, chain);

	while (rules_next(&rules)) {
		strip_counter(rules.rule);
		if (!strcmp(rules.rule, rule))
			return true;
	}
	return false;
}

/* --- what a rule is about ------------------------------------------------------------------ */

/* What stands behind the words in a rule: "80", "{ 80, 443 }", "!= 22", "@set"; NULL: nothing. */
static const char *operand_of(const char *rule, const char *words)
{
	const char *found = strstr(rule, words);

	if (!found || (found > rule && found[-1] != ' '))
		return NULL;
	found += strlen(words);
	return found + strspn(found, " ");
}

typedef bool is_element(const char *element, const void *wanted);

/* Whether the operand has the value, or may have: a set's name tells nothing, nor does what is
 * compared with something else. */
static bool may_hold(const char *operand, is_element *is, const void *wanted)
{
	const char *end;

	if (!strncmp(operand, "vmap ", 5))
		operand += 5;
	if (*operand == '@' || *operand == '!' || *operand == '.' || *operand == '<' ||
	    *operand == '>' || *operand == '&')
		return true;
	if (*operand != '{')
		return is(operand, wanted);
	for (end = strchrnul(operand, '}'), operand++; operand && operand < end;
	     operand = strchr(operand, ','), operand += operand ? 1 : 0)
		if (is(operand + strspn(operand, " "), wanted))
			return true;
	return !*end; /* it was cut */
}

static bool is_port(const char *element, const void *wanted)
{
	unsigned int port = *(const uint16_t *)wanted, first = 0, last = 0;
	int count = sscanf(element, "%u-%u", &first, &last);

	return count < 1 || (count == 1 ? port == first : port >= first && port <= last);
}

/* One of the other family may have been meant for both. */
static bool is_address(const char *element, const void *wanted)
{
	size_t length = strspn(element, "0123456789abcdefABCDEF.:/");
	cleanup_free char *text = cni_format("%.*s", (int)length, element);
	uint8_t address[CNI_ADDRESS_SIZE], prefix = 0;

	if (element[length] == '-' || !length)
		return true;
	if (cni_address_parse_cidr(text, address, &prefix)) {
		if (cni_address_parse(text, address))
			return true;
		prefix = cni_address_is_ipv4(address) ? 32 : 128;
	}
	return cni_address_is_ipv4(address) != cni_address_is_ipv4(wanted) ||
	       cni_address_has_prefix(wanted, address, prefix);
}

static bool is_own_address(const char *element, const void *wanted)
{
	return !!strchr(element, ':') != cni_address_is_ipv4(wanted) && is_address(element, wanted);
}

static bool is_name(const char *element, const void *wanted)
{
	size_t length = *element == '"' ? strcspn(element + 1, "\"") : 0;
	const char *name = wanted;

	if (!length)
		return true;
	if (element[length] == '*')
		return !strncmp(element + 1, name, length - 1);
	return strlen(name) == length && !strncmp(element + 1, name, length);
}

/* Returns whether the operand is "!=" with exactly this value. */
static bool excludes(const char *operand, is_element *is, const void *wanted)
{
	return !strncmp(operand, "!= ", 3) && operand[3] != '@' &&
	       may_hold(operand + 3, is, wanted);
}

/* Returns whether what the operand of these words says may be true of the packet. A rule without
 * these words says nothing against it. */
static bool may_match(const char *rule, const char *words, is_element *is, const void *wanted)
{
	const char *operand = operand_of(rule, words);

	return !operand || strstr(rule, " . ") ||
	       (!excludes(operand, is, wanted) && may_hold(operand, is, wanted));
}

/* Whether what the operand says is about this value, and no other. */
static bool is_about(const char *rule, const char *words, is_element *is, const void *wanted)
{
	const char *operand = operand_of(rule, words);

	return operand && *operand != '!' && *operand != '@' && may_hold(operand, is, wanted);
}

/* Whether it is about answers, and what belongs to them. */
static bool is_of_established(const char *rule)
{
	const char *state = operand_of(rule, "ct state");

	return (state && !strstr(state, "new") && !strstr(state, "untracked") && *state != '!') ||
	       operand_of(rule, "ct status");
}

static bool is_of_another_protocol(const char *rule, const char *protocol)
{
	static const char *const words[] = {"tcp", "udp", "icmp", "icmpv6", "sctp"};
	const char *operand = operand_of(rule, "l4proto");

	if (operand && isalpha((unsigned char)*operand) &&
	    strncmp(operand, protocol, strlen(protocol)) != 0)
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		cleanup_free char *ports = cni_format("%s dport", words[i]);
		cleanup_free char *type = cni_format("%s type", words[i]);

		if (strcmp(words[i], protocol) != 0 &&
		    (operand_of(rule, ports) || operand_of(rule, type)))
			return true;
	}
	return false;
}

/* What lets all of IPv4 in says nothing of IPv6; what lets some in says whom an administrator
 * wants. */
static bool is_of_another_family(const char *rule, const uint8_t *container)
{
	const char *const *words;
	static const char *const ipv4[] = {"ip saddr", "ip daddr", "meta nfproto ipv4", "icmp"},
				 *const ipv6[] = {"ip6 saddr", "ip6 daddr", "meta nfproto ipv6",
						  "icmpv6"};

	words = cni_address_is_ipv4(container) ? ipv6 : ipv4;
	for (size_t i = 0; i < sizeof(ipv4) / sizeof(ipv4[0]); i++)
		if (operand_of(rule, words[i]))
			return !rule_is_by_source(rule);
	return false;
}

static bool may_concern(const char *rule, const struct wanted_packet *packet)
{
	if (is_of_established(rule) || is_of_another_protocol(rule, packet->protocol) ||
	    is_of_another_family(rule, packet->container))
		return false;
	if (packet->is_outwards)
		return may_match(rule, "iifname", is_name, packet->inner) &&
		       !is_about(rule, "oifname", is_name, packet->inner) &&
		       may_match(rule, "saddr", is_address, packet->container) &&
		       !is_about(rule, "daddr", is_own_address, packet->container);
	return may_match(rule, "oifname", is_name, packet->inner) &&
	       !is_about(rule, "iifname", is_name, packet->inner) &&
	       !is_about(rule, "iifname", is_name, "lo") &&
	       may_match(rule, "daddr", is_address, packet->container) &&
	       !is_about(rule, "saddr", is_own_address, packet->container) &&
	       may_match(rule, "dport", is_port, &packet->port);
}

static bool has_end(const char *rule, const char *end)
{
	size_t length = strlen(rule), of_end = strlen(end);

	return length >= of_end && !strcmp(rule + length - of_end, end);
}

/* Finds the next chain that a rule calls. `rest` is what is left of the rule, at first all. */
static bool next_call(const char **rest, char chain[NFT_CHAIN_MAXNAMELEN])
{
	static const char *const words[] = {"jump ", "goto "};
	const char *found = NULL;

	for (size_t i = 0; i < 2; i++) {
		const char *call = strstr(*rest, words[i]);

		if (call && (!found || call < found))
			found = call;
	}
	if (!found)
		return false;
	found += strlen(words[0]);
	*rest = found;
	snprintf(chain, NFT_CHAIN_MAXNAMELEN, "%.*s", (int)strcspn(found, " ,}"), found);
	return true;
}

static char *find_accept(const struct ruleset *ruleset, const char *chain,
			 const struct wanted_packet *packet, int depth)
{
	struct rules rules = rules_of(ruleset, chain);
	char called[NFT_CHAIN_MAXNAMELEN];
	char *found = NULL;

	while (!found && rules_next(&rules)) {
		const char *rest = rules.rule;

		strip_counter(rules.rule);
		if (!may_concern(rules.rule, packet))
			continue;
		if (has_end(rules.rule, "accept") || strstr(rules.rule, ": accept"))
			found = cni_format("%s", rules.rule);
		while (!found && depth < CALLS_DEEP && next_call(&rest, called))
			found = find_accept(ruleset, called, packet, depth + 1);
	}
	return found;
}

char *ruleset_accepts(const struct ruleset *ruleset, const char *chain,
		      const struct wanted_packet *packet)
{
	return find_accept(ruleset, chain, packet, 0);
}

bool ruleset_accepts_answers(const struct ruleset *ruleset, const char *chain)
{
	struct rules rules = rules_of(ruleset, chain);

	while (rules_next(&rules)) {
		strip_counter(rules.rule);
		if (!strncmp(rules.rule, "ct state ", strlen("ct state ")) &&
		    strstr(rules.rule, ESTABLISHED) &&
		    (has_end(rules.rule, "accept")
			     ? !strchr(rules.rule, '"')
			     : strstr(rules.rule, ESTABLISHED " : accept") != NULL))
			return true;
	}
	return false;
}

static bool has_any(const char *text, const char *const words[], size_t count)
{
	for (size_t i = 0; text && i < count; i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

bool ruleset_has_limits(const struct ruleset *ruleset)
{
	static const char *const words[] = {
		"limit rate",       "ct count",           "\tupdate @",           " update @",
		" add @",           "xt match hashlimit", "xt match \"hashlimit", "xt match limit",
		"xt match \"limit", "xt match recent",    "xt match \"recent",    "connlimit"};

	return has_any(ruleset->text, words, sizeof(words) / sizeof(words[0]));
}

bool ruleset_of_host_has_limits(void)
{
	static const char *const arguments[] = {"nft", "-t", "list", "ruleset", NULL};
	cleanup_command struct command_run command = {.arguments = arguments,
						      .seconds = COMMAND_SECONDS};
	const struct ruleset all = {command_run(&command) ? command.output : NULL};

	return ruleset_has_limits(&all);
}

char *ruleset_table_below_ip(void)
{
	static const char *const arguments[] = {"nft", "list", "tables", NULL};
	static const char *const families[] = {"table arp ", "table bridge "};
	cleanup_command struct command_run command = {.arguments = arguments,
						      .seconds = COMMAND_SECONDS};

	if (!command_run(&command))
		return NULL;
	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		const char *found = strstr(command.output, families[i]);

		found = found ? found + strlen("table ") : NULL;
		if (found)
			return cni_format("%.*s", (int)strcspn(found, "\n"), found);
	}
	return NULL;
}

bool rule_is_by_source(const char *rule)
{
	static const char *const words[] = {
		"saddr", "limit",        "update @", "add @",     "ct count", "fib",      "recent",
		"geoip", "xt match set", "iprange",  "meta mark", "ct mark",  "connlimit"};

	return has_any(rule, words, sizeof(words) / sizeof(words[0]));
}

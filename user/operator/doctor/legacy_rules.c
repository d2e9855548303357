/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* legacy_rules.c - which rules of iptables-legacy may have dropped a packet. */
#include "operator/doctor/legacy_rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/netns.h"
#include "operator/print/flow_words.h"
#include "operator/run_command.h"

#define COMMAND_SECONDS 5
#define RULES_MOST 8

struct wanted {
	const struct trace_tuple *tuple;
	const char *protocol;
};

struct value {
	char text[64];
};

/* Of an option that is not inverted, or "". */
static struct value value_of(const char *rule, const char *option)
{
	struct value value = {""};
	char words[40];
	const char *at;

	snprintf(words, sizeof(words), " %s ", option);
	at = strstr(rule, words);
	if (at && !(at - rule >= 2 && !strncmp(at - 2, " !", 2)))
		snprintf(value.text, sizeof(value.text), "%.*s",
			 (int)strcspn(at + strlen(words), " "), at + strlen(words));
	return value;
}

/* "80", "8000:8999" */
static bool holds_port(const char *value, uint16_t port)
{
	unsigned int first = 0, last = 0;

	if (sscanf(value, "%u:%u", &first, &last) == 1)
		last = first;
	return !*value || (port >= first && port <= last);
}

static bool holds_address(const char *value, const uint8_t address[CNI_ADDRESS_SIZE])
{
	uint8_t prefix[CNI_ADDRESS_SIZE], length;

	return !*value || cni_address_parse_cidr(value, prefix, &length) ||
	       cni_address_has_prefix(address, prefix, length);
}

static bool may_match(const struct wanted *wanted, const char *rule)
{
	const struct trace_tuple *tuple = wanted->tuple;
	struct value target = value_of(rule, "-j"), protocol = value_of(rule, "-p");

	return (!strcmp(target.text, "DROP") || !strcmp(target.text, "REJECT")) &&
	       (!*protocol.text || !strcmp(protocol.text, wanted->protocol)) &&
	       holds_port(value_of(rule, "--dport").text, tuple->destination_port) &&
	       holds_port(value_of(rule, "--sport").text, tuple->source_port) &&
	       holds_address(value_of(rule, "-s").text, tuple->source) &&
	       holds_address(value_of(rule, "-d").text, tuple->destination);
}

/* ":FORWARD DROP [0:0]" */
static bool is_closed_policy(const char *line)
{
	const char *policy = strchr(line, ' ');

	return *line == ':' && policy && !strncmp(policy, " DROP ", strlen(" DROP "));
}

/* Takes the text apart. */
static char *list(const struct wanted *wanted, char *save)
{
	char *listed = cni_format("# one of these of iptables-legacy may have dropped it:"), *rest;
	const char *table = "?";
	size_t count = 0;

	for (char *line = strtok_r(save, "\n", &rest); line && count < RULES_MOST;
	     line = strtok_r(NULL, "\n", &rest)) {
		cleanup_free char *before = NULL;

		if (*line == '*')
			table = line + 1;
		if (!is_closed_policy(line) && !may_match(wanted, line))
			continue;
		count++;
		before = listed;
		listed = cni_format("%s\n# -t %s %s", before, table, line);
	}
	if (count)
		return listed;
	free(listed);
	return NULL;
}

static int run(void *context, struct cni_error *err)
{
	return command_run(context) ? 0 : -1;
}

char *legacy_rules(const struct trace_tuple *tuple, enum protocol protocol,
		   const struct namespace *inside)
{
	bool ipv4 = cni_address_is_ipv4(tuple->source);
	const char *const arguments[] = {ipv4 ? "iptables-legacy-save" : "ip6tables-legacy-save",
					 NULL};
	cleanup_command struct command_run command = {.arguments = arguments,
						      .seconds = COMMAND_SECONDS};
	cleanup_error struct cni_error ignored = {0};
	char word[PROTOCOL_WORD_SIZE];
	struct wanted wanted = {tuple, protocol_word(protocol, word)};

	if (inside ? netns_call(inside->fd, run, &command, &ignored) : run(&command, &ignored))
		return NULL;
	return list(&wanted, command.output);
}

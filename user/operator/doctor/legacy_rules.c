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

/* The value of an option that is not inverted, or "". */
static void value_of(const char *rule, const char *option, char value[64])
{
	char words[40];
	const char *at;

	snprintf(words, sizeof(words), " %s ", option);
	at = strstr(rule, words);
	*value = '\0';
	if (at && !(at - rule >= 2 && !strncmp(at - 2, " !", 2)))
		snprintf(value, 64, "%.*s", (int)strcspn(at + strlen(words), " \n"),
			 at + strlen(words));
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
	char target[64], protocol[64], to_port[64], from_port[64], source[64], destination[64];

	value_of(rule, "-j", target);
	value_of(rule, "-p", protocol);
	value_of(rule, "--dport", to_port);
	value_of(rule, "--sport", from_port);
	value_of(rule, "-s", source);
	value_of(rule, "-d", destination);
	return (!strcmp(target, "DROP") || !strcmp(target, "REJECT")) &&
	       (!*protocol || !strcmp(protocol, wanted->protocol)) &&
	       holds_port(to_port, tuple->destination_port) &&
	       holds_port(from_port, tuple->source_port) && holds_address(source, tuple->source) &&
	       holds_address(destination, tuple->destination);
}

/* ":FORWARD DROP [0:0]" */
static bool is_closed_policy(const char *line)
{
	size_t length = strcspn(line, " \n");

	return *line == ':' && !strncmp(line + length, " DROP ", strlen(" DROP "));
}

static char *list(const struct wanted *wanted, const char *save)
{
	char *listed = cni_format("# one of these of iptables-legacy may have dropped it:");
	char table[32] = "?";
	size_t count = 0, length;

	for (const char *line = save; *line; line += length + (line[length] == '\n')) {
		cleanup_free char *text = NULL, *before = NULL;

		length = strcspn(line, "\n");
		text = cni_format("%.*s\n", (int)length, line);
		if (*line == '*')
			snprintf(table, sizeof(table), "%.*s", (int)length - 1, line + 1);
		if (count == RULES_MOST || (!is_closed_policy(text) && !may_match(wanted, text)))
			continue;
		count++;
		before = listed;
		listed = cni_format("%s\n# -t %s %.*s", before, table, (int)length, line);
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

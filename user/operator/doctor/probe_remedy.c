/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_remedy.c - what opens a firewall that drops all that nobody has let through. */
#include "operator/doctor/probe_remedy.h"

#include <linux/netfilter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/netns.h"
#include "operator/doctor/remedy_word.h"
#include "operator/run_command.h"

#define COMMAND_SECONDS 5
#define RULES_MOST 8

/* What is to be let through, and by what it was dropped. */
struct opening {
	const struct nft_drop *drop;
	bool ipv4, is_answer, is_outwards;
	const char *inner, *outer;           /* interfaces: the container's side, and the uplink */
	char address[CNI_ADDRESS_TEXT_SIZE]; /* the container's; only inwards */
	uint16_t port;
	const char *protocol;
};

/* iptables-nft's rules are in tables that nft must not write to. */
static bool is_of_iptables(const struct nft_drop *drop)
{
	return (drop->family == NFPROTO_IPV4 || drop->family == NFPROTO_IPV6) &&
	       !strcmp(drop->table, "filter") && !strcmp(drop->chain, "FORWARD");
}

static bool has_chain(const struct nft_drop *drop, const char *chain)
{
	const char *const arguments[] = {
		"nft", "list", "chain", nft_family_word(drop->family), drop->table, chain, NULL};
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = COMMAND_SECONDS};

	return command_run(&run);
}

static char *by_ufw(const struct opening *opening)
{
	if (opening->is_outwards)
		return cni_format("ufw route allow in on %s out on %s",
				  remedy_word(opening->inner).text,
				  remedy_word(opening->outer).text);
	return cni_format("ufw route allow proto %s to %s port %u", opening->protocol,
			  opening->address, opening->port);
}

/* The answers need a rule, too. */
static char *by_iptables(const struct opening *opening)
{
	const char *command = opening->ipv4 ? "iptables-nft" : "ip6tables-nft";
	const char *chain = has_chain(opening->drop, "DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
	cleanup_free char *answers = cni_format(
		"%s -I %s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", command, chain);

	if (opening->is_answer)
		return cni_format("%s", answers);
	if (has_chain(opening->drop, opening->ipv4 ? "ufw-before-forward" : "ufw6-before-forward"))
		return by_ufw(opening);
	if (opening->is_outwards)
		return cni_format("%s\n%s -I %s -i %s -o %s -j ACCEPT", answers, command, chain,
				  remedy_word(opening->inner).text,
				  remedy_word(opening->outer).text);
	return cni_format("%s\n%s -I %s -o %s -d %s -p %s --dport %u -j ACCEPT", answers, command,
			  chain, remedy_word(opening->inner).text, opening->address,
			  opening->protocol, opening->port);
}

/* The container's interface is trusted, so it gets out, and a policy lets everybody in. */
static char *by_firewalld(const struct opening *opening)
{
	return cni_format("firewall-cmd --permanent --zone trusted --add-interface %s\n"
			  "firewall-cmd --permanent --get-policies | grep -qw containers ||"
			  " firewall-cmd --permanent --new-policy containers\n"
			  "firewall-cmd --permanent --policy containers --add-ingress-zone ANY\n"
			  "firewall-cmd --permanent --policy containers --add-egress-zone trusted\n"
			  "firewall-cmd --permanent --policy containers --set-target ACCEPT\n"
			  "firewall-cmd --reload",
			  remedy_word(opening->inner).text);
}

/* nft joins its words, so the rule is one word to the shell, with nft's own quotes. */
static char *insert_rule(const struct nft_drop *drop, const char *rule)
{
	return cni_format("nft insert rule %s %s %s %s", nft_family_word(drop->family),
			  remedy_word(drop->table).text, remedy_word(drop->chain).text,
			  remedy_word(rule).text);
}

static char *by_nft(const struct opening *opening)
{
	cleanup_free char *answers =
		insert_rule(opening->drop, "ct state established,related accept");
	cleanup_free char *match = NULL, *first = NULL;

	if (opening->is_answer)
		return cni_format("%s", answers);
	if (opening->is_outwards)
		match = cni_format("iifname \"%s\" oifname \"%s\" accept", opening->inner,
				   opening->outer);
	else
		match = cni_format("oifname \"%s\" %s daddr %s %s dport %u accept", opening->inner,
				   opening->ipv4 ? "ip" : "ip6", opening->address,
				   opening->protocol, opening->port);
	first = insert_rule(opening->drop, match);
	return cni_format("%s\n%s", answers, first);
}

/* --- iptables-legacy ----------------------------------------------------------------------- */

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
static char *list_rules(const struct wanted *wanted, char *save)
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

static char *legacy_rules(const struct cause *cause, const char *protocol)
{
	const struct trace_drop *drop = &cause->result->kernel_drop;
	const struct namespace *inside =
		drop->in_container ? doctor_namespace(cause->doctor, cause->subject) : NULL;
	const struct wanted wanted = {&drop->tuple, protocol};
	const char *const arguments[] = {
		cause->subject->ipv4 ? "iptables-legacy-save" : "ip6tables-legacy-save", NULL};
	cleanup_command struct command_run command = {.arguments = arguments,
						      .seconds = COMMAND_SECONDS};
	cleanup_error struct cni_error ignored = {0};

	if (inside ? netns_call(inside->fd, run, &command, &ignored) : run(&command, &ignored))
		return NULL;
	return list_rules(&wanted, command.output);
}

/* A policy of forwarding, or what stands in the place of one: firewalld's last rules reject all. A
 * rule of an administrator is his decision, and so is what he drops elsewhere. */
static bool is_catch_all(const struct cause *cause)
{
	const struct probe_result *result = cause->result;

	if (!result->rule_dropped || result->rule_is_inside || !result->rule_drop.is_forward)
		return false;
	return !result->rule_drop.handle ||
	       (!strcmp(result->rule_drop.table, "firewalld") && cause->rule &&
		!strncmp(cause->rule, "reject", strlen("reject")));
}

char *probe_remedy(const struct cause *cause)
{
	const struct probe_way *way = cause->way;
	char word[PROTOCOL_WORD_SIZE];
	struct opening opening = {
		.drop = &cause->result->rule_drop,
		.ipv4 = cause->subject->ipv4,
		.is_answer = cause->result->rule_drop.is_answer && !way->is_outwards,
		.is_outwards = way->is_outwards,
		.inner = cause->subject->gateway->link.name,
		.outer = cause->uplink,
		.protocol = protocol_word(way->packet.protocol, word),
	};

	if (!cause->result->rule_dropped && cause->is_netfilter)
		return legacy_rules(cause, opening.protocol);
	if (!is_catch_all(cause))
		return NULL;
	if (!way->is_outwards) {
		const struct portmap *portmap = &cause->subject->mapping->portmap;

		cni_address_format(portmap->container_address, opening.address);
		opening.port = portmap->container_port;
	}
	if (!strcmp(opening.drop->table, "firewalld"))
		return by_firewalld(&opening);
	return is_of_iptables(opening.drop) ? by_iptables(&opening) : by_nft(&opening);
}

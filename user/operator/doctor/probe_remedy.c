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

/* ":FORWARD DROP [1:60]", "[1:60] -A FORWARD -p tcp -j DROP" */
static bool drops(const char *line)
{
	return *line == ':' ? strstr(line, " DROP ") != NULL
			    : strstr(line, " -j DROP") || strstr(line, " -j REJECT");
}

/* Whose counters have moved. Takes both texts apart. */
static char *list_moved(char *before, char *after)
{
	char *listed = cni_format("# one of these of iptables-legacy has dropped it:");
	char *rest_before, *rest_after, *line = strtok_r(after, "\n", &rest_after);
	const char *old = strtok_r(before, "\n", &rest_before), *table = "?";
	size_t count = 0;

	for (; line && old && count < RULES_MOST;
	     line = strtok_r(NULL, "\n", &rest_after), old = strtok_r(NULL, "\n", &rest_before)) {
		cleanup_free char *others = NULL;

		if (*line == '*')
			table = line + 1;
		if (!strcmp(line, old) || !drops(line))
			continue;
		count++;
		others = listed;
		listed = cni_format("%s\n# -t %s %s", others, table, line);
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

/* Its kernel does not tell the rule, but counts: the packet is sent once more. Others' packets
 * count, too. */
static char *legacy_rules(const struct cause *cause)
{
	const struct namespace *inside = cause->result->kernel_drop.in_container
						 ? doctor_namespace(cause->doctor, cause->subject)
						 : NULL;
	const char *const arguments[] = {cause->subject->ipv4 ? "iptables-legacy-save"
							      : "ip6tables-legacy-save",
					 "-c", NULL};
	cleanup_command struct command_run before = {.arguments = arguments,
						     .seconds = COMMAND_SECONDS};
	cleanup_command struct command_run after = before;
	cleanup_error struct cni_error ignored = {0};
	struct probe_result again;

	if (inside ? netns_call(inside->fd, run, &before, &ignored) : run(&before, &ignored))
		return NULL;
	if (probe_send(cause->doctor, cause->subject, cause->way, &again, &ignored) ||
	    (inside ? netns_call(inside->fd, run, &after, &ignored) : run(&after, &ignored)))
		return NULL;
	return list_moved(before.output, after.output);
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
		return legacy_rules(cause);
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_remedy.c - what opens a firewall that drops all that nobody has let through, and which rule
 * of the host's NAT gives another destination to packets for a container. */
#include "operator/doctor/probe_remedy.h"

#include <linux/netfilter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/ports.h"
#include "lib/run.h"
#include "lib/text.h"
#include "nat/nat_rules.h"
#include "operator/print/format.h"

#define COMMAND_SECONDS 5
#define RULES_MOST 8
#define ARGUMENTS_MOST 32

/* What is to be let through, and by what it was dropped. */
struct opening {
	const struct cause *cause;
	const struct nft_drop *drop;
	bool ipv4, is_answer;
	const char *inner, *outer;           /* interfaces: the container's side, and the uplink */
	char address[CNI_ADDRESS_TEXT_SIZE]; /* the container's */
	char client[CNI_ADDRESS_TEXT_SIZE];  /* who alone is let in; "": whoever comes */
	uint16_t port;
	const char *protocol;
};

/* Appends a line. */
static void add_line(char **text, char *line)
{
	cleanup_free char *before = *text, *added = line;

	*text = cni_format("%s%s%s", before ? before : "", before ? "\n" : "", added);
}

/* --- nftables ------------------------------------------------------------------------------ */

/* At the chain's end, which the packet has reached: whoever is dropped before stays out. nft joins
 * its words, so the rule is one word to the shell, with nft's own quotes. */
static void add_nft_rule(const struct opening *opening, char **remedy, char *rule)
{
	const struct nft_drop *drop = opening->drop;

	if (!ruleset_has_rule(&opening->cause->ruleset, drop->chain, rule))
		add_line(remedy,
			 cni_format("nft add rule %s %s %s %s", nft_family_word(drop->family),
				    remedy_word(drop->table).text, remedy_word(drop->chain).text,
				    remedy_word(rule).text));
	free(rule);
}

/* The answers of this port, and the errors that tell its container of a smaller MTU. */
static void add_nft_answers(const struct opening *opening, char **remedy)
{
	const char *ip = opening->ipv4 ? "ip" : "ip6";
	bool is_single = *opening->client;

	add_nft_rule(opening, remedy,
		     cni_format("iifname \"%s\" %s saddr %s%s%s%s%s %s sport %u ct state"
				" established accept",
				opening->inner, ip, opening->address, is_single ? " " : "",
				is_single ? ip : "", is_single ? " daddr " : "", opening->client,
				opening->protocol, opening->port));
	add_nft_rule(opening, remedy,
		     cni_format("oifname \"%s\" %s daddr %s %s type %s ct state related accept",
				opening->inner, ip, opening->address,
				opening->ipv4 ? "icmp" : "icmpv6",
				opening->ipv4 ? "destination-unreachable" : "packet-too-big"));
}

static char *by_nft(const struct opening *opening)
{
	bool answers_pass = ruleset_accepts_answers(&opening->cause->ruleset, opening->drop->chain);
	const char *ip = opening->ipv4 ? "ip" : "ip6";
	char *remedy = NULL;

	if (opening->cause->way->is_outwards) {
		add_nft_rule(opening, &remedy,
			     cni_format("iifname \"%s\" oifname \"%s\" accept", opening->inner,
					opening->outer));
		if (!answers_pass)
			add_nft_rule(opening, &remedy,
				     cni_format("iifname \"%s\" oifname \"%s\" ct state"
						" established,related accept",
						opening->outer, opening->inner));
		return remedy;
	}
	if (!opening->is_answer)
		add_nft_rule(opening, &remedy,
			     cni_format("iifname \"%s\" oifname \"%s\" %s%s%s%s%s daddr %s %s dport"
					" %u accept",
					opening->outer, opening->inner, *opening->client ? ip : "",
					*opening->client ? " saddr " : "", opening->client,
					*opening->client ? " " : "", ip, opening->address,
					opening->protocol, opening->port));
	if (!answers_pass)
		add_nft_answers(opening, &remedy);
	return remedy;
}

/* --- iptables-nft -------------------------------------------------------------------------- */

/* Its tables nft must not write to. */
static bool is_of_iptables(const struct nft_drop *drop)
{
	return (drop->family == NFPROTO_IPV4 || drop->family == NFPROTO_IPV6) &&
	       !strcmp(drop->table, "filter") && !strcmp(drop->chain, "FORWARD");
}

/* No word has a blank: interfaces' names cannot have any. */
static bool iptables_has(const char *command, const char *rule)
{
	const char *arguments[ARGUMENTS_MOST] = {command, "-C", "FORWARD"};
	cleanup_command struct command_run run = {.arguments = arguments,
						  .seconds = COMMAND_SECONDS};
	cleanup_free char *words = cni_format("%s", rule);
	size_t count = 3;
	char *rest;

	for (char *word = strtok_r(words, " ", &rest); word && count < ARGUMENTS_MOST - 1;
	     word = strtok_r(NULL, " ", &rest))
		arguments[count++] = word;
	return command_run(&run);
}

static void add_iptables_rule(const struct opening *opening, char **remedy, char *rule)
{
	const char *command = opening->ipv4 ? "iptables-nft" : "ip6tables-nft";
	cleanup_free char *words = rule, *quoted = cni_format("%s -A FORWARD", command);
	char *rest;

	if (iptables_has(command, rule))
		return;
	for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		cleanup_free char *before = quoted;

		quoted = cni_format("%s %s", before, remedy_word(word).text);
	}
	add_line(remedy, TAKE(quoted));
}

static void add_iptables_answers(const struct opening *opening, char **remedy)
{
	add_iptables_rule(opening, remedy,
			  cni_format("-i %s -s %s%s%s -p %s --sport %u -m conntrack --ctstate"
				     " ESTABLISHED -j ACCEPT",
				     opening->inner, opening->address,
				     *opening->client ? " -d " : "", opening->client,
				     opening->protocol, opening->port));
	add_iptables_rule(opening, remedy,
			  cni_format("-o %s -d %s -p %s -m conntrack --ctstate RELATED -j ACCEPT",
				     opening->inner, opening->address,
				     opening->ipv4 ? "icmp --icmp-type destination-unreachable"
						   : "ipv6-icmp --icmpv6-type packet-too-big"));
}

static char *by_iptables(const struct opening *opening)
{
	bool answers_pass = ruleset_accepts_answers(&opening->cause->ruleset, opening->drop->chain);
	char *remedy = NULL;

	if (opening->cause->way->is_outwards) {
		add_iptables_rule(
			opening, &remedy,
			cni_format("-i %s -o %s -j ACCEPT", opening->inner, opening->outer));
		if (!answers_pass)
			add_iptables_rule(opening, &remedy,
					  cni_format("-i %s -o %s -m conntrack --ctstate"
						     " ESTABLISHED,RELATED -j ACCEPT",
						     opening->outer, opening->inner));
		return remedy;
	}
	if (!opening->is_answer)
		add_iptables_rule(opening, &remedy,
				  cni_format("-i %s -o %s%s%s -d %s -p %s --dport %u -j ACCEPT",
					     opening->outer, opening->inner,
					     *opening->client ? " -s " : "", opening->client,
					     opening->address, opening->protocol, opening->port));
	if (!answers_pass)
		add_iptables_answers(opening, &remedy);
	return remedy;
}

/* --- firewalls that write rules themselves ------------------------------------------------- */

static bool is_of_ufw(const struct opening *opening)
{
	const char *text = opening->cause->ruleset.text;

	return text && strstr(text, opening->ipv4 ? "\tchain ufw-before-forward {"
						  : "\tchain ufw6-before-forward {");
}

/* It lets answers through by itself. */
static char *by_ufw(const struct opening *opening)
{
	if (opening->is_answer)
		return NULL;
	if (opening->cause->way->is_outwards)
		return cni_format("ufw route allow in on %s out on %s",
				  remedy_word(opening->inner).text,
				  remedy_word(opening->outer).text);
	return cni_format("ufw route allow in on %s out on %s proto %s from %s to %s port %u",
			  remedy_word(opening->outer).text, remedy_word(opening->inner).text,
			  opening->protocol, *opening->client ? opening->client : "any",
			  opening->address, opening->port);
}

/* A policy of its own for what is forwarded between any zones has one rule for this port, and lets
 * nothing else through. firewalld lets answers through by itself. Since 2.0 it asks policies only
 * where an interface is in a zone; the default zone is what applies to this one anyway. */
static char *by_firewalld(const struct opening *opening)
{
	const char *policy = "firewall-cmd --permanent --policy bpf-portmap";
	const char *family = opening->ipv4 ? "ipv4" : "ipv6";
	cleanup_free char *rule = NULL;

	if (opening->is_answer)
		return NULL;
	if (opening->cause->way->is_outwards)
		rule = cni_format("rule family=\"%s\" source address=\"%s\" accept", family,
				  opening->address);
	else
		rule = cni_format("rule family=\"%s\"%s%s%s destination address=\"%s\" port"
				  " port=\"%u\" protocol=\"%s\" accept",
				  family, *opening->client ? " source address=\"" : "",
				  opening->client, *opening->client ? "\"" : "", opening->address,
				  opening->port, opening->protocol);
	return cni_format("firewall-cmd --permanent --get-policies | grep -qw bpf-portmap ||"
			  " firewall-cmd --permanent --new-policy bpf-portmap\n"
			  "%s --add-ingress-zone ANY\n"
			  "%s --add-egress-zone ANY\n"
			  "%s --add-rich-rule %s\n"
			  "firewall-cmd -q --get-zone-of-interface %s || firewall-cmd --permanent"
			  " --zone \"$(firewall-cmd --get-default-zone)\" --add-interface %s\n"
			  "firewall-cmd --reload",
			  policy, policy, policy, remedy_word(rule).text,
			  remedy_word(opening->inner).text, remedy_word(opening->inner).text);
}

/* --- iptables-legacy ----------------------------------------------------------------------- */

/* ":FORWARD DROP [1:60]", "[1:60] -A FORWARD -p tcp -j DROP" */
static bool drops(const char *line)
{
	return *line == ':' ? strstr(line, " DROP ") != NULL
			    : strstr(line, " -j DROP") || strstr(line, " -j REJECT");
}

/* Without its counters, which tell another probe's line apart. Takes the text apart. */
static const char *without_counters(char *line)
{
	line[strcspn(line, *line == ':' ? "[" : "")] = '\0';
	return *line == '[' ? line + strcspn(line, "-") : line;
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
		listed = cni_format("%s\n# -t %s %s", others, table, without_counters(line));
	}
	if (count)
		return listed;
	free(listed);
	return NULL;
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

	if (!namespace_run(inside, &before) ||
	    probe_send(cause->doctor, cause->subject, cause->way, &again, &ignored) ||
	    !namespace_run(inside, &after))
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
	return (!result->rule_drop.handle &&
		ruleset_is_forward(&cause->ruleset, result->rule_drop.chain)) ||
	       (!strcmp(result->rule_drop.table, "firewalld") && cause->rule &&
		!strncmp(cause->rule, "reject", strlen("reject")));
}

/* The container of this packet: to which it goes, or which sends it. */
static const uint8_t *container_of_way(const struct cause *cause)
{
	return cause->way->is_outwards ? cause->way->packet.source
				       : cause->subject->mapping->portmap.container_address;
}

char *probe_lets_in(const struct cause *cause)
{
	const struct nft_drop *drop = &cause->result->rule_drop;
	struct wanted_packet packet = {
		.is_outwards = cause->way->is_outwards,
		.container = container_of_way(cause),
		.inner = cause->subject->gateway->link.name,
		.protocol = protocol_word(cause->way->packet.protocol),
	};

	if (!cause->result->rule_dropped || (drop->handle && !is_catch_all(cause)))
		return NULL;
	if (cause->result->rule_is_inside)
		packet.inner = doctor_inside(cause->doctor, cause->subject)->link.name;
	if (!packet.is_outwards)
		packet.port = cause->subject->mapping->portmap.container_port;
	return ruleset_accepts(&cause->ruleset, drop->chain, &packet);
}

char *probe_remedy(const struct cause *cause)
{
	const struct probe_way *way = cause->way;
	struct opening opening = {
		.cause = cause,
		.drop = &cause->result->rule_drop,
		.ipv4 = cause->subject->ipv4,
		.is_answer = cause->result->rule_drop.is_answer && !way->is_outwards,
		.inner = cause->subject->gateway->link.name,
		.outer = cause->uplink,
		.protocol = protocol_word(way->packet.protocol),
	};

	if (!cause->result->rule_dropped && cause->is_netfilter)
		return legacy_rules(cause);
	/* Whom the others are that it lets in is the administrator's decision. */
	if (!is_catch_all(cause) || (cause->lets_in && way->client != CLIENT_NAMED))
		return NULL;
	cni_address_format(container_of_way(cause), opening.address);
	if (!way->is_outwards)
		opening.port = cause->subject->mapping->portmap.container_port;
	if (way->client == CLIENT_NAMED && !way->is_outwards)
		cni_address_format(way->packet.source, opening.client);
	if (!strcmp(opening.drop->table, "firewalld"))
		return by_firewalld(&opening);
	if (!is_of_iptables(opening.drop))
		return by_nft(&opening);
	return is_of_ufw(&opening) ? by_ufw(&opening) : by_iptables(&opening);
}

/* --- another NAT of the host ------------------------------------------------------------------ */

/* "nft ip nat, chain PREROUTING, rule handle 4 (tcp dport 80 redirect to :81)" */
static char *describe_nat(const struct nat_rule *rule)
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
static char *find_nat_rule(const struct cause *cause)
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
			return describe_nat(&found.rules[i]);
	return NULL;
}

char *probe_nat_cause(const struct cause *cause)
{
	const struct portmap *portmap = &cause->subject->mapping->portmap;
	const struct probe_result *result = cause->result;
	cleanup_free char *rule = find_nat_rule(cause);
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

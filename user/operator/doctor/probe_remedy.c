/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_remedy.c - what opens a firewall that drops all that nobody has let through. */
#include "operator/doctor/probe_remedy.h"

#include <linux/netfilter.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/remedy_word.h"
#include "operator/run_command.h"

#define COMMAND_SECONDS 5

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

static char *by_ufw(const struct opening *opening, const char *address)
{
	if (opening->is_outwards)
		return cni_format("ufw route allow in on %s out on %s",
				  remedy_word(opening->in).text, remedy_word(opening->out).text);
	return cni_format("ufw route allow proto %s to %s port %u", opening->protocol, address,
			  opening->port);
}

/* The answers need a rule, too. */
static char *by_iptables(const struct opening *opening, const char *address)
{
	const char *command = opening->ipv4 ? "iptables-nft" : "ip6tables-nft";
	const char *chain = has_chain(opening->drop, "DOCKER-USER") ? "DOCKER-USER" : "FORWARD";
	cleanup_free char *answers = cni_format(
		"%s -I %s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT", command, chain);

	if (opening->is_answer)
		return cni_format("%s", answers);
	if (has_chain(opening->drop, opening->ipv4 ? "ufw-before-forward" : "ufw6-before-forward"))
		return by_ufw(opening, address);
	if (opening->is_outwards)
		return cni_format("%s\n%s -I %s -i %s -o %s -j ACCEPT", answers, command, chain,
				  remedy_word(opening->in).text, remedy_word(opening->out).text);
	return cni_format("%s\n%s -I %s -o %s -d %s -p %s --dport %u -j ACCEPT", answers, command,
			  chain, remedy_word(opening->out).text, address, opening->protocol,
			  opening->port);
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
			  remedy_word(opening->container_side).text);
}

/* nft joins its words, so the rule is one word to the shell, with nft's own quotes. */
static char *insert_rule(const struct nft_drop *drop, const char *rule)
{
	return cni_format("nft insert rule %s %s %s %s", nft_family_word(drop->family),
			  remedy_word(drop->table).text, remedy_word(drop->chain).text,
			  remedy_word(rule).text);
}

static char *by_nft(const struct opening *opening, const char *address)
{
	cleanup_free char *answers =
		insert_rule(opening->drop, "ct state established,related accept");
	cleanup_free char *match = NULL, *first = NULL;

	if (opening->is_answer)
		return cni_format("%s", answers);
	if (opening->is_outwards)
		match = cni_format("iifname \"%s\" oifname \"%s\" accept", opening->in,
				   opening->out);
	else
		match = cni_format("oifname \"%s\" %s daddr %s %s dport %u accept", opening->out,
				   opening->ipv4 ? "ip" : "ip6", address, opening->protocol,
				   opening->port);
	first = insert_rule(opening->drop, match);
	return cni_format("%s\n%s", answers, first);
}

char *probe_remedy(const struct opening *opening)
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	cni_address_format(opening->address, address);
	if (!strcmp(opening->drop->table, "firewalld"))
		return by_firewalld(opening);
	return is_of_iptables(opening->drop) ? by_iptables(opening, address)
					     : by_nft(opening, address);
}

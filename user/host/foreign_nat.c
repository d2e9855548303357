/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* foreign_nat.c - rules of port mappers for the same host ports. */
#include "host/foreign_nat.h"

#include <stdio.h>
#include <string.h>

#include "conf/addresses.h"
#include "conf/request.h"
#include "lib/warning.h"
#include "nat/nat_rules.h"

/* Of one ADD. */
#define MAX_WARNINGS 16
#define RULE_TEXT_SIZE 640

struct wanted {
	const struct host *host;
	const struct container *container;
};

/* Whether the rule matches an address of the host at which ports are mapped. */
static bool is_of_host(const struct wanted *wanted, const struct nat_rule *rule)
{
	const struct address_list *list = &wanted->host->addresses;
	const struct policy *policy = &wanted->container->conf.policy;

	for (size_t i = 0; i < list->address_count; i++) {
		const struct local_address *local = &list->addresses[i];

		if (nat_rule_holds_address(rule, local->address) &&
		    host_maps_ports_at(wanted->host, local) &&
		    !conf_ranges_hold(policy->excluded, policy->excluded_count, local->address))
			return true;
	}
	return false;
}

static bool is_about(const struct wanted *wanted, const struct nat_rule *rule,
		     const struct portmap_key *key)
{
	if (!nat_rule_may_match(rule, key->protocol, key->host_address, key->host_port))
		return false;
	/* Only processes of the host reach it, and the rules are for packets that come in. */
	if (cni_address_is_loopback(key->host_address))
		return false;
	return !cni_address_is_any(key->host_address) || nat_rule_has_any_address(rule) ||
	       is_of_host(wanted, rule);
}

static bool concerns_claims(const void *context, const struct nat_rule *rule)
{
	const struct wanted *wanted = context;
	const struct attachment_claims *claims = &wanted->container->claims;

	for (size_t i = 0; i < claims->port_count; i++)
		if (is_about(wanted, rule, &claims->ports[i].key))
			return true;
	return false;
}

/* Prefers a rule with a comment: portmap's name the container. */
static const struct nat_rule *rule_about(const struct wanted *wanted,
					 const struct nat_rule_list *found,
					 const struct portmap_key *key)
{
	const struct nat_rule *best = NULL;

	for (size_t i = 0; i < found->count; i++) {
		const struct nat_rule *rule = &found->rules[i];

		if ((!best || (!*best->comment && *rule->comment)) && is_about(wanted, rule, key))
			best = rule;
	}
	return best;
}

/* "host port 8080/tcp is mapped to 10.88.0.2:80 by a rule in chain CNI-DN-0123 of iptables or
 * nftables (comment: dnat name: "web" id: "abc")" */
static void describe_rule(const struct nat_rule *rule, const struct portmap_key *key,
			  char text[RULE_TEXT_SIZE])
{
	static const uint8_t none[CNI_ADDRESS_SIZE];
	char address[CNI_ADDRESS_TEXT_SIZE], to[CNI_ADDRESS_TEXT_SIZE + 16] = "";

	cni_address_format(rule->new_address, address);
	if (memcmp(rule->new_address, none, sizeof(none)) != 0)
		snprintf(to, sizeof(to),
			 cni_address_is_ipv4(rule->new_address) ? " to %s:%u" : " to [%s]:%u",
			 address, rule->new_port ? rule->new_port : key->host_port);
	snprintf(text, RULE_TEXT_SIZE,
		 "host port %u/%s is mapped%s by a rule in chain %s of iptables or nftables%s%s%s",
		 key->host_port, conf_protocol_name(key->protocol), to, rule->chain_name,
		 *rule->comment ? " (comment: " : "", rule->comment, *rule->comment ? ")" : "");
}

static int judge_rules(const struct wanted *wanted, const struct nat_rule_list *found,
		       struct cni_error *err)
{
	const struct attachment_claims *claims = &wanted->container->claims;
	const struct portmap_key *warned = NULL;
	char text[RULE_TEXT_SIZE];
	size_t count = 0;

	for (size_t i = 0; found->count && i < claims->port_count; i++) {
		const struct portmap_key *key = &claims->ports[i].key;
		const struct nat_rule *rule = rule_about(wanted, found, key);

		/* A mapping without hostIP has a key for each family, but gets one warning. */
		if (!rule || (warned && warned->protocol == key->protocol &&
			      warned->host_port == key->host_port))
			continue;
		describe_rule(rule, key, text);
		if (wanted->container->conf.refuse_foreign)
			return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
					     "%s, and \"refuseForeign\" is true: stop the container"
					     " that it belongs to, remove the rule, or map another"
					     " hostPort or hostIP",
					     text);
		if (count++ == MAX_WARNINGS) {
			warning("rules of iptables or nftables map more of the ports that are "
				"mapped now");
			return 0;
		}
		warning("%s: what comes from outside reaches this container from now on, and the"
			" rule gets no packet any more; stop the container that it belongs to, or"
			" map another hostPort or hostIP",
			text);
		warned = key;
	}
	return 0;
}

int foreign_nat_check(const struct host *host, const struct container *container, bool is_claimed,
		      struct cni_error *err)
{
	const struct wanted wanted = {host, container};
	const struct nat_question question = {NAT_OF_PORT_MAPPERS, concerns_claims, &wanted};
	bool refuse = container->conf.refuse_foreign;
	cleanup_nat_rules struct nat_rule_list found = {0};
	cleanup_error struct cni_error failure = {0};

	if (!container->claims.port_count || refuse == is_claimed)
		return 0;
	if (!nat_rules_find(&found, &question, &failure))
		return judge_rules(&wanted, &found, err);
	if (!refuse)
		return 0;
	return cni_error_set(err, failure.code, "\"refuseForeign\": %s",
			     cni_error_message(&failure));
}

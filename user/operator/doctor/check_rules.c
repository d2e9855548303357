/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_rules.c - checks of a firewall's rules for what is forwarded to a container. */
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/nft_command.h"
#include "operator/doctor/ruleset.h"
#include "operator/format.h"

#define REPLY_RULE "ct state established,related accept"

/* iptables-nft's rules are in tables that nft must not write to. */
static bool is_of_iptables(const struct judgement *judgement)
{
	return strcmp(judgement->family, "inet") != 0 &&
	       (!strcmp(judgement->table, LEGACY_TABLE) ||
		(!strcmp(judgement->table, "filter") &&
		 strncmp(judgement->chain, "forward", 7) != 0));
}

static const char *iptables_command(const char *family, const char *table)
{
	bool legacy = !strcmp(table, LEGACY_TABLE);

	if (!strcmp(family, "ip"))
		return legacy ? "iptables-legacy" : "iptables-nft";
	return legacy ? "ip6tables-legacy" : "ip6tables-nft";
}

static char *remedy_by_iptables(const struct doctor *doctor, const struct forwarded *packet,
				const char *table, const char *address, const char *protocol)
{
	const char *command = iptables_command(packet->ipv4 ? "ip" : "ip6", table);
	const char *chain = ruleset_has_chain(doctor->ruleset, table, "DOCKER-USER") ? "DOCKER-USER"
										     : "FORWARD";

	if (packet->is_reply)
		return cni_format("%s -I %s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
				  command, chain);
	if (ruleset_has_chain(doctor->ruleset, table,
			      packet->ipv4 ? "ufw-before-forward" : "ufw6-before-forward"))
		return cni_format("ufw route allow proto %s to %s port %u", protocol, address,
				  packet->destination_port);
	return cni_format("%s -I %s -o %s -d %s -p %s --dport %u -j ACCEPT", command, chain,
			  packet->out, address, protocol, packet->destination_port);
}

static char *make_remedy(const struct doctor *doctor, const struct forwarded *packet,
			 const struct judgement *judgement)
{
	char address[CNI_ADDRESS_TEXT_SIZE], word[PROTOCOL_WORD_SIZE];
	const char *protocol = protocol_word(packet->protocol, word);

	cni_address_format(packet->destination, address);
	if (!strcmp(judgement->table, "firewalld"))
		return cni_format("firewall-cmd --permanent --new-policy containers\n"
				  "firewall-cmd --permanent --policy containers --add-ingress-zone"
				  " ANY --add-egress-zone trusted --set-target ACCEPT\n"
				  "firewall-cmd --permanent --zone trusted --add-interface %s\n"
				  "firewall-cmd --reload",
				  packet->is_reply ? packet->in : packet->out);
	if (is_of_iptables(judgement))
		return remedy_by_iptables(doctor, packet, judgement->table, address, protocol);
	if (packet->is_reply)
		return cni_format("nft insert rule %s %s %s " REPLY_RULE, judgement->family,
				  judgement->table, judgement->chain);
	return cni_format("nft insert rule %s %s %s oifname \"%s\" %s daddr %s %s dport %u accept",
			  judgement->family, judgement->table, judgement->chain, packet->out,
			  packet->ipv4 ? "ip" : "ip6", address, protocol, packet->destination_port);
}

static void report_drop(struct doctor *doctor, const struct subject *subject,
			const struct forwarded *packet, const struct judgement *judgement)
{
	const uint8_t *container = subject->mapping->portmap.container_address;
	bool is_sure = judgement->fate == FATE_DROPPED;
	char to[ENDPOINT_TEXT_SIZE], what[64];

	format_endpoint(container, subject->mapping->portmap.container_port, to);
	if (judgement->by_policy)
		snprintf(what, sizeof(what), "policy drop, no rule %s",
			 is_sure ? "accepts" : "surely accepts");
	else
		snprintf(what, sizeof(what), "rule %s %d %s",
			 is_of_iptables(judgement) ? "number" : "handle", judgement->handle,
			 is_sure ? "drops" : "may drop");
	doctor_found(doctor, is_sure ? VERDICT_FAIL : VERDICT_WARN,
		     make_remedy(doctor, packet, judgement), "%s: %s %s %s: %s %s %s from %s",
		     subject->port, judgement->family, judgement->table, judgement->chain, what,
		     packet->is_reply ? "answers of" : "what goes to", to, packet->in);
}

static bool is_same_chain(const struct judgement *a, const struct judgement *b)
{
	return !strcmp(a->family, b->family) && !strcmp(a->table, b->table) &&
	       !strcmp(a->chain, b->chain);
}

/* One rule lets the answers of all containers through, so a chain is told once for them. */
static bool is_dropped(struct doctor *doctor, const struct subject *subject,
		       const struct forwarded *packet, struct judgement *told)
{
	struct judgement judgement = ruleset_judge(doctor->ruleset, packet);

	if (judgement.fate == FATE_ACCEPTED)
		return false;
	if (!packet->is_reply || !is_same_chain(&judgement, told))
		report_drop(doctor, subject, packet, &judgement);
	if (packet->is_reply)
		*told = judgement;
	return true;
}

static bool check_from(struct doctor *doctor, const struct subject *subject, const char *uplink,
		       struct judgement *told)
{
	const struct portmap *portmap = &subject->mapping->portmap;
	const struct range_option *from = &doctor->options->from;
	struct forwarded packet = {
		.ipv4 = subject->ipv4,
		.source_known = from->is_set && cni_address_is_ipv4(from->address) == subject->ipv4,
		.in = uplink,
		.out = subject->gateway->link.name,
		.protocol = subject->mapping->key.protocol,
		.destination_port = portmap->container_port,
	};
	struct forwarded reply = packet;
	bool dropped;

	memcpy(packet.source, from->address, CNI_ADDRESS_SIZE);
	memcpy(packet.destination, portmap->container_address, CNI_ADDRESS_SIZE);
	dropped = is_dropped(doctor, subject, &packet, told);
	reply.is_reply = true;
	reply.in = packet.out;
	reply.out = packet.in;
	reply.source_port = portmap->container_port;
	reply.destination_port = 0;
	reply.source_known = true;
	memcpy(reply.source, portmap->container_address, CNI_ADDRESS_SIZE);
	memcpy(reply.destination, from->address, CNI_ADDRESS_SIZE);
	return is_dropped(doctor, subject, &reply, told) || dropped;
}

static void check_subject(struct doctor *doctor, const struct subject *subject,
			  struct judgement *told)
{
	const char *uplink = doctor->default_uplink[subject->ipv4];

	if (*uplink) {
		check_from(doctor, subject, uplink, told);
		return;
	}
	for (size_t i = 0; i < doctor->interface_count; i++)
		if (doctor->interfaces[i].link.ifindex &&
		    doctor->interfaces[i].entry.role == ROLE_UPLINK &&
		    check_from(doctor, subject, doctor->interfaces[i].link.name, told))
			return;
}

void check_forward_rules(struct doctor *doctor)
{
	struct judgement told = {.family = "", .table = "", .chain = ""};
	struct subject subject;

	if (!doctor->mappings.count)
		return;
	if (!doctor->ruleset) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, cni_format("apt-get install nftables"),
			     "the rules of nftables: %s", doctor->ruleset_error);
		return;
	}
	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (!cni_address_is_loopback(doctor->mappings.list[i].key.host_address) &&
		    doctor_subject(doctor, i, &subject))
			check_subject(doctor, &subject, &told);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void report_host_port_rule(struct doctor *doctor, const struct subject *subject,
				  const json_t *rule)
{
	struct judgement place = {.family = text_of(rule, "family"),
				  .table = text_of(rule, "table"),
				  .chain = text_of(rule, "chain")};
	int number = (int)json_integer_value(json_object_get(rule, "handle"));
	char *remedy;

	if (is_of_iptables(&place))
		remedy = cni_format("# match the container's port instead: --dport %u; the rule"
				    " is in:\n%s -S %s",
				    subject->mapping->portmap.container_port,
				    iptables_command(place.family, place.table), place.chain);
	else
		remedy = cni_format("# match the container's port instead: tcp dport %u; the rule"
				    " is in:\nnft -a list chain %s %s %s",
				    subject->mapping->portmap.container_port, place.family,
				    place.table, place.chain);
	doctor_found(doctor, VERDICT_WARN, remedy,
		     "%s: rule %s %d in %s %s %s asks conntrack for the kernel's NAT, which this"
		     " port does not have: it never matches",
		     subject->port, is_of_iptables(&place) ? "number" : "handle", number,
		     place.family, place.table, place.chain);
}

void check_host_port_rules(struct doctor *doctor)
{
	struct subject subject;
	const json_t *rule;
	uint16_t last = 0;

	for (size_t i = 0; doctor->ruleset && i < doctor->mappings.count; i++) {
		uint16_t port = doctor->mappings.list[i].key.host_port;

		rule = port == last ? NULL : ruleset_find_conntrack_rule(doctor->ruleset, port);
		last = port;
		if (rule && doctor_subject(doctor, i, &subject))
			report_host_port_rule(doctor, &subject, rule);
	}
}

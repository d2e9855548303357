/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_rules.c - checks of a firewall's rules for what is forwarded to a container. */
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "operator/doctor/nft_command.h"
#include "operator/doctor/ruleset.h"
#include "operator/print/format.h"

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

/* What is to be accepted, in the words of a firewall. */
struct opening {
	const struct doctor *doctor;
	const struct forwarded *packet;
	const char *table;
	char address[CNI_ADDRESS_TEXT_SIZE]; /* where the packet goes */
	const char *protocol;
};

static char *remedy_by_iptables(const struct opening *opening)
{
	const struct forwarded *packet = opening->packet;
	const json_t *ruleset = opening->doctor->ruleset;
	const char *command = iptables_command(packet->ipv4 ? "ip" : "ip6", opening->table);
	const char *chain = ruleset_has_chain(ruleset, opening->table, "DOCKER-USER")
				    ? "DOCKER-USER"
				    : "FORWARD";
	bool ufw = ruleset_has_chain(ruleset, opening->table,
				     packet->ipv4 ? "ufw-before-forward" : "ufw6-before-forward");

	if (packet->is_reply)
		return cni_format("%s -I %s -m conntrack --ctstate ESTABLISHED,RELATED -j ACCEPT",
				  command, chain);
	if (!packet->destination_known)
		return ufw ? cni_format("ufw route allow in on %s out on %s",
					remedy_word(packet->in).text, remedy_word(packet->out).text)
			   : cni_format("%s -I %s -i %s -o %s -j ACCEPT", command, chain,
					remedy_word(packet->in).text,
					remedy_word(packet->out).text);
	if (ufw)
		return cni_format("ufw route allow proto %s to %s port %u", opening->protocol,
				  opening->address, packet->destination_port);
	return cni_format("%s -I %s -o %s -d %s -p %s --dport %u -j ACCEPT", command, chain,
			  remedy_word(packet->out).text, opening->address, opening->protocol,
			  packet->destination_port);
}

/* The container's interface is trusted, so it gets out, and a policy lets everybody in. */
static char *remedy_by_firewalld(const struct forwarded *packet)
{
	return cni_format("firewall-cmd --permanent --zone trusted --add-interface %s\n"
			  "firewall-cmd --permanent --get-policies | grep -qw containers ||"
			  " firewall-cmd --permanent --new-policy containers\n"
			  "firewall-cmd --permanent --policy containers --add-ingress-zone ANY\n"
			  "firewall-cmd --permanent --policy containers --add-egress-zone trusted\n"
			  "firewall-cmd --permanent --policy containers --set-target ACCEPT\n"
			  "firewall-cmd --reload",
			  remedy_word(packet->container_side).text);
}

static char *remedy_by_nft(const struct opening *opening, const struct judgement *judgement)
{
	const struct forwarded *packet = opening->packet;
	cleanup_free char *match = NULL;

	/* nft joins its words, so the rule is one word to the shell, with nft's own quotes. */
	if (packet->is_reply)
		match = cni_format("ct state established,related accept");
	else if (!packet->destination_known)
		match = cni_format("iifname \"%s\" oifname \"%s\" accept", packet->in, packet->out);
	else
		match = cni_format("oifname \"%s\" %s daddr %s %s dport %u accept", packet->out,
				   packet->ipv4 ? "ip" : "ip6", opening->address, opening->protocol,
				   packet->destination_port);
	return match ? cni_format("nft insert rule %s %s %s %s",
				  remedy_word(judgement->family).text,
				  remedy_word(judgement->table).text,
				  remedy_word(judgement->chain).text, remedy_word(match).text)
		     : NULL;
}

static char *make_remedy(const struct doctor *doctor, const struct forwarded *packet,
			 const struct judgement *judgement)
{
	char word[PROTOCOL_WORD_SIZE];
	struct opening opening = {doctor, packet, judgement->table, "",
				  protocol_word(packet->protocol, word)};

	cni_address_format(packet->destination, opening.address);
	if (!strcmp(judgement->table, "firewalld"))
		return remedy_by_firewalld(packet);
	return is_of_iptables(judgement) ? remedy_by_iptables(&opening)
					 : remedy_by_nft(&opening, judgement);
}

/* `what`: "*:8080/tcp to 10.88.0.2:80"; `verdict` where it is dropped for sure. */
static void report_drop(struct doctor *doctor, const struct forwarded *packet,
			const struct judgement *judgement, enum verdict verdict, const char *what)
{
	bool is_sure = judgement->fate == FATE_DROPPED;
	char by[64];

	if (judgement->by_policy)
		snprintf(by, sizeof(by), "policy drop, no rule %s",
			 is_sure ? "accepts" : "surely accepts");
	else
		snprintf(by, sizeof(by), "rule %s %d %s",
			 is_of_iptables(judgement) ? "number" : "handle", judgement->handle,
			 is_sure ? "drops" : "may drop");
	doctor_found(doctor, is_sure ? verdict : VERDICT_WARN,
		     make_remedy(doctor, packet, judgement), "%s %s %s: %s %s (%s to %s)",
		     judgement->family, judgement->table, judgement->chain, by, what, packet->in,
		     packet->out);
}

/* What was told already, of one family. */
struct told {
	struct judgement replies;  /* one rule accepts those of all containers */
	struct judgement outgoing; /* one rule accepts what comes from an interface ... */
	char in[IF_NAMESIZE];      /* ... which is this one */
};

static bool is_told(struct judgement *last, const struct judgement *judgement)
{
	bool same = last->chain && !strcmp(judgement->family, last->family) &&
		    !strcmp(judgement->table, last->table) &&
		    !strcmp(judgement->chain, last->chain);

	*last = *judgement;
	return same;
}

/* What goes to a port of a container, and its answers. */
static bool check_from(struct doctor *doctor, const struct subject *subject, const char *uplink,
		       struct told told[2])
{
	const struct portmap *portmap = &subject->mapping->portmap;
	const struct range_option *from = &doctor->options->from;
	bool from_known = from->is_set && cni_address_is_ipv4(from->address) == subject->ipv4;
	struct forwarded packet = {
		.ipv4 = subject->ipv4,
		.source_known = from_known,
		.destination_known = true,
		.in = uplink,
		.out = subject->gateway->link.name,
		.container_side = subject->gateway->link.name,
		.protocol = subject->mapping->key.protocol,
		.destination_port = portmap->container_port,
	};
	struct forwarded reply;
	struct judgement forth, back;
	char to[ENDPOINT_TEXT_SIZE], what[3 * ENDPOINT_TEXT_SIZE];

	memcpy(packet.source, from->address, CNI_ADDRESS_SIZE);
	memcpy(packet.destination, portmap->container_address, CNI_ADDRESS_SIZE);
	reply = forwarded_reply(&packet);
	forth = ruleset_judge(doctor->ruleset, &packet);
	back = ruleset_judge(doctor->ruleset, &reply);
	format_endpoint(portmap->container_address, portmap->container_port, to);
	snprintf(what, sizeof(what), "%s to %s", subject->port, to);
	if (forth.fate != FATE_ACCEPTED)
		report_drop(doctor, &packet, &forth, VERDICT_FAIL, what);
	snprintf(what, sizeof(what), "answers of %s at %s", to, subject->port);
	if (back.fate != FATE_ACCEPTED && !is_told(&told[packet.ipv4].replies, &back))
		report_drop(doctor, &reply, &back, VERDICT_FAIL, what);
	return forth.fate != FATE_ACCEPTED || back.fate != FATE_ACCEPTED;
}

static void check_subject(struct doctor *doctor, const struct subject *subject, struct told told[2])
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

struct outgoing {
	struct doctor *doctor;
	struct told *told;
};

static void judge_out(const struct outgoing *outgoing, const struct forwarded *packet)
{
	struct judgement judgement = ruleset_judge(outgoing->doctor->ruleset, packet);
	struct told *told = &outgoing->told[packet->ipv4];
	char text[CNI_ADDRESS_TEXT_SIZE], what[CNI_ADDRESS_TEXT_SIZE + 32];
	bool same_interface = !strcmp(told->in, packet->in);

	/* Rules that accept some of it are an administrator's choice. */
	if (judgement.fate != FATE_DROPPED)
		return;
	if (!packet->is_reply)
		snprintf(told->in, sizeof(told->in), "%s", packet->in);
	if (packet->is_reply ? is_told(&told->replies, &judgement)
			     : is_told(&told->outgoing, &judgement) && same_interface)
		return;
	cni_address_format(packet->is_reply ? packet->destination : packet->source, text);
	snprintf(what, sizeof(what), packet->is_reply ? "answers to %s" : "what %s sends", text);
	report_drop(outgoing->doctor, packet, &judgement, VERDICT_WARN, what);
}

/* What a masqueraded container sends to anybody, and what answers. */
static enum walk check_out(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct endpoint_key *address = key;
	const struct endpoint *endpoint = value;
	struct outgoing *outgoing = context;
	struct doctor *doctor = outgoing->doctor;
	struct subject subject = {.container = view_container(&doctor->view, endpoint->owner),
				  .ipv4 = cni_address_is_ipv4(address->address)};
	struct forwarded packet = {.ipv4 = subject.ipv4,
				   .source_known = true,
				   .protocol = PROTOCOL_TCP,
				   .out = doctor->default_uplink[subject.ipv4]};
	struct forwarded reply;

	if (!endpoint->masquerade || !*packet.out || !doctor_locate(doctor, &subject))
		return WALK_ON;
	packet.in = packet.container_side = subject.gateway->link.name;
	memcpy(packet.source, address->address, CNI_ADDRESS_SIZE);
	reply = forwarded_reply(&packet);
	judge_out(outgoing, &packet);
	judge_out(outgoing, &reply);
	return WALK_ON;
}

void check_forward_rules(struct doctor *doctor)
{
	struct told told[2] = {{.in = ""}, {.in = ""}}; /* IPv6, IPv4 */
	struct outgoing outgoing = {doctor, told};
	cleanup_error struct cni_error ignored = {0};
	struct subject subject;

	if (!doctor->ruleset) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, cni_format("apt-get install nftables"),
			     "the rules of nftables: %s", doctor->ruleset_error);
		return;
	}
	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (!cni_address_is_loopback(doctor->mappings.list[i].key.host_address) &&
		    doctor_subject(doctor, i, &subject))
			check_subject(doctor, &subject, told);
	if (!doctor->options->port.port)
		map_walk(&doctor->host.datapath.objects, MAP_ENDPOINTS, check_out, &outgoing,
			 &ignored);
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
				    iptables_command(place.family, place.table),
				    remedy_word(place.chain).text);
	else
		remedy = cni_format("# match the container's port instead: tcp dport %u; the rule"
				    " is in:\nnft -a list chain %s %s %s",
				    subject->mapping->portmap.container_port,
				    remedy_word(place.family).text, remedy_word(place.table).text,
				    remedy_word(place.chain).text);
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

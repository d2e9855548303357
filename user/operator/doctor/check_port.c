/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_port.c - checks of mapped ports: whose they are, and who else wants them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/text_file.h"
#include "operator/view/claimants.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "operator/print/format.h"

void check_owner(struct doctor *doctor)
{
	const struct port_option *port = &doctor->options->port;
	char word[PROTOCOL_WORD_SIZE];
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (!doctor_subject(doctor, i, &subject))
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
				     "%s: its container is gone, or its ADD did not finish",
				     subject.port);
	if (port->port && !doctor->mappings.count)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("bpf-portmap list\n# add the container again with the"
					" port"),
			     "no container has port %u%s%s%s", port->port,
			     port->protocol ? "/" : "",
			     port->protocol ? protocol_word(port->protocol, word) : "",
			     doctor->options->from.is_set ? " for this client's family" : "");
}

/* Who else may have the ports that are mapped. */
struct others {
	struct port_question question;
	struct claimants claimants;
};

/* Each of a range. */
static void ask_for_mappings(const struct doctor *doctor, struct port_question *question)
{
	const struct mappings *mappings = &doctor->mappings;

	question->addresses = &doctor->host.addresses;
	for (size_t i = 0; i < mappings->count; i++) {
		struct portmap_key key = mappings->list[i].key;
		unsigned int port = key.host_port;

		for (; port <= mappings->list[i].last_port; port++) {
			key.host_port = (uint16_t)port;
			*ARRAY_ADD(question->keys, question->count) = key;
		}
	}
}

static bool report_process(struct doctor *doctor, const struct others *others,
			   const struct subject *subject, const struct portmap_key *key)
{
	const struct socket_list *sockets = &others->claimants.sockets;
	char text[ENDPOINT_TEXT_SIZE], who[HOLDER_TEXT_SIZE];
	const struct host_socket *socket = sockets->sockets;
	size_t left = sockets->count;

	for (; left && !claimant_socket_has(socket, key); left--)
		socket++;
	if (!left)
		return false;
	claimant_holder(&others->claimants, socket, who);
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# stop the process, or map another hostPort:\nss -lnp 'sport ="
				" :%u'",
				socket->port),
		     "%s: %s has %s on the host, and gets nothing from outside there",
		     subject->port, who, format_endpoint(socket->address, socket->port, text));
	return true;
}

static bool report_rule(struct doctor *doctor, const struct others *others,
			const struct subject *subject, const struct portmap_key *key)
{
	const struct nat_rule_list *rules = &others->claimants.rules;
	const struct nat_rule *rule = rules->rules;
	size_t left = rules->count;

	for (; left && !claimant_rule_has(&others->question, rule, key); left--)
		rule++;
	if (!left)
		return false;
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# stop the container that it belongs to, or delete"
				" the rule:\nnft -a list ruleset | grep -w -B20 '%u'",
				key->host_port),
		     "%s: a rule in chain %s maps it, too, and gets no packet%s%s%s", subject->port,
		     rule->chain_name, *rule->comment ? " (" : "", rule->comment,
		     *rule->comment ? ")" : "");
	return true;
}

/* Of each mapping, which may be a range, the first that is found is reported. */
static void report_others(struct doctor *doctor, const struct others *others,
			  bool (*report)(struct doctor *doctor, const struct others *others,
					 const struct subject *subject,
					 const struct portmap_key *key))
{
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		struct portmap_key key = doctor->mappings.list[i].key;
		unsigned int port = key.host_port;

		doctor_subject(doctor, i, &subject);
		do
			key.host_port = (uint16_t)port;
		while (!report(doctor, others, &subject, &key) &&
		       port++ < doctor->mappings.list[i].last_port);
	}
}

static void check_others(struct doctor *doctor, bool of_processes)
{
	struct others others = {0};
	cleanup_error struct cni_error err = {0};

	ask_for_mappings(doctor, &others.question);
	if ((of_processes ? claimants_find_sockets : claimants_find_rules)(&others.claimants,
									   &others.question, &err))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	else
		report_others(doctor, &others, of_processes ? report_process : report_rule);
	port_question_release(&others.question);
	claimants_release(&others.claimants);
}

void check_listening_process(struct doctor *doctor)
{
	check_others(doctor, true);
}

void check_foreign_nat(struct doctor *doctor)
{
	check_others(doctor, false);
}

void check_host_ip(struct doctor *doctor, const struct subject *subject)
{
	const uint8_t *address = subject->mapping->key.host_address;
	const char *uplink = doctor->default_uplink[cni_address_is_ipv4(address)];
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (cni_address_is_any(address) || cni_address_is_loopback(address) ||
	    local_address_exists(doctor->host.socket, address))
		return;
	cni_address_format(address, text);
	doctor_found(doctor, VERDICT_FAIL,
		     cni_format("ip address add %s/%d dev %s", text,
				cni_address_is_ipv4(address) ? 32 : 128,
				remedy_word(*uplink ? uplink : "lo").text),
		     "%s: the host does not have the address %s", subject->port, text);
}

/* "8080,9000-9100" */
static bool is_listed(const char *list, unsigned int port, unsigned int last_port)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (port >= first && last_port <= last)
			return true;
		if (end == list)
			return false;
		list = end + strspn(end, ", \n");
	}
	return false;
}

/* Each remedy has the ports of those before it, so that whichever is pasted last keeps them. */
static void append_ports(char **list, unsigned int port, unsigned int last)
{
	cleanup_free char *before = *list;

	char end[8] = "";

	if (last > port)
		snprintf(end, sizeof(end), "-%u", last);
	if (before)
		*list = cni_format("%s%s%u%s", before, *before ? "," : "", port, end);
}

void check_ephemeral(struct doctor *doctor)
{
	char range[32], reserved[4096];
	cleanup_free char *wanted = NULL; /* what is reserved, with all ports reported so far */
	unsigned int first = 0, last = 0;
	struct subject subject;

	text_file_read("/proc/sys/net/ipv4/ip_local_port_range", range, sizeof(range));
	text_file_read("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved, sizeof(reserved));
	/* A list that did not fit would lose its end by the remedy. */
	if (strchr(reserved, '\n'))
		wanted = cni_format("%.*s", (int)strcspn(reserved, "\n"), reserved);
	if (sscanf(range, "%u %u", &first, &last) != 2)
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct mapping *mapping = &doctor->mappings.list[i];
		unsigned int port = mapping->key.host_port, last_port = mapping->last_port;

		if (last_port < first || port > last || is_listed(reserved, port, last_port) ||
		    (i && mapping[-1].key.host_port == port && mapping[-1].last_port == last_port))
			continue;
		doctor_subject(doctor, i, &subject);
		append_ports(&wanted, port, last_port);
		doctor_found(
			doctor, VERDICT_WARN,
			wanted ? cni_format("sysctl -w net.ipv4.ip_local_reserved_ports=%s", wanted)
			       : NULL,
			"%s is among the ports that connections of the host get (%u to %u):"
			" answers to such a connection go to the container",
			subject.port, first, last);
	}
}

/* NULL: ports are mapped there. ADD refuses addresses that "excludeCIDRs" leaves out; an interface
 * may be excluded later, by the conflist of another network. */
static const char *left_out_by(struct doctor *doctor, const struct subject *subject)
{
	const uint8_t *address = subject->mapping->key.host_address;
	const struct address_list *list = &doctor->host.addresses;
	struct policy policy;
	const struct policy *found = doctor_policy(doctor, subject, &policy);

	if (found && conf_ranges_hold(found->excluded, found->excluded_count, address))
		return "excludeCIDRs";
	for (size_t i = 0; i < list->address_count; i++)
		if (!memcmp(list->addresses[i].address, address, CNI_ADDRESS_SIZE) &&
		    !host_maps_ports_at(&doctor->host, &list->addresses[i]))
			return "excludeInterfaces";
	return NULL;
}

void check_excluded(struct doctor *doctor, const struct subject *subject)
{
	const uint8_t *address = subject->mapping->key.host_address;
	const char *option = cni_address_is_any(address) ? NULL : left_out_by(doctor, subject);
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (!option)
		return;
	cni_address_format(address, text);
	doctor_found(doctor, VERDICT_FAIL,
		     cni_format("# take it out of \"%s\" of the conflists, or map another hostIP;"
				" then add the container again",
				option),
		     "%s: \"%s\" leaves out %s", subject->port, option, text);
}

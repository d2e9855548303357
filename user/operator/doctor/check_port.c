/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_port.c - checks of mapped ports: whose they are, and who else wants them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "net/nat_rules.h"
#include "net/netlink.h"
#include "net/processes.h"
#include "net/sockets.h"
#include "net/text_file.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/ruleset.h"
#include "operator/format.h"

#define NODE_PORT_FIRST 30000
#define NODE_PORT_LAST 32767

void check_owner(struct doctor *doctor)
{
	const struct port_option *port = &doctor->options->port;
	char word[PROTOCOL_WORD_SIZE];
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (!doctor_subject(doctor, i, &subject))
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap attach"),
				     "%s: its container is gone, or its ADD did not finish",
				     subject.port);
	if (port->port && !doctor->mappings.count)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("bpf-portmap list\n# add the container again with the"
					" port"),
			     "no container has port %u%s%s", port->port, port->protocol ? "/" : "",
			     port->protocol ? protocol_word(port->protocol, word) : "");
}

static bool has_port(const struct host_socket *socket, const struct portmap_key *key)
{
	if (socket->port != key->host_port)
		return false;
	if (cni_address_is_any(key->host_address) || cni_address_is_any(socket->address))
		return socket->both_families || cni_address_is_ipv4(key->host_address) ==
							cni_address_is_ipv4(socket->address);
	return !memcmp(socket->address, key->host_address, CNI_ADDRESS_SIZE);
}

static void report_process(struct doctor *doctor, const struct subject *subject,
			   const struct host_socket *socket)
{
	struct socket_process process = {.inode = socket->inode};
	char text[ENDPOINT_TEXT_SIZE], who[PROCESS_NAME_SIZE + 32] = "a socket without a process";

	processes_find(&process, 1, NULL);
	if (process.pid)
		snprintf(who, sizeof(who), "%s (pid %d)", process.name, (int)process.pid);
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# stop the process, or map another hostPort:\nss -lnp 'sport ="
				" :%u'",
				socket->port),
		     "%s: %s has %s on the host, and gets nothing from outside there",
		     subject->port, who, format_endpoint(socket->address, socket->port, text));
}

void check_listening_process(struct doctor *doctor)
{
	static const enum protocol protocols[] = {PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_SCTP};
	cleanup_error struct cni_error err = {0};
	cleanup_netlink struct nl_sock *socket = netlink_open(NETLINK_SOCK_DIAG, &err);
	cleanup_sockets struct socket_list list = {0};
	struct subject subject;

	for (size_t i = 0; socket && i < 3; i++)
		if (sockets_find(&list, socket, protocols[i], SOCKET_BOUND, &err))
			break;
	if (cni_error_is_set(&err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
		return;
	}
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		doctor_subject(doctor, i, &subject);
		for (size_t j = 0; j < list.count; j++)
			if (list.sockets[j].protocol == subject.mapping->key.protocol &&
			    has_port(&list.sockets[j], &subject.mapping->key)) {
				report_process(doctor, &subject, &list.sockets[j]);
				break;
			}
	}
}

static bool is_about(const struct doctor *doctor, const struct nat_rule *rule,
		     const struct portmap_key *key)
{
	const struct address_list *list = &doctor->host.addresses;

	if (!nat_rule_may_match(rule, key->protocol, key->host_address, key->host_port) ||
	    cni_address_is_loopback(key->host_address))
		return false;
	if (!cni_address_is_any(key->host_address) || nat_rule_has_any_address(rule))
		return true;
	for (size_t i = 0; i < list->address_count; i++)
		if (nat_rule_holds_address(rule, list->addresses[i].address))
			return true;
	return false;
}

static bool concerns(const void *context, const struct nat_rule *rule)
{
	const struct doctor *doctor = context;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		if (is_about(doctor, rule, &doctor->mappings.list[i].key))
			return true;
	return false;
}

void check_foreign_nat(struct doctor *doctor)
{
	cleanup_nat_rules struct nat_rule_list found = {0};
	cleanup_error struct cni_error err = {0};
	struct subject subject;

	if (nat_rules_find(&found, concerns, doctor, &err)) {
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
		return;
	}
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		doctor_subject(doctor, i, &subject);
		for (size_t j = 0; j < found.count; j++) {
			const struct nat_rule *rule = &found.rules[j];

			if (!is_about(doctor, rule, &subject.mapping->key))
				continue;
			doctor_found(
				doctor, VERDICT_WARN,
				cni_format("# stop the container that it belongs to, or delete"
					   " the rule:\nnft -a list ruleset | grep -w -B20 '%u'",
					   subject.mapping->key.host_port),
				"%s: a rule in chain %s maps it, too, and gets no packet%s%s%s",
				subject.port, rule->chain_name, *rule->comment ? " (" : "",
				rule->comment, *rule->comment ? ")" : "");
			break;
		}
	}
}

void check_host_ip(struct doctor *doctor)
{
	struct subject subject;
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const uint8_t *address = doctor->mappings.list[i].key.host_address;

		if (cni_address_is_any(address) || cni_address_is_loopback(address) ||
		    local_address_exists(doctor->host.socket, address))
			continue;
		doctor_subject(doctor, i, &subject);
		cni_address_format(address, text);
		doctor_found(
			doctor, VERDICT_FAIL,
			cni_format("ip address add %s/%d dev %s", text,
				   cni_address_is_ipv4(address) ? 32 : 128,
				   *doctor->default_uplink[cni_address_is_ipv4(address)]
					   ? doctor->default_uplink[cni_address_is_ipv4(address)]
					   : "lo"),
			"%s: the host does not have the address %s", subject.port, text);
	}
}

/* "8080,9000-9100" */
static bool is_listed(const char *list, unsigned int port)
{
	while (*list) {
		char *end;
		unsigned long first = strtoul(list, &end, 10), last = first;

		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (port >= first && port <= last)
			return true;
		if (end == list)
			return false;
		list = end + strspn(end, ", \n");
	}
	return false;
}

void check_ephemeral(struct doctor *doctor)
{
	char range[32], reserved[4096];
	unsigned int first = 0, last = 0;
	struct subject subject;

	text_file_read("/proc/sys/net/ipv4/ip_local_port_range", range, sizeof(range));
	text_file_read("/proc/sys/net/ipv4/ip_local_reserved_ports", reserved, sizeof(reserved));
	reserved[strcspn(reserved, "\n")] = '\0';
	if (sscanf(range, "%u %u", &first, &last) != 2)
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		unsigned int port = doctor->mappings.list[i].key.host_port;

		if (port < first || port > last || is_listed(reserved, port) ||
		    (i && doctor->mappings.list[i - 1].key.host_port == port))
			continue;
		doctor_subject(doctor, i, &subject);
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("sysctl -w net.ipv4.ip_local_reserved_ports=%s%s%u",
					reserved, *reserved ? "," : "", port),
			     "%s is among the ports that connections of the host get (%u to %u):"
			     " answers to such a connection go to the container",
			     subject.port, first, last);
	}
}

void check_node_ports(struct doctor *doctor)
{
	struct subject subject;

	if (!ruleset_has_chain(doctor->ruleset, "nat", "KUBE-NODEPORTS") &&
	    !ruleset_has_chain(doctor->ruleset, "kube-proxy", "nodeports"))
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		unsigned int port = doctor->mappings.list[i].key.host_port;

		if (port < NODE_PORT_FIRST || port > NODE_PORT_LAST)
			continue;
		doctor_subject(doctor, i, &subject);
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("# map a port outside of %d-%d", NODE_PORT_FIRST,
					NODE_PORT_LAST),
			     "%s: Kubernetes may give this port to a Service (NodePort), which then"
			     " gets nothing",
			     subject.port);
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

void check_excluded(struct doctor *doctor)
{
	struct subject subject;
	char text[CNI_ADDRESS_TEXT_SIZE];

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const uint8_t *address = doctor->mappings.list[i].key.host_address;
		const char *option;

		if (cni_address_is_any(address) || !doctor_subject(doctor, i, &subject))
			continue;
		option = left_out_by(doctor, &subject);
		if (!option)
			continue;
		cni_address_format(address, text);
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# take it out of \"%s\" of the conflists, or map another"
					" hostIP; then add the container again",
					option),
			     "%s: \"%s\" leaves out %s", subject.port, option, text);
	}
}

static bool has_range_of(const struct policy *policy, bool ipv4)
{
	for (unsigned int i = 0; i < policy->source_range_count && i < POLICY_RANGES; i++)
		if (cni_address_is_ipv4(policy->source_ranges[i].address) == ipv4 &&
		    !policy->source_ranges[i].exception)
			return true;
	return false;
}

static void check_source(struct doctor *doctor, const struct subject *subject,
			 const struct policy *policy)
{
	const struct range_option *from = &doctor->options->from;
	bool ipv4 = cni_address_is_ipv4(subject->mapping->key.host_address);
	const char *network = subject->container->name.network;
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (!policy->source_range_count)
		return;
	if (from->is_set && cni_address_is_ipv4(from->address) == ipv4 &&
	    !conf_ranges_hold(policy->source_ranges, policy->source_range_count, from->address)) {
		cni_address_format(from->address, text);
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# add %s to \"sourceRanges\" of network %s, and add the"
					" container again",
					text, network),
			     "%s: \"sourceRanges\" keeps %s out", subject->port, text);
	} else if (!from->is_set && !has_range_of(policy, ipv4)) {
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("# add a range of IPv%c to \"sourceRanges\" of network %s,"
					" and add the container again",
					ipv4 ? '4' : '6', network),
			     "%s: \"sourceRanges\" has no range of IPv%c, so nobody reaches it",
			     subject->port, ipv4 ? '4' : '6');
	}
}

void check_sources(struct doctor *doctor)
{
	struct subject subject;
	struct policy policy;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct policy *found;

		if (!doctor_subject(doctor, i, &subject))
			continue;
		found = doctor_policy(doctor, &subject, &policy);
		if (found)
			check_source(doctor, &subject, found);
	}
}

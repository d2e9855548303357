/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_port.c - checks of mapped ports: whose they are, and who else wants them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "conf/port_set.h"
#include "datapath/load/maps.h"
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

/* Who else may have the ports that are mapped, each of a range. False: nobody knows. */
static bool find_claimants(struct doctor *doctor, struct claimants *claimants,
			   int (*find)(struct claimants *claimants, struct cni_error *err))
{
	const struct mappings *mappings = &doctor->mappings;
	cleanup_error struct cni_error err = {0};

	claimants->addresses = &doctor->host.addresses;
	for (size_t i = 0; i < mappings->count; i++) {
		struct portmap_key key = mappings->list[i].key;
		unsigned int port = key.host_port;

		for (; port <= mappings->list[i].last_port; port++) {
			key.host_port = (uint16_t)port;
			*ARRAY_ADD(claimants->keys, claimants->key_count) = key;
		}
	}
	if (!find(claimants, &err))
		return true;
	doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	return false;
}

/* The first that has one of its ports; NULL: none. */
static const struct host_socket *socket_at(const struct claimants *claimants,
					   const struct mapping *mapping)
{
	struct portmap_key key = mapping->key;

	for (size_t i = 0; i < claimants->sockets.count; i++) {
		const struct host_socket *socket = &claimants->sockets.sockets[i];

		key.host_port = socket->port;
		if (key.host_port >= mapping->key.host_port &&
		    key.host_port <= mapping->last_port && claimant_socket_has(socket, &key))
			return socket;
	}
	return NULL;
}

void check_listening_process(struct doctor *doctor)
{
	cleanup_claimants struct claimants claimants = {0};
	char text[ENDPOINT_TEXT_SIZE], who[HOLDER_TEXT_SIZE];
	struct subject subject;

	if (!find_claimants(doctor, &claimants, claimants_find_sockets))
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct host_socket *socket = socket_at(&claimants, &doctor->mappings.list[i]);

		if (!socket)
			continue;
		doctor_subject(doctor, i, &subject);
		claimant_holder(&claimants, socket, who);
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("# stop the process, or map another hostPort:\nss -lnp"
					" 'sport = :%u'",
					socket->port),
			     "%s: %s has %s on the host, and gets nothing from outside there",
			     subject.port, who,
			     format_endpoint(socket->address, socket->port, text));
	}
}

/* The first that maps one of its ports, which *port becomes; NULL: none. */
static const struct nat_rule *rule_at(const struct claimants *claimants,
				      const struct mapping *mapping, unsigned int *port)
{
	struct portmap_key key = mapping->key;

	for (*port = key.host_port; *port <= mapping->last_port; (*port)++) {
		key.host_port = (uint16_t)*port;
		for (size_t i = 0; i < claimants->rules.count; i++)
			if (claimant_rule_has(claimants, &claimants->rules.rules[i], &key))
				return &claimants->rules.rules[i];
	}
	return NULL;
}

void check_foreign_nat(struct doctor *doctor)
{
	cleanup_claimants struct claimants claimants = {0};
	struct subject subject;
	unsigned int port;

	if (!find_claimants(doctor, &claimants, claimants_find_rules))
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct nat_rule *rule = rule_at(&claimants, &doctor->mappings.list[i], &port);

		if (!rule)
			continue;
		doctor_subject(doctor, i, &subject);
		doctor_found(doctor, VERDICT_WARN,
			     cni_format("# stop the container that it belongs to, or delete"
					" the rule:\nnft -a list ruleset | grep -w -B20 '%u'",
					port),
			     "%s: a rule in chain %s maps it, too, and gets no packet%s%s%s",
			     subject.port, rule->chain_name, *rule->comment ? " (" : "",
			     rule->comment, *rule->comment ? ")" : "");
	}
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
static void read_ports(struct port_set *ports, const char *list)
{
	struct port_range range;

	while (*list) {
		if (port_range_parse(list, &range) && range.first <= range.last)
			port_set_add(ports, range);
		list += strcspn(list, ",");
		list += *list == ',';
	}
}

static char *write_ports(const struct port_set *ports)
{
	struct port_range range = port_set_next(ports, 1);
	const char *separator = "";
	char *list = NULL;
	size_t size;
	FILE *stream = or_exit(open_memstream(&list, &size));

	for (; range.last; range = port_set_next(ports, range.last + 1U)) {
		fprintf(stream, "%s%u", separator, range.first);
		if (range.last > range.first)
			fprintf(stream, "-%u", range.last);
		separator = ",";
	}
	or_exit(fclose(stream) ? NULL : list);
	return list;
}

/* Each remedy has the ports of those before it, so that whichever is pasted last keeps them. */
void check_ephemeral(struct doctor *doctor)
{
	struct port_set reserved = {0};
	char range[32], list[4096];
	unsigned int first = 0, last = 0;
	struct subject subject;

	text_file_read("/proc/sys/net/ipv4/ip_local_port_range", range, sizeof(range));
	text_file_read("/proc/sys/net/ipv4/ip_local_reserved_ports", list, sizeof(list));
	read_ports(&reserved, list);
	if (sscanf(range, "%u %u", &first, &last) != 2)
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct mapping *mapping = &doctor->mappings.list[i];
		const struct port_range ports = {mapping->key.host_port, mapping->last_port};
		struct port_range found = port_set_next(&reserved, ports.first);
		cleanup_free char *wanted = NULL;

		if (ports.last < first || ports.first > last ||
		    (found.first == ports.first && found.last >= ports.last))
			continue;
		doctor_subject(doctor, i, &subject);
		port_set_add(&reserved, ports);
		wanted = write_ports(&reserved);
		/* A list that did not fit would lose its end by the remedy. */
		doctor_found(doctor, VERDICT_WARN,
			     strchr(list, '\n')
				     ? cni_format("sysctl -w net.ipv4.ip_local_reserved_ports=%s",
						  wanted)
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

	if (policy_read(&doctor->host.datapath.objects, subject->mapping->portmap.owner, &policy) &&
	    conf_ranges_hold(policy.excluded, policy.excluded_count, address))
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

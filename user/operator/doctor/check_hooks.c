/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_hooks.c - checks of programs at interfaces and sockets. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "datapath/attach/cgroup_root.h"
#include "datapath/attach/socket_hooks.h"
#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/doctor/doctor.h"
#include "operator/doctor/remedy_word.h"
#include "plan/hooks.h"
#include "plan/uplinks.h"

#define NAMES_MOST 4

static void check_programs(struct doctor *doctor, bool of_containers)
{
	for (size_t i = 0; i < doctor->plan.count; i++) {
		const struct change *change = &doctor->plan.changes[i];

		if (change->is_damage && interface_is_containers(&change->entry) == of_containers)
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
				     "%s: %s", change->at.name, change->missing);
	}
}

void check_uplinks(struct doctor *doctor)
{
	check_programs(doctor, false);
}

void check_container_hooks(struct doctor *doctor)
{
	check_programs(doctor, true);
}

void check_unknown_interfaces(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->look.found.count; i++) {
		const struct interface_look *interface = &doctor->look.found.interfaces[i];
		char why_not[WHY_NOT_SIZE] = "";

		if (interface->is_known || interface->is_gone || !interface->addressed ||
		    !interface->addressed->is_reachable)
			continue;
		uplink_is_possible(interface, why_not);
		if (!*why_not)
			doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
				     "%s has an address, and came after the last container: ports"
				     " are not reached by it",
				     interface->link.name);
	}
}

static const struct hook_changes unchanged;

static void report_ahead(struct doctor *doctor, const struct interface_look *interface,
			 enum hook hook)
{
	enum program_number ours = program_at(&interface->entry, hook);
	const struct hung *ahead = others_ahead(
		&interface->hooks, hook, plan_mechanism(&unchanged, &interface->hooks, hook));
	const char *name = interface->link.name;

	if (ours == PROGRAM_COUNT || !ahead)
		return;
	doctor_found(doctor, VERDICT_WARN,
		     cni_format("# if it ends the chain, load it after ours, or set"
				" \"attach\": \"tcx\"; it is in:\n"
				"tc filter show dev %s %s; bpftool net show dev %s",
				remedy_word(name).text, hook_name(hook), remedy_word(name).text),
		     "%s: %s runs before %s at %s: what it does not pass on does not"
		     " reach mapped ports",
		     name, ahead->name, program_name(ours), hook_name(hook));
}

void check_foreign_ahead(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->look.found.count; i++)
		for (int hook = 0; hook < HOOK_COUNT; hook++)
			report_ahead(doctor, &doctor->look.found.interfaces[i], (enum hook)hook);
}

void check_foreign_behind(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->look.found.count; i++) {
		const struct interface_look *interface = &doctor->look.found.interfaces[i];
		const char *name = interface->link.name;

		if (interface->entry.role == ROLE_UPLINK && !interface->is_gone &&
		    others_behind(&interface->hooks,
				  plan_mechanism(&unchanged, &interface->hooks, HOOK_INGRESS)))
			doctor_found(doctor, VERDICT_WARN,
				     cni_format("tc filter show dev %s ingress; bpftool net show"
						" dev %s",
						remedy_word(name).text, remedy_word(name).text),
				     "%s: a tc program of others follows ours, so that no flow"
				     " skips the IP stack",
				     name);
	}
}

static void check_port_of_bridge(struct doctor *doctor, const struct interface_look *port)
{
	const struct interface_look *bridge = doctor_interface(doctor, port->entry.bridge_ifindex);

	if (port->link.master && port->link.master != port->entry.bridge_ifindex) {
		doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
			     "%s is in another bridge than it was added to", port->link.name);
		return;
	}
	if (!bridge || bridge->is_gone)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# add the container again: its bridge is made by ADD"),
			     "the bridge that %s was a port of is gone", port->link.name);
	else if (memcmp(port->entry.bridge_mac, bridge->link.mac, LINK_MAC_SIZE) != 0)
		doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
			     "%s has another MAC than when %s was added", bridge->link.name,
			     port->link.name);
}

void check_bridge(struct doctor *doctor)
{
	const struct look *look = &doctor->look.found;

	for (size_t i = 0; i < look->count; i++)
		if (interface_has_role(&look->interfaces[i], ROLE_PORT))
			check_port_of_bridge(doctor, &look->interfaces[i]);
}

/* One line for each bridge. */
static void look_at_ports(struct doctor *doctor, const struct interface_look *bridge)
{
	const struct dirent *entry;
	char path[64], names[128] = "";
	size_t count = 0, length = 0;
	DIR *ports;

	snprintf(path, sizeof(path), "/sys/class/net/%s/brif", bridge->link.name);
	ports = opendir(path);
	while (ports && (entry = readdir(ports))) {
		const char *name = entry->d_name;

		if (*name == '.' || doctor_interface(doctor, if_nametoindex(name)))
			continue;
		if (count++ < NAMES_MOST)
			length += (size_t)snprintf(names + length, sizeof(names) - length,
						   "%s%.15s", length ? ", " : "", name);
	}
	if (ports)
		closedir(ports);
	if (count)
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "%zu of the ports of %s have no program of bpf-portmap (%s%s): what"
			     " they belong to was added without it, and its source addresses are"
			     " not verified",
			     count, bridge->link.name, names, count > NAMES_MOST ? " ..." : "");
}

void check_bridge_ports(struct doctor *doctor)
{
	const struct look *look = &doctor->look.found;

	for (size_t i = 0; i < look->count; i++)
		if (interface_has_role(&look->interfaces[i], ROLE_BRIDGE))
			look_at_ports(doctor, &look->interfaces[i]);
}

void check_socket_hooks(struct doctor *doctor)
{
	bool needed[SOCKET_PURPOSES] = {false};

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		needed[SOCKETS_REACH_PORTS] |= doctor->mappings.list[i].portmap.localhost;
		needed[SOCKETS_LEAVE_PORTS] |= doctor->mappings.list[i].portmap.reserved_on_host;
	}
	for (int purpose = 0; purpose < SOCKET_PURPOSES; purpose++) {
		cleanup_error struct cni_error err = {0};

		/* Without cgroup2 they cannot be there, which check_cgroup() says. */
		if (needed[purpose] && socket_hooks_verify(&doctor->host.datapath, purpose, &err))
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"), "%s",
				     cni_error_message(&err));
	}
}

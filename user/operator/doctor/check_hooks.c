/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_hooks.c - checks of programs at interfaces and sockets. */
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

/* What came or changed since then, and is not damaged. */
void check_settled(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->plan.count; i++) {
		const struct change *change = &doctor->plan.changes[i];

		if (change->kind == CHANGE_INTERFACE && !change->is_damage && *change->at.name)
			doctor_found(doctor, VERDICT_WARN, cni_format("bpf-portmap repair"),
				     "%s came, or has changed, since the last ADD or repair, which"
				     " would now have it: %s",
				     change->at.name,
				     *change->what ? change->what : "recorded anew");
	}
}

void check_foreign_behind(struct doctor *doctor)
{
	for (size_t i = 0; i < doctor->look.found.count; i++) {
		const struct interface_look *interface = &doctor->look.found.interfaces[i];
		const char *name = interface->link.name;

		if (interface_has_role(interface, ROLE_UPLINK) &&
		    interface->entry.without_fast_path)
			doctor_found(doctor, VERDICT_WARN,
				     cni_format("tc filter show dev %s ingress; bpftool net show"
						" dev %s",
						remedy_word(name).text, remedy_word(name).text),
				     "%s: a tc program of others follows ours, so that no flow"
				     " skips the IP stack",
				     name);
	}
}

static void check_bridge_of(struct doctor *doctor, const struct interface_look *port)
{
	const struct interface_look *bridge = doctor_interface(doctor, port->entry.bridge_ifindex);

	if ((!bridge || bridge->is_gone) && !port->link.master)
		doctor_found(doctor, VERDICT_FAIL,
			     cni_format("# add the container again: its bridge is made by ADD"),
			     "the bridge that %s was a port of is gone", port->link.name);
}

void check_bridge(struct doctor *doctor)
{
	const struct look *look = &doctor->look.found;

	for (size_t i = 0; i < look->count; i++)
		if (interface_has_role(&look->interfaces[i], ROLE_PORT))
			check_bridge_of(doctor, &look->interfaces[i]);
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

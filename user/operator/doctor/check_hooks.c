/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_hooks.c - checks of programs at interfaces and sockets. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "datapath/attach/socket_hooks.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/doctor/probe.h"

static void check_programs(struct doctor *doctor, bool of_containers)
{
	for_each (change, doctor->plan.changes, doctor->plan.count)
		if (change->is_damage && interface_is_containers(&change->entry) == of_containers)
			doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
				     "%s: %s", change->at.name, change->missing);
}

void check_uplinks(struct doctor *doctor)
{
	check_programs(doctor, false);
}

void check_container_hooks(struct doctor *doctor)
{
	check_programs(doctor, true);
}

/* An interface that is down, or on which IPv6 is off, has lost addresses: nothing leaves with them,
 * and who comes by others is served. */
static bool only_loses_addresses(const struct doctor *doctor, const struct change *change)
{
	const struct interface_look *before = doctor_interface(doctor, change->at.ifindex);
	struct interface entry = change->entry;

	if (!before || change->hooks.count || change->hooks.shaper)
		return false;
	if (cni_address_is_any(entry.address4))
		memcpy(entry.address4, before->entry.address4, sizeof(entry.address4));
	if (cni_address_is_any(entry.address6))
		memcpy(entry.address6, before->entry.address6, sizeof(entry.address6));
	return !memcmp(&entry, &before->entry, sizeof(entry));
}

/* What has come or changed since then, and is not damaged. */
void check_settled(struct doctor *doctor)
{
	for_each (change, doctor->plan.changes, doctor->plan.count) {
		cleanup_free char *remedy = NULL, *place = NULL;

		if (change->kind != CHANGE_INTERFACE || change->is_damage || !*change->at.name ||
		    only_loses_addresses(doctor, change))
			continue;
		remedy = cni_format("bpf-portmap repair");
		place = cni_format("%s%s%s", change->at.name, *change->what ? ": " : "",
				   change->what);
		doctor_found_at(doctor, VERDICT_WARN, &remedy,
				"interfaces have come, or changed, since the last ADD or repair",
				place);
	}
}

/* The first program of others that comes after ours. All TCX programs run before all filters. */
static const struct hung *next_behind(const struct hook_look *hook, size_t *at)
{
	for (bool ours = *at; *at < hook->count;) {
		const struct hung *hung = &hook->list[(*at)++];

		if (ours && hung->program == PROGRAM_COUNT && hung->id)
			return hung;
		ours |= hung->program != PROGRAM_COUNT;
	}
	return NULL;
}

/* A packet from a mapped port, of which the probe, which ends at our program, sees no more. */
static bool drops_answer(const struct doctor *doctor, const struct link *uplink, uint32_t id)
{
	const struct mapping *mapping = &doctor->mappings.list[0];
	bool ipv4 = cni_address_is_ipv4(mapping->portmap.container_address);
	struct probe_packet packet = {.protocol = PROTOCOL_TCP,
				      .source_port = mapping->key.host_port,
				      .destination_port = probe_random_port()};
	uint8_t frame[FRAME_MAX];
	uint32_t length;

	memcpy(packet.source, probe_far_address(ipv4), CNI_ADDRESS_SIZE);
	memcpy(packet.destination, probe_far_address(ipv4), CNI_ADDRESS_SIZE);
	for (size_t i = 0; i < doctor->host.addresses.count; i++)
		if (doctor->host.addresses.interfaces[i].ifindex == uplink->ifindex)
			memcpy(packet.source,
			       ipv4 ? doctor->host.addresses.interfaces[i].address4
				    : doctor->host.addresses.interfaces[i].address6,
			       CNI_ADDRESS_SIZE);
	length = frame_make(frame, &packet, uplink->mac);
	return inject_tc_drops(id, frame, length);
}

static void check_behind_egress(struct doctor *doctor, const struct interface_look *interface)
{
	const struct hung *hung;
	size_t at = 0;

	while ((hung = next_behind(&interface->hooks.hooks[HOOK_EGRESS], &at)))
		if (doctor->mappings.count && drops_answer(doctor, &interface->link, hung->id))
			doctor_found(doctor, VERDICT_FAIL, NULL,
				     "at %s's egress %s drops what mapped ports answer, after"
				     " bpf-portmap's program",
				     interface->link.name, hung->name);
}

void check_foreign_behind(struct doctor *doctor)
{
	for_each (interface, doctor->look.found.interfaces, doctor->look.found.count) {
		const char *name = interface->link.name;

		if (interface_has_role(interface, ROLE_UPLINK))
			check_behind_egress(doctor, interface);
		if (interface_has_role(interface, ROLE_UPLINK) &&
		    interface->entry.without_fast_path)
			doctor_found(doctor, VERDICT_WARN, NULL,
				     "%s: a tc program of others follows ours, so that no flow"
				     " skips the IP stack",
				     name);
	}
}

void check_bridge(struct doctor *doctor)
{
	const struct look *look = &doctor->look.found;

	for_each (port, look->interfaces, look->count) {
		const struct interface_look *bridge =
			doctor_interface(doctor, port->entry.bridge_ifindex);

		if (interface_has_role(port, ROLE_PORT) && (!bridge || bridge->is_gone) &&
		    !port->link.master)
			doctor_found(
				doctor, VERDICT_FAIL,
				cni_format("# add the container again: its bridge is made by ADD"),
				"the bridge that %s was a port of is gone", port->link.name);
	}
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

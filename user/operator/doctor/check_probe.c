/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_probe.c - sends a packet to mapped ports as a client would: to which, as whom, and where it
 * comes in. */
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "lib/text.h"
#include "operator/kernel/route.h"
#include "operator/doctor/probe_cause.h"
#include "operator/print/format.h"

#define MOST_PROBES 32

struct probing {
	struct doctor *doctor;
	struct prober *prober;
	const struct subject *subject;
};

static bool routing_leads_to(struct doctor *doctor, const uint8_t *address, uint32_t ifindex)
{
	struct route route = route_to(doctor->host.socket, address);

	return route.exists && !route.is_local && route.ifindex == ifindex;
}

/* An address that the mapping's sourceRanges let in. *limited: they do not let in any; false then:
 * none of the family. */
static bool find_allowed(const struct probing *probing, uint8_t client[CNI_ADDRESS_SIZE],
			 bool *limited)
{
	struct policy policy;
	const struct policy *found = doctor_policy(probing->doctor, probing->subject, &policy);

	*limited = false;
	for (size_t i = 0; found && i < found->source_range_count && i < POLICY_RANGES; i++) {
		const struct address_range *range = &found->source_ranges[i];
		bool ipv4 = cni_address_is_ipv4(range->address);

		*limited |= !range->exception;
		if (range->exception || ipv4 != probing->subject->ipv4)
			continue;
		memcpy(client, range->address, CNI_ADDRESS_SIZE);
		client[CNI_ADDRESS_SIZE - 1] |= range->prefix_length < (ipv4 ? 32 : 128);
		return true;
	}
	return false;
}

/* Somebody who is there, so that the answer gets as far as the program that swallows it. */
static bool choose_client(const struct probing *probing, const struct link *uplink,
			  uint8_t client[CNI_ADDRESS_SIZE])
{
	struct doctor *doctor = probing->doctor;
	bool ipv4 = probing->subject->ipv4, limited;
	bool allowed = find_allowed(probing, client, &limited);

	if (limited)
		return allowed && routing_leads_to(doctor, client, uplink->ifindex);
	memcpy(client, probe_far_address(ipv4), CNI_ADDRESS_SIZE);
	if (routing_leads_to(doctor, client, uplink->ifindex))
		return true;
	return neighbour_first(doctor->host.socket, uplink->ifindex, ipv4, client) &&
	       routing_leads_to(doctor, client, uplink->ifindex);
}

/* Where it is mapped at any address: the uplink's own one. */
static bool choose_destination(const struct probing *probing, const struct known_interface *uplink,
			       uint8_t destination[CNI_ADDRESS_SIZE])
{
	static const uint8_t none[CNI_ADDRESS_SIZE];
	const uint8_t *mapped = probing->subject->mapping->key.host_address;
	const struct addressed_interface *addressed =
		address_list_find(&probing->doctor->host.addresses, uplink->ifindex);

	memcpy(destination, mapped, CNI_ADDRESS_SIZE);
	if (!cni_address_is_any(mapped))
		return true;
	if (!addressed || uplink->entry.addresses_excluded)
		return false;
	memcpy(destination, probing->subject->ipv4 ? addressed->address4 : addressed->address6,
	       CNI_ADDRESS_SIZE);
	return memcmp(destination, none, sizeof(none)) != 0;
}

static void send_probe(const struct probing *probing, const struct known_interface *uplink,
		       const uint8_t *client, const uint8_t *destination)
{
	struct doctor *doctor = probing->doctor;
	const struct subject *subject = probing->subject;
	struct probe_way way = {
		.entry = &uplink->link,
		.gateway = &uplink->link,
		.inside = namespaces_find(&doctor->namespaces, subject->veth->link.peer_netns_id),
		.packet = {.protocol = subject->mapping->key.protocol,
			   .destination_port = subject->mapping->key.host_port}};
	cleanup_error struct cni_error err = {0};
	struct probe_result result;

	way.packet.source_port = probe_random_port();
	memcpy(way.packet.source, client, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, destination, CNI_ADDRESS_SIZE);
	if (probe_send(probing->prober, &way, &result, &err))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s: %s", subject->port,
			     cni_error_message(&err));
	else
		probe_report(doctor, subject, &way, probing->prober, &result);
}

/* False: clients do not come that way, or it was told already what is wrong with it. */
static bool is_open(const struct probing *probing, const struct known_interface *uplink,
		    bool expected)
{
	struct doctor *doctor = probing->doctor;
	const char *name = uplink->link.name;

	if (uplink->link.flags & IFF_UP && uplink->link.flags & IFF_RUNNING) {
		if (probe_has_programs(uplink))
			return true;
		doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap attach"),
			     "bpf-portmap's programs are not at %s: no port is mapped there [%s]",
			     name, probing->subject->port);
	} else if (expected) {
		doctor_found(doctor, VERDICT_FAIL, NULL, "%s %s: no client comes in there [%s]",
			     name, uplink->link.flags & IFF_UP ? "has no carrier" : "is down",
			     probing->subject->port);
	}
	return false;
}

static void probe_by(const struct probing *probing, const struct known_interface *uplink)
{
	const char *usual = probing->doctor->default_uplink[probing->subject->ipv4];
	uint8_t client[CNI_ADDRESS_SIZE], destination[CNI_ADDRESS_SIZE];

	if (choose_destination(probing, uplink, destination) &&
	    is_open(probing, uplink, !strcmp(uplink->link.name, usual)) &&
	    choose_client(probing, &uplink->link, client))
		send_probe(probing, uplink, client, destination);
}

/* The client says which way it comes. */
static void probe_from(const struct probing *probing, const uint8_t *client)
{
	struct doctor *doctor = probing->doctor;
	struct route route = route_to(doctor->host.socket, client);
	const struct known_interface *uplink = doctor_interface(doctor, route.ifindex);
	uint8_t destination[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE] = "?";

	cni_address_format(client, text);
	if (!route.exists) {
		doctor_found(doctor, VERDICT_FAIL, cni_format("ip route get %s", text),
			     "no route back to %s: nothing that it is answered gets there [%s]",
			     text, probing->subject->port);
		return;
	}
	if (route.is_local || !uplink || !uplink->link.ifindex ||
	    uplink->entry.role != ROLE_UPLINK) {
		link_name(doctor->host.socket, route.ifindex, name);
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "no packet is sent as from %s, which is reached by %s, no uplink [%s]",
			     text, name, probing->subject->port);
		return;
	}
	if (is_open(probing, uplink, true) && choose_destination(probing, uplink, destination))
		send_probe(probing, uplink, client, destination);
}

/* The interface that has this address of the host; 0: none has, or each does. */
static uint32_t interface_of(const struct address_list *addresses, const uint8_t *address)
{
	for (size_t i = 0; i < addresses->address_count; i++)
		if (!memcmp(addresses->addresses[i].address, address, CNI_ADDRESS_SIZE))
			return addresses->interfaces[addresses->addresses[i].interface].ifindex;
	return 0;
}

static void probe_mapping(const struct probing *probing)
{
	struct doctor *doctor = probing->doctor;
	const struct range_option *from = &doctor->options->from;
	uint32_t only =
		interface_of(&doctor->host.addresses, probing->subject->mapping->key.host_address);

	if (from->is_set) {
		if (cni_address_is_ipv4(from->address) == probing->subject->ipv4)
			probe_from(probing, from->address);
		return;
	}
	for (size_t i = 0; i < doctor->interface_count; i++) {
		const struct known_interface *uplink = &doctor->interfaces[i];

		if (uplink->link.ifindex && uplink->entry.role == ROLE_UPLINK &&
		    (!only || only == uplink->ifindex))
			probe_by(probing, uplink);
	}
}

/* A range of ports is one: the first. */
static bool continues_range(const struct mappings *mappings, size_t i)
{
	const struct mapping *mapping = &mappings->list[i];

	while (i-- > 0 && mappings->list[i].key.host_port + 1 >= mapping->key.host_port)
		if (mappings->list[i].key.host_port + 1 == mapping->key.host_port &&
		    mappings->list[i].key.protocol == mapping->key.protocol &&
		    owner_is(mappings->list[i].portmap.owner, mapping->portmap.owner) &&
		    !memcmp(mappings->list[i].key.host_address, mapping->key.host_address,
			    CNI_ADDRESS_SIZE))
			return true;
	return false;
}

static bool is_probed(const struct doctor *doctor, size_t i)
{
	const struct mapping *mapping = &doctor->mappings.list[i];

	return (mapping->key.protocol == PROTOCOL_TCP ||
		(mapping->key.protocol == PROTOCOL_UDP && doctor->options->send)) &&
	       !cni_address_is_loopback(mapping->key.host_address) &&
	       !continues_range(&doctor->mappings, i);
}

static void probe_mappings(struct doctor *doctor, struct prober *prober)
{
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		const struct probing probing = {doctor, prober, &subject};

		if (is_probed(doctor, i) && doctor_subject(doctor, i, &subject))
			probe_mapping(&probing);
	}
}

static size_t count_probed(const struct doctor *doctor)
{
	size_t count = 0;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		count += is_probed(doctor, i);
	if (count <= MOST_PROBES)
		return count;
	fprintf(stderr,
		"bpf-portmap: %zu ports: none is probed; bpf-portmap doctor PORT sends a packet to"
		" one\n",
		count);
	return 0;
}

void check_probe(struct doctor *doctor)
{
	cleanup_prober struct prober prober;
	cleanup_error struct cni_error err = {0};
	size_t count = doctor->options->no_probe ? 0 : count_probed(doctor);

	prober_clear(&prober);
	if (!count)
		return;
	fprintf(stderr,
		"bpf-portmap: sends a packet to %zu mapped port%s as a client would, and swallows"
		" the answer (--no-probe: only looks)\n",
		count, count > 1 ? "s" : "");
	if (prober_open(&prober, &doctor->host.datapath, &err))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", cni_error_message(&err));
	else
		probe_mappings(doctor, &prober);
}

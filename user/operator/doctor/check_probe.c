/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_probe.c - sends a packet to mapped ports as a client would: to which, as whom, and where it
 * comes in; and as masqueraded containers would, to somebody far away. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "datapath/records/nat_ports.h"
#include "conf/option.h"
#include "datapath/load/maps.h"
#include "lib/cleanup.h"
#include "lib/text.h"
#include "operator/kernel/route.h"
#include "operator/doctor/probe.h"
#include "operator/print/format.h"

#define MOST_PROBES 32
#define MOST_NETWORKS 8
#define PORT_OF_SERVERS 443 /* which a firewall that lets little out lets out */

struct probing {
	struct doctor *doctor;
	const struct subject *subject;
	struct policy policy; /* no ranges where it cannot be read */
	size_t sent;
	bool has_destination; /* an uplink has an address at which the port is mapped */
	bool is_closed;       /* sourceRanges let nobody of this family in */
};

/* Whether answers to this address leave by the interface, to somebody who is there as far as the
 * kernel asks: a gateway, a neighbour who is known, or where it has no neighbours to ask for. */
static bool leads_there(const struct probing *probing, const uint8_t *address,
			const struct link *uplink, bool is_neighbour)
{
	struct route route = route_to(probing->doctor->host.socket, address);

	return route.exists && !route.is_local && route.ifindex == uplink->ifindex &&
	       (route.has_gateway || is_neighbour || uplink->flags & IFF_NOARP);
}

/* Somebody with the prefix to whom answers get as far as the program that swallows them: behind a
 * gateway it may be nobody. */
static bool choose_in(const struct probing *probing, const struct link *uplink,
		      const uint8_t *prefix, unsigned int length, uint8_t client[CNI_ADDRESS_SIZE])
{
	memcpy(client, prefix, CNI_ADDRESS_SIZE);
	client[CNI_ADDRESS_SIZE - 1] |= length < (cni_address_is_ipv4(prefix) ? 32 : 128);
	return leads_there(probing, client, uplink, false) ||
	       (neighbour_first(probing->doctor->host.socket, uplink->ifindex, prefix, length,
				client) &&
		leads_there(probing, client, uplink, true));
}

/* Where sourceRanges say who may come it is one of those. */
static bool choose_client(struct probing *probing, const struct link *uplink,
			  uint8_t client[CNI_ADDRESS_SIZE])
{
	bool ipv4 = probing->subject->ipv4, limited = false, closed = true;

	for (size_t i = 0; i < probing->policy.source_range_count; i++) {
		const struct address_range *range = &probing->policy.source_ranges[i];

		limited |= !range->exception;
		if (range->exception || cni_address_is_ipv4(range->address) != ipv4)
			continue;
		closed = false;
		if (choose_in(probing, uplink, range->address, range->prefix_length, client))
			return true;
	}
	probing->is_closed = limited && closed;
	if (limited)
		return false;
	return choose_in(probing, uplink, probe_far_address(ipv4), ipv4 ? 32 : 128, client) ||
	       choose_in(probing, uplink, ipv4 ? cni_address_any_ipv4 : cni_address_any_ipv6, 0,
			 client);
}

/* Another check tells of what the host's NAT takes. */
static bool is_left(const struct probing *probing, const uint8_t address[CNI_ADDRESS_SIZE])
{
	struct portmap_key key = probing->subject->mapping->key;

	memcpy(key.host_address, address, CNI_ADDRESS_SIZE);
	return nat_port_hooks(&probing->doctor->host.datapath.objects, &key) & NAT_FROM_OUTSIDE;
}

static bool is_mapped_at(const struct probing *probing, const struct local_address *address)
{
	const struct policy *policy = &probing->policy;

	return cni_address_is_ipv4(address->address) == probing->subject->ipv4 &&
	       host_maps_ports_at(&probing->doctor->host, address) &&
	       !conf_ranges_hold(policy->excluded, policy->excluded_count, address->address) &&
	       !is_left(probing, address->address);
}

/* Where it is mapped at any address: one of the uplink's own. */
static bool choose_destination(const struct probing *probing, const struct interface_look *uplink,
			       uint8_t destination[CNI_ADDRESS_SIZE])
{
	const struct address_list *list = &probing->doctor->host.addresses;
	const uint8_t *mapped = probing->subject->mapping->key.host_address;

	memcpy(destination, mapped, CNI_ADDRESS_SIZE);
	/* Of one that the host does not have another check tells. */
	if (!cni_address_is_any(mapped))
		return local_address_exists(probing->doctor->host.socket, mapped) &&
		       !is_left(probing, mapped);
	for (size_t i = 0; i < list->address_count; i++) {
		const struct local_address *address = &list->addresses[i];

		memcpy(destination, address->address, CNI_ADDRESS_SIZE);
		if (list->interfaces[address->interface].ifindex == uplink->link.ifindex &&
		    is_mapped_at(probing, address))
			return true;
	}
	return false;
}

static void send_probe(struct probing *probing, const struct interface_look *uplink,
		       const uint8_t *client, const uint8_t *destination)
{
	struct doctor *doctor = probing->doctor;
	const struct subject *subject = probing->subject;
	struct probe_way way = {.entry = &uplink->link,
				.packet = {.protocol = subject->mapping->key.protocol,
					   .source_port = probe_random_port(),
					   .destination_port = subject->mapping->key.host_port}};

	memcpy(way.packet.source, client, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, destination, CNI_ADDRESS_SIZE);
	probing->sent += probe(doctor, subject, &way);
}

/* False: clients do not come that way, or it was told already what is wrong with it. */
static bool is_open(const struct probing *probing, const struct interface_look *uplink,
		    bool expected)
{
	struct doctor *doctor = probing->doctor;
	const char *name = uplink->link.name;

	if (uplink->link.flags & IFF_UP && uplink->link.flags & IFF_RUNNING) {
		if (probe_has_programs(uplink))
			return true;
		doctor_found(doctor, VERDICT_FAIL, cni_format("bpf-portmap repair"),
			     "bpf-portmap's programs are not at %s: no port is mapped there [%s]",
			     name, probing->subject->port);
	} else if (expected) {
		doctor_found(doctor, VERDICT_FAIL, NULL, "%s %s: no client comes in there [%s]",
			     name, uplink->link.flags & IFF_UP ? "has no carrier" : "is down",
			     probing->subject->port);
	}
	return false;
}

static void probe_by(struct probing *probing, const struct interface_look *uplink)
{
	const char *usual = probing->doctor->default_uplink[probing->subject->ipv4];
	uint8_t client[CNI_ADDRESS_SIZE], destination[CNI_ADDRESS_SIZE];

	if (!choose_destination(probing, uplink, destination))
		return;
	probing->has_destination = true;
	if (is_open(probing, uplink, !strcmp(uplink->link.name, usual)) &&
	    choose_client(probing, &uplink->link, client))
		send_probe(probing, uplink, client, destination);
}

static bool is_refused(const struct probing *probing, const struct interface_look *uplink)
{
	uint8_t network = probing->subject->container->network;

	return network && uplink->entry.refusing >> network % NETWORK_NUMBERS & 1;
}

/* By a client whom the conflist of its network keeps out. */
static void tell_refused(const struct probing *probing, const char *client, const char *interface)
{
	const struct subject *subject = probing->subject;
	const struct host_look *look = &probing->doctor->look;
	const char *network = subject->container->name.network;
	cleanup_free char *names = NULL;

	for (size_t i = 0; i < look->network_count; i++)
		if (!strcmp(look->networks[i].key.name, network))
			for_each_name (name, look->networks[i].network.uplinks) {
				char *longer =
					cni_format("%s%s%s", names ?: "", names ? ", " : "", name);

				free(names);
				names = longer;
			}
	doctor_found(probing->doctor, VERDICT_FAIL, NULL,
		     "%s comes by %s: network %s maps its ports at %s only (\"uplinks\") [%s]",
		     client, interface, network, names ?: "its uplinks", subject->port);
}

/* The client says which way it comes. */
static void probe_from(struct probing *probing, const uint8_t *client)
{
	struct doctor *doctor = probing->doctor;
	struct route route = route_to(doctor->host.socket, client);
	const struct interface_look *uplink = doctor_interface(doctor, route.ifindex);
	uint8_t destination[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE] = "?";

	cni_address_format(client, text);
	if (!route.exists) {
		doctor_found(doctor, VERDICT_FAIL, cni_format("ip route get %s", text),
			     "no route back to %s: no answer gets there [%s]", text,
			     probing->subject->port);
		return;
	}
	if (route.is_local || !uplink || !interface_has_role(uplink, ROLE_UPLINK)) {
		link_name(route.ifindex, name);
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "no packet is sent as from %s, which is reached by %s, no uplink [%s]",
			     text, name, probing->subject->port);
		return;
	}
	if (is_refused(probing, uplink)) {
		tell_refused(probing, text, uplink->link.name);
		return;
	}
	if (!is_open(probing, uplink, true))
		return;
	if (choose_destination(probing, uplink, destination))
		send_probe(probing, uplink, client, destination);
	else
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "no packet is sent as from %s, which comes by %s: at no address of"
			     " that is the port mapped [%s]",
			     text, uplink->link.name, probing->subject->port);
}

/* The uplink that has this address of the host. NULL: none has, or each does; clients reach an
 * address of lo or a bridge by any. */
static const struct interface_look *uplink_of(const struct doctor *doctor, const uint8_t *address)
{
	const struct address_list *list = &doctor->host.addresses;
	const struct interface_look *interface;

	for (size_t i = 0; i < list->address_count; i++) {
		if (memcmp(list->addresses[i].address, address, CNI_ADDRESS_SIZE) != 0)
			continue;
		interface = doctor_interface(
			doctor, list->interfaces[list->addresses[i].interface].ifindex);
		if (interface && interface_has_role(interface, ROLE_UPLINK))
			return interface;
	}
	return NULL;
}

static void probe_mapping(struct probing *probing)
{
	struct doctor *doctor = probing->doctor;
	const struct range_option *from = &doctor->options->from;
	const struct interface_look *only =
		uplink_of(doctor, probing->subject->mapping->key.host_address);

	if (from->is_set) {
		if (cni_address_is_ipv4(from->address) == probing->subject->ipv4)
			probe_from(probing, from->address);
		return;
	}
	for (size_t i = 0; i < doctor->look.found.count; i++) {
		const struct interface_look *uplink = &doctor->look.found.interfaces[i];

		if (interface_has_role(uplink, ROLE_UPLINK) && (!only || only == uplink) &&
		    !is_refused(probing, uplink))
			probe_by(probing, uplink);
	}
}

/* NULL: a packet can be sent to it. */
static const char *why_not(const struct doctor *doctor, const struct mapping *mapping)
{
	if (cni_address_is_loopback(mapping->key.host_address))
		return "processes of this host alone reach it, by their sockets";
	if (mapping->key.protocol == PROTOCOL_UDP && !doctor->options->send)
		return "a datagram would reach the program, and is sent with --send alone";
	return mapping->key.protocol == PROTOCOL_TCP || mapping->key.protocol == PROTOCOL_UDP
		       ? NULL
		       : "what is sent is TCP or UDP";
}

static void note(struct doctor *doctor, const struct subject *subject, const char *why)
{
	doctor_found(doctor, VERDICT_NOTE, NULL,
		     "no packet is sent to %s: %s; whether the way is open and somebody listens is"
		     " looked up",
		     subject->port, why);
}

static const char *why_nothing(const struct probing *probing)
{
	if (!probing->has_destination)
		return "no uplink has an address at which it is mapped";
	return probing->is_closed ? "sourceRanges let no client of its family in"
				  : "no neighbour and no route is known by which a client could"
				    " come";
}

/* False: nothing can be sent, which is a finding. */
static bool begins(struct doctor *doctor)
{
	const char *obstacle = probe_begin(doctor);

	if (obstacle)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", obstacle);
	return !obstacle;
}

/* A range of ports is one: the first. */
static void probe_mappings(struct doctor *doctor)
{
	struct subject subject;

	for (size_t i = 0; i < doctor->mappings.count; i++) {
		struct probing probing = {.doctor = doctor, .subject = &subject};
		size_t before = doctor->finding_count;

		if (!doctor_subject(doctor, i, &subject) ||
		    why_not(doctor, &doctor->mappings.list[i]))
			continue;
		if (!policy_read(&doctor->host.datapath.objects, subject.mapping->portmap.owner,
				 &probing.policy))
			probing.policy = (struct policy){0};
		probe_mapping(&probing);
		doctor->was_probed[i] = probing.sent || doctor->finding_count > before;
		doctor_inside(doctor, &subject)->was_probed[subject.ipv4] |= doctor->was_probed[i];
		if (!doctor->was_probed[i] && doctor->options->port.port &&
		    !doctor->options->from.is_set)
			note(doctor, &subject, why_nothing(&probing));
	}
}

/* Where no port is asked about that is the usual thing. */
static void note_others(struct doctor *doctor)
{
	struct subject subject;
	const char *why;

	for (size_t i = 0; doctor->options->port.port && i < doctor->mappings.count; i++) {
		why = why_not(doctor, &doctor->mappings.list[i]);
		if (why && doctor_subject(doctor, i, &subject))
			note(doctor, &subject, why);
	}
}

static size_t count_probed(struct doctor *doctor)
{
	size_t count = 0;

	for (size_t i = 0; i < doctor->mappings.count; i++)
		count += !why_not(doctor, &doctor->mappings.list[i]);
	if (count <= MOST_PROBES)
		return count;
	doctor_found(doctor, VERDICT_NOTE, NULL,
		     "no packet is sent to %zu ports; bpf-portmap doctor PORT sends one to that",
		     count);
	return 0;
}

void check_probe(struct doctor *doctor)
{
	size_t count = doctor->options->no_probe ? 0 : count_probed(doctor);

	if (count) {
		fprintf(stderr,
			"bpf-portmap: sends a packet to %zu mapped port%s as a client would, and"
			" swallows the answer (--no-probe: only looks)\n",
			count, count > 1 ? "s" : "");
		if (begins(doctor))
			probe_mappings(doctor);
	}
	if (!doctor->options->no_probe)
		note_others(doctor);
}

/* --- out of containers --------------------------------------------------------------------- */

struct outwards {
	struct doctor *doctor;
	const char *asked[2][MOST_NETWORKS]; /* of IPv6, of IPv4 */
	size_t count[2];
};

/* One container of each network, and each family, speaks for the others. */
static bool is_new(struct outwards *outwards, const struct subject *subject)
{
	const char **asked = outwards->asked[subject->ipv4];
	size_t *count = &outwards->count[subject->ipv4];

	for (size_t i = 0; i < *count; i++)
		if (!strcmp(asked[i], subject->container->name.network))
			return false;
	if (*count == MOST_NETWORKS)
		return false;
	asked[(*count)++] = subject->container->name.network;
	return true;
}

/* To somebody far away, by an uplink whose program swallows it. */
static bool goes_out(const struct doctor *doctor, const uint8_t *far)
{
	struct route route = route_to(doctor->host.socket, far);
	const struct interface_look *uplink = doctor_interface(doctor, route.ifindex);

	return route.exists && !route.is_local && uplink &&
	       interface_has_role(uplink, ROLE_UPLINK) && uplink->link.flags & IFF_RUNNING &&
	       probe_has_programs(uplink);
}

static void send_outwards(struct outwards *outwards, const struct subject *subject,
			  const uint8_t *source)
{
	struct doctor *doctor = outwards->doctor;
	struct probe_way way = {.is_outwards = true,
				.entry = &subject->veth->link,
				.packet = {.protocol = PROTOCOL_TCP,
					   .source_port = probe_random_port(),
					   .destination_port = PORT_OF_SERVERS}};
	const struct link *sender = &doctor_inside(doctor, subject)->link;
	const uint8_t *far = probe_far_address(subject->ipv4);

	memcpy(way.packet.source, source, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, far, CNI_ADDRESS_SIZE);
	if (sender->ifindex && sender->flags & IFF_UP && goes_out(doctor, far) &&
	    is_new(outwards, subject) && begins(doctor))
		probe(doctor, subject, &way);
}

void check_outwards(struct doctor *doctor)
{
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_ENDPOINTS};
	struct outwards outwards = {.doctor = doctor};

	if (doctor->options->no_probe || doctor->options->port.port)
		return;
	while (map_next(&walk, NULL)) {
		const struct endpoint_key *address = walk.key;
		const struct endpoint *endpoint = walk.value;
		struct subject subject = {.container =
						  view_container(&doctor->view, endpoint->owner),
					  .ipv4 = cni_address_is_ipv4(address->address)};

		if (endpoint->masquerade && doctor_locate(doctor, &subject))
			send_outwards(&outwards, &subject, address->address);
	}
}

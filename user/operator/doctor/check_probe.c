/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_probe.c - sends a packet to mapped ports as a client would: to which, as whom, and where it
 * comes in. */
#include <linux/neighbour.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "datapath/load/maps.h"
#include "datapath/records/nat_ports.h"
#include "lib/cleanup.h"
#include "lib/clock.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/doctor/probe.h"
#include "operator/kernel/route.h"

#define PROBES_AT_LEAST 32
#define COUNT_DEFAULT 6    /* half of them small */
#define ALL_MS 400         /* until ports of containers that were probed already are left out */
#define CONTAINERS_MS 4000 /* ... and containers that were not */

struct probing {
	struct doctor *doctor;
	const struct subject *subject;
	struct policy policy; /* no ranges where it cannot be read */
	bool is_told;         /* something was said of it */
	bool is_known;        /* a packet was answered, or it was told what kept it from that */
	bool has_destination; /* an uplink has an address at which the port is mapped */
	bool is_closed;       /* sourceRanges let nobody of this family in */
};

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
	for_each (address, list->addresses, list->address_count) {
		memcpy(destination, address->address, CNI_ADDRESS_SIZE);
		if (list->interfaces[address->interface].ifindex == uplink->link.ifindex &&
		    is_mapped_at(probing, address))
			return true;
	}
	return false;
}

static void report(struct probing *probing, enum verdict verdict, struct probe_finding *finding)
{
	probing->doctor->sent += verdict != VERDICT_COULD_NOT_LOOK;
	probing->is_known |= verdict <= VERDICT_WARN || verdict == VERDICT_OK;
	probing->is_told |= verdict != VERDICT_OK;
	probing->doctor->code = finding->code;
	if (verdict != VERDICT_OK)
		doctor_found_at(probing->doctor, verdict, &finding->remedy, finding->cause,
				finding->place);
	probing->doctor->code = NULL;
}

static struct probe_way way_of(const struct probing *probing, const struct interface_look *uplink,
			       const struct candidate *client, const uint8_t *destination)
{
	const struct portmap_key *key = &probing->subject->mapping->key;
	struct probe_way way = {
		.entry = &uplink->link,
		.client = client->client,
		.packet = {.protocol = key->protocol, .destination_port = key->host_port}};

	memcpy(way.packet.source, client->address, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, destination, CNI_ADDRESS_SIZE);
	return way;
}

/* To the port that is asked about, unless it is one of many. */
static void send_more(struct probing *probing, struct probe_way *way)
{
	const struct options *options = probing->doctor->options;
	bool is_tcp = way->packet.protocol == PROTOCOL_TCP;

	if (options->port.port && (options->limit || is_tcp))
		series_probe(probing->doctor, probing->subject, way,
			     options->limit ? options->limit : COUNT_DEFAULT, options->limit);
}

static void send_probe(struct probing *probing, const struct interface_look *uplink,
		       const uint8_t *address, const uint8_t *destination)
{
	struct candidate client = {.client = CLIENT_NAMED};
	struct probe_finding finding = {0};
	struct probe_way way;
	enum verdict verdict;

	memcpy(client.address, address, CNI_ADDRESS_SIZE);
	way = way_of(probing, uplink, &client, destination);
	verdict = probe(probing->doctor, probing->subject, &way, &finding);
	report(probing, verdict, &finding);
	probe_finding_release(&finding);
	neighbours_ask(probing->doctor, &uplink->link, address, destination);
	if (verdict == VERDICT_OK || probing->doctor->options->limit)
		send_more(probing, &way);
}

/* One who gets through is enough: a firewall may know the others for what they are. Else the worst
 * is told. */
static void send_as_any(struct probing *probing, const struct interface_look *uplink,
			const struct candidates *clients, const uint8_t *destination)
{
	struct probe_finding worst = {0};
	enum verdict verdict = VERDICT_COUNT;

	for (size_t i = 0; i < clients->count && verdict != VERDICT_OK; i++) {
		struct probe_way way = way_of(probing, uplink, &clients->list[i], destination);
		struct probe_finding finding = {0};
		enum verdict now = probe(probing->doctor, probing->subject, &way, &finding);

		if (now == VERDICT_OK)
			send_more(probing, &way);
		if (now < verdict || now == VERDICT_OK) {
			probe_finding_release(&worst);
			worst = finding;
			verdict = now;
		} else {
			probe_finding_release(&finding);
		}
		if (!worst.is_firewall)
			break;
	}
	if (clients->count) {
		report(probing, verdict, &worst);
		neighbours_ask(probing->doctor, &uplink->link, clients->list[0].address,
			       destination);
	}
	probe_finding_release(&worst);
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
	/* The default route has gone with an uplink that is down. */
	bool was_usual = !*usual && !(uplink->link.flags & IFF_UP);
	struct candidates clients;
	uint8_t destination[CNI_ADDRESS_SIZE];

	if (!choose_destination(probing, uplink, destination))
		return;
	probing->has_destination = true;
	if (!is_open(probing, uplink, was_usual || !strcmp(uplink->link.name, usual)))
		return;
	probe_candidates(probing->doctor, probing->subject, &probing->policy, &uplink->link,
			 &clients);
	probing->is_closed = clients.closed;
	send_as_any(probing, uplink, &clients, destination);
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

	for (size_t i = 0; i < look->networks.count; i++)
		if (!strcmp(look->networks.list[i].key.name, network))
			for_each_name (name, look->networks.list[i].network.uplinks) {
				char *longer =
					cni_format("%s%s%s", names ?: "", names ? ", " : "", name);

				free(names);
				names = longer;
			}
	doctor_found(probing->doctor, VERDICT_FAIL, NULL,
		     "%s comes by %s: network %s maps its ports at %s only (\"uplinks\") [%s]",
		     client, interface, network, names ?: "its uplinks", subject->port);
}

/* A route for one address bans it, which is what somebody wanted. */
static void tell_no_route_back(const struct probing *probing, const uint8_t *client,
			       const char *words)
{
	struct doctor *doctor = probing->doctor;
	const struct link *gateway = &probing->subject->gateway->link;
	const struct forwarded answer = {
		.from = probing->subject->mapping->portmap.container_address,
		.to = client,
		.ifindex = gateway->ifindex,
		.interface = gateway->name};
	bool is_ban = false;
	cleanup_free char *route = route_refusing(doctor->host.socket, client, &is_ban);
	cleanup_free char *rule = route ? NULL : rule_of_forwarded(doctor->host.socket, &answer);
	char text[CNI_ADDRESS_TEXT_SIZE];

	doctor_found(doctor, is_ban && *words ? VERDICT_NOTE : VERDICT_FAIL, NULL,
		     "no route back to %s%s: no answer gets there%s%s%s [%s]",
		     cni_address_format(client, text), words,
		     route  ? " (ip route "
		     : rule ? " (ip rule "
			    : "",
		     route  ? route
		     : rule ? rule
			    : "",
		     route || rule ? ")" : "", probing->subject->port);
}

/* The client who was seen last is of no uplink where no route leads back to it. */
static void look_at_seen(const struct probing *probing)
{
	struct doctor *doctor = probing->doctor;
	const struct seen_peer *client =
		probe_seen_client(doctor, probing->subject, &probing->policy);

	if (client && !route_to(doctor->host.socket, client->address).exists)
		tell_no_route_back(probing, client->address, ", seen lately");
}

/* The uplink by which the client comes: routing says where answers leave, --in where it is known to
 * come in. NULL: nothing is sent, which is said. */
static const struct interface_look *uplink_towards(struct probing *probing, const uint8_t *client)
{
	struct doctor *doctor = probing->doctor;
	struct route route = route_to(doctor->host.socket, client);
	const struct interface_look *uplink = doctor_interface(doctor, route.ifindex);
	const struct interface_look *in = doctor->in;
	char text[CNI_ADDRESS_TEXT_SIZE], name[IF_NAMESIZE] = "?";

	cni_address_format(client, text);
	link_name(route.ifindex, name);
	if (!route.exists)
		tell_no_route_back(probing, client, "");
	else if (route.is_local || !uplink || !interface_has_role(uplink, ROLE_UPLINK))
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "no packet is sent as from %s, which is reached by %s, no uplink [%s]",
			     text, name, probing->subject->port);
	else if (in && in != uplink)
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "answers to %s leave by %s, not by %s where it comes in [%s]", text,
			     name, in->link.name, probing->subject->port);
	if (!route.exists || route.is_local || !uplink || !interface_has_role(uplink, ROLE_UPLINK))
		return NULL;
	return in ? in : uplink;
}

/* Tells of a route that leads away from where the client is. */
static void look_at_neighbours(const struct probing *probing, const struct interface_look *uplink,
			       const uint8_t *client)
{
	struct doctor *doctor = probing->doctor;
	char text[CNI_ADDRESS_TEXT_SIZE];

	for_each (other, doctor->look.found.interfaces, doctor->look.found.count) {
		struct neighbour neighbour;

		if (other == uplink || !interface_has_role(other, ROLE_UPLINK))
			continue;
		neighbour = neighbour_of(doctor->host.socket, other->link.ifindex, client);
		if (neighbour.exists && !(neighbour.state & (NUD_INCOMPLETE | NUD_FAILED)))
			doctor_found(doctor, VERDICT_WARN, NULL,
				     "%s is a neighbour at %s, and the route to it leads to %s:"
				     " answers leave there [%s]",
				     cni_address_format(client, text), other->link.name,
				     uplink->link.name, probing->subject->port);
	}
}

static void probe_from(struct probing *probing, const uint8_t *client)
{
	const struct interface_look *uplink = uplink_towards(probing, client);
	uint8_t destination[CNI_ADDRESS_SIZE];
	struct doctor *doctor = probing->doctor;
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (uplink && is_refused(probing, uplink)) {
		tell_refused(probing, cni_address_format(client, text), uplink->link.name);
		return;
	}
	if (!uplink || !is_open(probing, uplink, true))
		return;
	if (!doctor->in)
		look_at_neighbours(probing, uplink, client);
	if (choose_destination(probing, uplink, destination))
		send_probe(probing, uplink, client, destination);
	else
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "no packet is sent as from %s, which comes by %s: at no address of"
			     " that is the port mapped [%s]",
			     cni_address_format(client, text), uplink->link.name,
			     probing->subject->port);
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
	size_t before = doctor->finding_count;

	if (from->is_set) {
		if (cni_address_is_ipv4(from->address) == probing->subject->ipv4)
			probe_from(probing, from->address);
		return;
	}
	for_each (uplink, doctor->look.found.interfaces, doctor->look.found.count)
		if (interface_has_role(uplink, ROLE_UPLINK) && !is_refused(probing, uplink) &&
		    (doctor->in ? doctor->in == uplink : !only || only == uplink))
			probe_by(probing, uplink);
	if (doctor->finding_count == before)
		look_at_seen(probing);
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
		     "no packet is sent to %s: %s; its route and its socket are looked at instead",
		     subject->port, why);
}

/* A range of ports is one: the first. */
static void probe_one(struct doctor *doctor, size_t mapping)
{
	struct subject subject;
	struct probing probing = {.doctor = doctor, .subject = &subject};
	size_t before = doctor->finding_count, sent = doctor->sent;

	if (!doctor_subject(doctor, mapping, &subject))
		return;
	if (!policy_read(&doctor->host.datapath.objects, subject.mapping->portmap.owner,
			 &probing.policy))
		probing.policy = (struct policy){0};
	probe_mapping(&probing);
	doctor->ports_probed += doctor->sent > sent;
	doctor->was_probed[mapping] = probing.is_known;
	doctor_inside(doctor, &subject)->was_probed[subject.ipv4] |= probing.is_known;
	if (doctor->finding_count == before && !probing.is_told && !probing.is_known &&
	    doctor->options->port.port && !doctor->options->from.is_set)
		note(doctor, &subject,
		     !probing.has_destination ? "no uplink has an address at which it is mapped"
		     : probing.is_closed      ? "sourceRanges let no client of its family in"
					      : "no neighbour and no route is known by which a"
						" client could come");
}

/* Another port of the container has shown its way. */
static bool is_shown(struct doctor *doctor, size_t mapping)
{
	struct subject subject;

	return !doctor_subject(doctor, mapping, &subject) ||
	       doctor_inside(doctor, &subject)->was_probed[subject.ipv4];
}

/* A port of each container first, and as many of the others as there is time for. */
static void probe_mappings(struct doctor *doctor)
{
	int64_t begun = clock_ms();
	size_t probed = 0, left = 0;

	for (int round = 0; round < 2; round++)
		for (size_t i = 0; i < doctor->mappings.count; i++) {
			if (why_not(doctor, &doctor->mappings.list[i]) || doctor->was_tried[i] ||
			    (round == 0 && is_shown(doctor, i)))
				continue;
			if (probed >= PROBES_AT_LEAST &&
			    clock_ms() > begun + (round ? ALL_MS : CONTAINERS_MS)) {
				left += round;
				continue;
			}
			doctor->was_tried[i] = true;
			probe_one(doctor, i);
			probed++;
		}
	if (left)
		doctor_found(doctor, VERDICT_NOTE, NULL,
			     "a packet was sent to %zu ports, one of each container at least; %zu"
			     " were looked at alone",
			     probed, left);
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

void check_probe(struct doctor *doctor)
{
	const char *obstacle;
	size_t count = 0;

	doctor->has_looked = false;
	if (doctor->options->from_name || doctor->options->to.is_set)
		return;
	for (size_t i = 0; i < doctor->mappings.count; i++)
		count += !why_not(doctor, &doctor->mappings.list[i]);
	if (doctor->options->in && !doctor->in)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL,
			     "%s is no uplink that bpf-portmap's programs know: nothing is sent",
			     doctor->options->in);
	else if (count) {
		fprintf(stderr,
			"bpf-portmap: sends a packet to %zu mapped port%s, and swallows the "
			"answer\n",
			count, count > 1 ? "s" : "");
		obstacle = probe_begin(doctor);
		if (obstacle)
			doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", obstacle);
		else
			probe_mappings(doctor);
	}
	note_others(doctor);
	doctor->has_looked = doctor->sent;
}

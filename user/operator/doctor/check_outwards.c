/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_outwards.c - sends a packet as masqueraded containers would, to a server outside. */
#include <string.h>

#include "datapath/load/maps.h"
#include "operator/doctor/probe.h"
#include "operator/kernel/route.h"

#define MOST_NETWORKS 8
#define PORT_OF_SERVERS 443 /* which a firewall that lets little out lets out */

struct outwards {
	struct doctor *doctor;
	const char *asked[2][MOST_NETWORKS]; /* of IPv6, of IPv4 */
	size_t count[2], sent;
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

/* Returns the way to a server to which containers are connected. Where there is none, or `seen` is
 * false, the server is made up. */
static struct probe_way way_of(struct doctor *doctor, const struct subject *subject,
			       const uint8_t *source, bool seen)
{
	struct probe_way way = {
		.is_outwards = true,
		.client = CLIENT_INVENTED,
		.entry = &subject->veth->link,
		.packet = {.protocol = PROTOCOL_TCP, .destination_port = PORT_OF_SERVERS}};
	const struct seen_peer *server = &probe_seen(doctor)->server[subject->ipv4];

	memcpy(way.packet.source, source, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, probe_far_address(subject->ipv4), CNI_ADDRESS_SIZE);
	if (seen && server->last_seen) {
		way.client = CLIENT_SEEN;
		way.packet.destination_port = server->port;
		memcpy(way.packet.destination, server->address, CNI_ADDRESS_SIZE);
	}
	return way;
}

const char *outwards_why_not(const struct doctor *doctor, const struct link *sender,
			     const uint8_t *server)
{
	struct route route = route_to(doctor->host.socket, server);
	const struct interface_look *uplink = doctor_interface(doctor, route.ifindex);

	if (!sender->ifindex || !(sender->flags & IFF_UP))
		return "its own interface is not found, or is down";
	if (!route.exists)
		return "the host has no route to it";
	if (route.is_local)
		return "it is this host itself";
	if (!uplink || !interface_has_role(uplink, ROLE_UPLINK))
		return "the host's route to servers outside leads to no uplink";
	if (!(uplink->link.flags & IFF_RUNNING) || !probe_has_programs(uplink))
		return "the uplink has no carrier, or not our programs";
	return NULL;
}

static void send_outwards(struct outwards *outwards, const struct subject *subject,
			  const uint8_t *source)
{
	struct doctor *doctor = outwards->doctor;
	struct probe_finding finding = {0};
	struct probe_way way;
	enum verdict verdict;
	const char *why;

	if (!is_new(outwards, subject) || probe_begin(doctor))
		return;
	way = way_of(doctor, subject, source, true);
	why = outwards_why_not(doctor, &doctor_inside(doctor, subject)->link,
			       way.packet.destination);
	if (why) {
		doctor_found(doctor, VERDICT_NOTE, NULL, "no packet is sent out of %s by IPv%c: %s",
			     subject->container->text, subject->ipv4 ? '4' : '6', why);
		return;
	}
	verdict = probe(doctor, subject, &way, &finding);
	/* What a firewall has against that server says little of others. */
	if (finding.is_firewall && way.client == CLIENT_SEEN) {
		way = way_of(doctor, subject, source, false);
		if (!outwards_why_not(doctor, &doctor_inside(doctor, subject)->link,
				      way.packet.destination))
			verdict = probe(doctor, subject, &way, &finding);
	}
	outwards->sent += verdict != VERDICT_COULD_NOT_LOOK;
	if (verdict != VERDICT_OK)
		doctor_found_at(doctor, verdict, &finding.remedy, finding.cause, finding.place);
	probe_finding_release(&finding);
}

void check_outwards(struct doctor *doctor)
{
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_ENDPOINTS};
	struct outwards outwards = {.doctor = doctor};

	while (!doctor->options->port.port && !doctor->options->to.is_set &&
	       map_next(&walk, NULL)) {
		const struct endpoint_key *address = walk.key;
		const struct endpoint *endpoint = walk.value;
		struct subject subject = {.container =
						  view_container(&doctor->view, endpoint->owner),
					  .ipv4 = cni_address_is_ipv4(address->address)};

		if (endpoint->masquerade && doctor_locate(doctor, &subject))
			send_outwards(&outwards, &subject, address->address);
	}
	/* A host may have one family alone outside, but hardly none. */
	if (!outwards.sent && outwards.count[0] + outwards.count[1] &&
	    !route_to(doctor->host.socket, probe_far_address(true)).exists &&
	    !route_to(doctor->host.socket, probe_far_address(false)).exists)
		doctor_found(doctor, VERDICT_WARN, NULL,
			     "the host has no default route: masqueraded containers reach only what"
			     " it has routes to");
	doctor->has_looked = outwards.sent;
}

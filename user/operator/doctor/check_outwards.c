/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check_outwards.c - sends a packet as masqueraded containers would, to somebody far away. */
#include <stdio.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "operator/kernel/route.h"
#include "operator/doctor/probe.h"

#define MOST_NETWORKS 8
#define PORT_OF_SERVERS 443 /* which a firewall that lets little out lets out */

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
	const struct known_interface *uplink = doctor_interface(doctor, route.ifindex);

	return route.exists && !route.is_local && uplink && uplink->entry.role == ROLE_UPLINK &&
	       uplink->link.flags & IFF_RUNNING && probe_has_programs(uplink);
}

static void send_outwards(struct outwards *outwards, const struct subject *subject,
			  const uint8_t *source)
{
	struct doctor *doctor = outwards->doctor;
	struct probe_way way = {.is_outwards = true,
				.entry = &subject->veth->link,
				.sender = doctor_inside(doctor, subject),
				.gateway = &subject->gateway->link,
				.packet = {.protocol = PROTOCOL_TCP,
					   .source_port = probe_random_port(),
					   .destination_port = PORT_OF_SERVERS}};
	const uint8_t *far = probe_far_address(subject->ipv4);
	const char *why_not;

	memcpy(way.packet.source, source, CNI_ADDRESS_SIZE);
	memcpy(way.packet.destination, far, CNI_ADDRESS_SIZE);
	if (!way.sender->ifindex || !(way.sender->flags & IFF_UP) || !goes_out(doctor, far) ||
	    !is_new(outwards, subject))
		return;
	why_not = probe_begin(doctor);
	if (why_not)
		doctor_found(doctor, VERDICT_COULD_NOT_LOOK, NULL, "%s", why_not);
	else
		probe(doctor, subject, &way);
}

static enum walk take_endpoint(const void *key, const void *value, void *context,
			       struct cni_error *err)
{
	const struct endpoint_key *address = key;
	const struct endpoint *endpoint = value;
	struct outwards *outwards = context;
	struct doctor *doctor = outwards->doctor;
	struct subject subject = {.container = view_container(&doctor->view, endpoint->owner),
				  .ipv4 = cni_address_is_ipv4(address->address)};

	if (endpoint->masquerade && doctor_locate(doctor, &subject))
		send_outwards(outwards, &subject, address->address);
	return WALK_ON;
}

void check_outwards(struct doctor *doctor)
{
	struct outwards outwards = {.doctor = doctor};
	cleanup_error struct cni_error ignored = {0};

	if (doctor->options->no_probe || doctor->options->port.port)
		return;
	map_walk(&doctor->host.datapath.objects, MAP_ENDPOINTS, take_endpoint, &outwards, &ignored);
}

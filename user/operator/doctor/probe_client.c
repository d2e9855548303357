/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* probe_client.c - as whom a probe is sent. */
#include "operator/doctor/probe.h"

#include <stdlib.h>
#include <string.h>

#include "conf/addresses.h"
#include "datapath/load/maps.h"
#include "lib/memory.h"
#include "operator/kernel/route.h"

#define PORTS 65536
#define READ_MOST 200000 /* of the connections: somebody who is connected is soon met */

static struct seen_peer *peer_at(struct seen_peers *seen, const struct connection_key *key,
				 const struct connection *connection)
{
	bool ipv4 = cni_address_is_ipv4(key->outside), udp = key->protocol == PROTOCOL_UDP;

	/* Of TCP: with data. A probe sends none that is new, and an attacker may send SYNs as
	 * anybody. */
	if (!(connection->state & STATE_REPLIED) ||
	    (!udp && (key->protocol != PROTOCOL_TCP || !(connection->state & STATE_ASSURED) ||
		      !(connection->state & STATE_DATA))))
		return NULL;
	if (connection->begun_inside)
		return connection->kind == FLOW_MASQUERADE && !udp ? &seen->server[ipv4] : NULL;
	if (connection->kind != FLOW_MAPPING)
		return NULL;
	if (!seen->clients[ipv4][udp])
		seen->clients[ipv4][udp] = or_exit(calloc(PORTS, sizeof(struct seen_peer)));
	return &seen->clients[ipv4][udp][connection->external_port];
}

const struct seen_peers *probe_seen(struct doctor *doctor)
{
	struct seen_peers *seen = &doctor->prober->seen;
	cleanup_walk struct map_walk walk = {.objects = &doctor->host.datapath.objects,
					     .map = MAP_CONNECTIONS};
	cleanup_error struct cni_error ignored = {0};

	for (size_t i = 0; !doctor->prober->has_seen && i < READ_MOST && map_next(&walk, &ignored);
	     i++) {
		const struct connection *connection = walk.value;
		const struct connection_key *key = walk.key;
		struct seen_peer *peer = peer_at(seen, key, connection);

		if (!peer || connection->last_seen < peer->last_seen)
			continue;
		memcpy(peer->address, key->outside, CNI_ADDRESS_SIZE);
		peer->last_seen = connection->last_seen;
		peer->port = connection->peer_port;
	}
	doctor->prober->has_seen = true;
	return seen;
}

/* --- candidates ---------------------------------------------------------------------------- */

struct choosing {
	struct doctor *doctor;
	const struct link *uplink;
	struct candidate *list;
	size_t count;
};

/* Whether answers to this address leave by the interface, to somebody who is there as far as the
 * kernel asks: a gateway, a neighbour who is known, or where it has no neighbours to ask for. */
static bool leads_there(const struct choosing *choosing, const uint8_t *address, bool is_neighbour)
{
	struct route route = route_to(choosing->doctor->host.socket, address);
	const struct link *uplink = choosing->uplink;

	return route.exists && !route.is_local && route.ifindex == uplink->ifindex &&
	       (route.has_gateway || is_neighbour || uplink->flags & IFF_NOARP);
}

static void add(struct choosing *choosing, enum probe_client client, const uint8_t *address,
		bool is_neighbour)
{
	if (choosing->count == CANDIDATES_MOST || !leads_there(choosing, address, is_neighbour))
		return;
	for (size_t i = 0; i < choosing->count; i++)
		if (!memcmp(choosing->list[i].address, address, CNI_ADDRESS_SIZE))
			return;
	choosing->list[choosing->count].client = client;
	memcpy(choosing->list[choosing->count++].address, address, CNI_ADDRESS_SIZE);
}

/* Adds a neighbour with the prefix, and an address with it, which may be nobody's: behind a gateway
 * that makes no difference. */
static void add_in(struct choosing *choosing, const uint8_t *prefix, unsigned int length,
		   const uint8_t *far)
{
	uint8_t client[CNI_ADDRESS_SIZE];

	if (neighbour_first(choosing->doctor->host.socket, choosing->uplink->ifindex, prefix,
			    length, client))
		add(choosing, CLIENT_NEIGHBOUR, client, true);
	memcpy(client, far ? far : prefix, CNI_ADDRESS_SIZE);
	client[CNI_ADDRESS_SIZE - 1] |= length < (cni_address_is_ipv4(prefix) ? 32 : 128);
	add(choosing, CLIENT_INVENTED, client, false);
}

static bool is_limited(const struct policy *policy)
{
	for (size_t i = 0; i < policy->source_range_count; i++)
		if (!policy->source_ranges[i].exception)
			return true;
	return false;
}

const struct seen_peer *probe_seen_client(struct doctor *doctor, const struct subject *subject,
					  const struct policy *policy)
{
	const struct portmap_key *key = &subject->mapping->key;
	bool ipv4 = cni_address_is_ipv4(key->host_address), udp = key->protocol == PROTOCOL_UDP;
	const struct seen_peer *clients = probe_seen(doctor)->clients[ipv4][udp];
	const struct seen_peer *peer = clients ? &clients[key->host_port] : NULL;

	return peer && peer->last_seen &&
			       (!policy->source_range_count ||
				conf_ranges_hold(policy->source_ranges, policy->source_range_count,
						 peer->address))
		       ? peer
		       : NULL;
}

static void add_seen(struct choosing *choosing, const struct subject *subject,
		     const struct policy *policy)
{
	const struct seen_peer *peer = probe_seen_client(choosing->doctor, subject, policy);
	struct neighbour neighbour;

	if (!peer)
		return;
	neighbour = neighbour_of(choosing->doctor->host.socket, choosing->uplink->ifindex,
				 peer->address);
	add(choosing, CLIENT_SEEN, peer->address, neighbour.exists);
}

void probe_candidates(struct doctor *doctor, const struct subject *subject,
		      const struct policy *policy, const struct link *uplink,
		      struct candidates *found)
{
	struct choosing choosing = {.doctor = doctor, .uplink = uplink, .list = found->list};
	bool ipv4 = subject->ipv4, limited = is_limited(policy);

	add_seen(&choosing, subject, policy);
	if (!limited)
		add_in(&choosing, ipv4 ? cni_address_any_ipv4 : cni_address_any_ipv6, 0,
		       probe_far_address(ipv4));
	found->closed = limited;
	for_each (range, policy->source_ranges, policy->source_range_count) {
		if (range->exception || cni_address_is_ipv4(range->address) != ipv4)
			continue;
		found->closed = false;
		add_in(&choosing, range->address, range->prefix_length, NULL);
	}
	found->count = choosing.count;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* removal.c - removing from the maps what an owner has. */
#include "datapath/records/removal.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>

#include "datapath/records/claims.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"
#include "datapath/load/bpf_error.h"

/* More ports are found as fast by looking through all. */
#define MAX_LIKELY 256

struct removal {
	const struct objects *objects;
	struct owner owner;
	uint32_t left; /* stop after so many */
	int failure;   /* errno */
	struct portmap_key ports[PORT_BATCH];
	uint32_t port_count;
	struct udp_ports *udp_ports; /* of ports only */
};

static void delete_ports(struct removal *removal)
{
	int map = removal->objects->maps[MAP_PORTMAPS];
	uint32_t count = removal->port_count;

	/* A batch ends at a key that somebody else has deleted, so then each for itself. */
	if (count && bpf_map_delete_batch(map, removal->ports, &count, NULL))
		for (uint32_t i = 0; i < removal->port_count; i++)
			if (bpf_map_delete_elem(map, &removal->ports[i]) && errno != ENOENT)
				removal->failure = errno;
	removal->port_count = 0;
}

static bool remove_portmap(const void *key, const void *value, void *context)
{
	const struct portmap *portmap = value;
	struct removal *removal = context;

	if (!owner_is(portmap->owner, removal->owner))
		return true;
	udp_ports_add(removal->udp_ports, key);
	memcpy(&removal->ports[removal->port_count++], key, sizeof(removal->ports[0]));
	if (removal->port_count == PORT_BATCH)
		delete_ports(removal);
	return --removal->left > 0;
}

static bool remove_endpoint(const void *key, const void *value, void *context)
{
	const struct endpoint *endpoint = value;
	struct removal *removal = context;

	if (!owner_is(endpoint->owner, removal->owner))
		return true;
	if (bpf_map_delete_elem(removal->objects->maps[MAP_ENDPOINTS], key) && errno != ENOENT)
		removal->failure = errno;
	return --removal->left > 0;
}

static bool remove_likely_endpoints(struct removal *removal, const struct attachment_claims *likely)
{
	struct endpoint endpoint;

	for (size_t i = 0; likely && i < likely->endpoint_count; i++)
		if (endpoint_read(removal->objects, &likely->endpoints[i].key, &endpoint) &&
		    !remove_endpoint(&likely->endpoints[i].key, &endpoint, removal))
			break;
	return !removal->left;
}

/* Whether those are all. */
static bool remove_likely_ports(struct removal *removal, const struct attachment_claims *likely)
{
	struct portmap portmap;

	for (size_t i = 0; likely && i < likely->port_count && likely->port_count <= MAX_LIKELY;
	     i++)
		if (portmap_read(removal->objects, &likely->ports[i].key, &portmap) &&
		    !remove_portmap(&likely->ports[i].key, &portmap, removal))
			break;
	delete_ports(removal);
	return !removal->left;
}

static int remove_ports(const struct objects *objects, const struct attachment *record,
			struct removed *removed, struct cni_error *err)
{
	/* All that it claimed, if it claimed them all. */
	bool known = record->state == ATTACHMENT_READY;
	struct removal removal = {
		.objects = objects,
		.owner = record->owner,
		.udp_ports = &removed->udp_ports,
		.left = known ? record->host_ports : UINT32_MAX,
	};

	if (!removal.left)
		return 0;
	if (!remove_likely_ports(&removal, known ? removed->likely : NULL) &&
	    maps_walk(objects->maps[MAP_PORTMAPS], sizeof(struct portmap_key),
		      sizeof(struct portmap), remove_portmap, &removal))
		removal.failure = errno;
	delete_ports(&removal);
	if (removal.failure)
		return bpf_error_set(err, removal.failure, "cannot delete from the map portmaps");
	return 0;
}

static int remove_endpoints(const struct objects *objects, const struct attachment *record,
			    const struct removed *removed, struct cni_error *err)
{
	bool known = record->state == ATTACHMENT_READY && record->endpoints;
	struct removal removal = {
		.objects = objects,
		.owner = record->owner,
		.left = known ? record->endpoints : UINT32_MAX,
	};

	if (!remove_likely_endpoints(&removal, known ? removed->likely : NULL) &&
	    maps_walk(objects->maps[MAP_ENDPOINTS], sizeof(struct endpoint_key),
		      sizeof(struct endpoint), remove_endpoint, &removal))
		removal.failure = errno;
	if (removal.failure)
		return bpf_error_set(err, removal.failure, "cannot delete from the map endpoints");
	return 0;
}

/* The program stays on the veth and drops what the container still sends, until the
 * veth goes: nothing leaves un-NATed in between. */
static void remove_interface(const struct objects *objects, uint32_t ifindex, struct owner owner)
{
	struct interface interface;

	if (interface_read(objects, ifindex, &interface) && owner_is(interface.owner, owner))
		interface_delete(objects, ifindex);
}

int removal_run(const struct objects *objects, const struct attachment *record,
		struct removed *removed, struct cni_error *err)
{
	struct slot slot;

	if (owner_set_live(objects, record->owner, false, err) ||
	    remove_ports(objects, record, removed, err) ||
	    remove_endpoints(objects, record, removed, err) ||
	    policy_delete(objects, record->owner, err))
		return -1;
	remove_interface(objects, record->ifindex, record->owner);
	if (owner_read(objects, record->owner, &slot) && slot.ifindex != record->ifindex)
		remove_interface(objects, slot.ifindex, record->owner);
	return 0;
}

/* What takes milliseconds is not done under the lock. */
void removal_finish(const struct objects *objects, const struct removed *removed, int *lock)
{
	lock_release(lock);
	udp_clients_end(objects, &removed->udp_ports);
}

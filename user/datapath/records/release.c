/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* release.c - removing from the maps what an owner has. */
#include "datapath/records/release.h"

#include <bpf/bpf.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"
#include "datapath/records/warnings.h"

/* More ports than that are found as fast by walking through all. */
#define MAX_LIKELY 256

/* The search for an owner's ports, or for its endpoints. */
struct search {
	struct release *release;
	struct owner owner;
	uint32_t left; /* to be found */
	struct portmap_key ports[PORT_BATCH];
	uint32_t port_count; /* found, but not yet deleted */
};

static int delete_ports(struct search *search, struct cni_error *err)
{
	const struct objects *objects = search->release->objects;
	uint32_t found = search->port_count, deleted = found;

	search->port_count = 0;
	if (!found ||
	    !bpf_map_delete_batch(objects->maps[MAP_PORTMAPS], search->ports, &deleted, NULL))
		return 0;
	/* A batch ends at a key that is not there any more. */
	for (uint32_t i = 0; i < found; i++)
		if (map_delete(objects, MAP_PORTMAPS, &search->ports[i], err))
			return -1;
	return 0;
}

static enum walk release_port(const void *key, const void *value, void *context,
			      struct cni_error *err)
{
	const struct portmap *portmap = value;
	struct search *search = context;

	if (!owner_is(portmap->owner, search->owner))
		return WALK_ON;
	udp_ports_add(&search->release->udp_ports, key);
	memcpy(&search->ports[search->port_count++], key, sizeof(search->ports[0]));
	if (search->port_count == PORT_BATCH && delete_ports(search, err))
		return WALK_FAILED;
	return --search->left ? WALK_ON : WALK_ENOUGH;
}

static enum walk release_endpoint(const void *key, const void *value, void *context,
				  struct cni_error *err)
{
	const struct endpoint *endpoint = value;
	struct search *search = context;

	if (!owner_is(endpoint->owner, search->owner))
		return WALK_ON;
	if (map_delete(search->release->objects, MAP_ENDPOINTS, key, err))
		return WALK_FAILED;
	return --search->left ? WALK_ON : WALK_ENOUGH;
}

static enum walk release_likely_ports(struct search *search, struct cni_error *err)
{
	const struct attachment_claims *likely = search->release->likely;
	enum walk result = WALK_ON;
	struct portmap portmap;

	if (!likely || likely->port_count > MAX_LIKELY)
		return WALK_ON;
	for (size_t i = 0; i < likely->port_count && result == WALK_ON; i++)
		if (portmap_read(search->release->objects, &likely->ports[i].key, &portmap))
			result = release_port(&likely->ports[i].key, &portmap, search, err);
	/* A walk would count them again. */
	return delete_ports(search, err) ? WALK_FAILED : result;
}

static enum walk release_likely_endpoints(struct search *search, struct cni_error *err)
{
	const struct attachment_claims *likely = search->release->likely;
	enum walk result = WALK_ON;
	struct endpoint endpoint;

	for (size_t i = 0; likely && i < likely->endpoint_count && result == WALK_ON; i++)
		if (endpoint_read(search->release->objects, &likely->endpoints[i].key, &endpoint))
			result =
				release_endpoint(&likely->endpoints[i].key, &endpoint, search, err);
	return result;
}

static int release_ports(struct release *release, const struct attachment *record,
			 struct cni_error *err)
{
	bool claimed_all = record->state == ATTACHMENT_READY;
	struct search search = {
		.release = release,
		.owner = record->owner,
		.left = claimed_all ? record->host_ports : UINT32_MAX,
	};
	enum walk result = WALK_ON;

	if (!search.left)
		return 0;
	if (claimed_all)
		result = release_likely_ports(&search, err);
	if (result == WALK_ON &&
	    map_walk(release->objects, MAP_PORTMAPS, release_port, &search, err))
		result = WALK_FAILED;
	return result == WALK_FAILED ? -1 : delete_ports(&search, err);
}

static int release_endpoints(struct release *release, const struct attachment *record,
			     struct cni_error *err)
{
	bool claimed_all = record->state == ATTACHMENT_READY && record->endpoints;
	struct search search = {
		.release = release,
		.owner = record->owner,
		.left = claimed_all ? record->endpoints : UINT32_MAX,
	};
	enum walk result = claimed_all ? release_likely_endpoints(&search, err) : WALK_ON;

	if (result == WALK_ON)
		return map_walk(release->objects, MAP_ENDPOINTS, release_endpoint, &search, err);
	return result == WALK_FAILED ? -1 : 0;
}

/* The program stays at the veth and drops what the container still sends, until the veth goes:
 * nothing leaves without being translated in between. */
static void release_interface(const struct objects *objects, uint32_t ifindex, struct owner owner)
{
	struct interface interface;

	if (interface_read(objects, ifindex, &interface) && owner_is(interface.owner, owner))
		interface_delete(objects, ifindex);
}

int release_owned(struct release *release, const struct attachment *record, struct cni_error *err)
{
	const struct objects *objects = release->objects;
	struct slot slot;

	if (owner_set_live(objects, record->owner, false, err) ||
	    release_ports(release, record, err) || release_endpoints(release, record, err) ||
	    policy_delete(objects, record->owner, err))
		return -1;
	warnings_forget(objects, record);
	release_interface(objects, record->ifindex, record->owner);
	if (owner_read(objects, record->owner, &slot) && slot.ifindex != record->ifindex)
		release_interface(objects, slot.ifindex, record->owner);
	return 0;
}

void release_finish(const struct release *release, int *lock)
{
	lock_release(lock);
	udp_clients_end(release->objects, &release->udp_ports);
}

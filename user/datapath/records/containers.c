/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* containers.c - a container that is on several networks. */
#include "datapath/records/containers.h"

#include <errno.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/owners.h"

/* Reads the addresses that the container has by its other attachments. Returns how many. */
static int read_others(const struct objects *objects, uint64_t container, uint32_t own_slot,
		       struct container_homes *others, struct cni_error *err)
{
	struct container_homes found;
	struct slot slot;
	int count = 0;

	memset(others, 0, sizeof(*others));
	if (!map_read(objects, MAP_CONTAINERS, &container, &found))
		return errno == ENOENT ? 0 : map_refuse_read(MAP_CONTAINERS, err);
	for (int i = 0; i < MAX_HOMES; i++) {
		const struct home *home = &found.homes[i];

		if (home->slot && home->slot != own_slot && slot_read(objects, home->slot, &slot) &&
		    slot.live && slot.container == container)
			others->homes[count++] = *home;
	}
	return count;
}

static int note_several_networks(const struct objects *objects, struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	if (meta.several_networks)
		return 0;
	meta.several_networks = 1;
	return meta_write(objects, &meta, err);
}

int container_add_homes(const struct objects *objects, const struct attachment_claims *claims,
			const struct slot *slot, uint32_t number, struct cni_error *err)
{
	struct container_homes all;
	int count = read_others(objects, slot->container, number, &all, err);

	if (count < 0 || (count && note_several_networks(objects, err)))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count && count < MAX_HOMES; i++) {
		struct home *home = &all.homes[count++];

		memcpy(home->address, claims->endpoints[i].key.address, sizeof(home->address));
		home->slot = number;
		home->prefix_length = claims->endpoints[i].prefix_length;
	}
	return map_write(objects, MAP_CONTAINERS, &slot->container, &all, err);
}

struct leaving {
	const struct objects *objects;
	struct udp_ports *udp_ports; /* handed over */
	struct owner owner;
	uint64_t container;
};

/* The waiting entry goes last: what was killed in between is done again. */
static enum walk hand_over(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct leaving *leaving = context;
	const struct objects *objects = leaving->objects;
	const struct portmap *waiting = value;
	struct portmap_key port;
	struct portmap portmap;
	struct slot heir;

	memcpy(&port, key, sizeof(port));
	if (!port.waiter || owner_is(waiting->owner, leaving->owner) ||
	    !owner_read(objects, waiting->owner, &heir) || !heir.live ||
	    heir.container != leaving->container)
		return WALK_ON;
	port.waiter = 0;
	if (!portmap_read(objects, &port, &portmap))
		return WALK_ON;
	if (owner_is(portmap.owner, leaving->owner)) {
		if (map_write(objects, MAP_PORTMAPS, &port, waiting, err))
			return WALK_FAILED;
		udp_ports_add(leaving->udp_ports, &port);
	} else if (!owner_is(portmap.owner, waiting->owner)) {
		return WALK_ON;
	}
	return map_delete(objects, MAP_PORTMAPS, key, err) ? WALK_FAILED : WALK_ON;
}

int container_leave(const struct objects *objects, const struct slot *slot, struct owner owner,
		    struct udp_ports *udp_ports, struct cni_error *err)
{
	struct leaving leaving = {objects, udp_ports, owner, slot->container};
	struct container_homes others;
	int count = read_others(objects, slot->container, owner.slot, &others, err);

	if (count < 0)
		return -1;
	if (!count)
		return map_delete(objects, MAP_CONTAINERS, &slot->container, err);
	if (map_walk(objects, MAP_PORTMAPS, hand_over, &leaving, err))
		return -1;
	return map_write(objects, MAP_CONTAINERS, &slot->container, &others, err);
}

/* Who else has an address. */
struct heirs {
	const struct objects *objects;
	uint32_t leaving; /* a slot */
	const uint8_t *address;
	struct endpoint *endpoint; /* gets the last one as owner */
	size_t count;
};

static enum walk find_heir(const void *key, const void *value, void *context, struct cni_error *err)
{
	const struct container_homes *container = value;
	struct heirs *heirs = context;
	struct slot slot;

	for (int i = 0; i < MAX_HOMES; i++) {
		const struct home *home = &container->homes[i];

		if (!home->slot || home->slot == heirs->leaving ||
		    memcmp(home->address, heirs->address, sizeof(home->address)) ||
		    !slot_read(heirs->objects, home->slot, &slot) || !slot.live)
			continue;
		heirs->endpoint->owner = (struct owner){home->slot, slot.generation};
		heirs->endpoint->prefix_length = home->prefix_length;
		heirs->count++;
	}
	return WALK_ON;
}

int container_return_address(const struct objects *objects, const struct endpoint_key *key,
			     const struct endpoint *endpoint, struct cni_error *err)
{
	struct endpoint returned = *endpoint;
	struct heirs heirs = {
		.objects = objects,
		.leaving = endpoint->owner.slot,
		.address = key->address,
		.endpoint = &returned,
	};

	if (endpoint->shared && map_walk(objects, MAP_CONTAINERS, find_heir, &heirs, err))
		return -1;
	if (!heirs.count)
		return map_delete(objects, MAP_ENDPOINTS, key, err);
	returned.shared = heirs.count > 1;
	return endpoint_write(objects, key, &returned, err);
}

bool container_find_other(const struct objects *objects, const struct slot *slot, uint32_t number,
			  struct owner *other)
{
	struct container_homes found;
	struct slot home;

	if (!map_read(objects, MAP_CONTAINERS, &slot->container, &found))
		return false;
	for (int i = 0; i < MAX_HOMES; i++) {
		other->slot = found.homes[i].slot;
		if (!other->slot || other->slot == number ||
		    !slot_read(objects, other->slot, &home) || !home.live ||
		    home.ifindex != slot->ifindex)
			continue;
		other->generation = home.generation;
		return true;
	}
	return false;
}

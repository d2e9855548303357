/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stale_slots.c - what damaged records leave behind. */
#include "datapath/records/stale_slots.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"

static bool empty_stale_slot(const void *key, const void *value, void *context)
{
	uint32_t number = *(const uint32_t *)key;
	const struct slot *slot = value;
	const struct objects *objects = context;
	struct attachment record;

	if (number && slot->generation && !slot_read_record(objects, number, slot, &record))
		owner_free(objects, (struct owner){number, slot->generation});
	return true;
}

struct sweep {
	const struct objects *objects;
	enum map_number map;
	size_t owner_offset;
};

static bool sweep_entry(const void *key, const void *value, void *context)
{
	const struct sweep *sweep = context;
	struct owner owner;
	struct slot slot;

	memcpy(&owner, (const char *)value + sweep->owner_offset, sizeof(owner));
	if (owner.slot && !owner_read(sweep->objects, owner, &slot))
		bpf_map_delete_elem(sweep->objects->maps[sweep->map], key);
	return true;
}

int stale_slots_sweep(const struct objects *objects, struct cni_error *err)
{
	static const struct {
		enum map_number map;
		size_t key_size, value_size, owner_offset;
	} owned[] = {
		{MAP_PORTMAPS, sizeof(struct portmap_key), sizeof(struct portmap),
		 offsetof(struct portmap, owner)},
		{MAP_ENDPOINTS, sizeof(struct endpoint_key), sizeof(struct endpoint),
		 offsetof(struct endpoint, owner)},
		{MAP_POLICIES, sizeof(uint32_t), sizeof(struct policy),
		 offsetof(struct policy, owner)},
		{MAP_INTERFACES, sizeof(uint32_t), sizeof(struct interface),
		 offsetof(struct interface, owner)},
	};

	if (maps_walk(objects->maps[MAP_SLOTS], sizeof(uint32_t), sizeof(struct slot),
		      empty_stale_slot, (void *)objects))
		return bpf_error_set(err, errno, "cannot read the map slots");
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
		struct sweep sweep = {objects, owned[i].map, owned[i].owner_offset};

		if (maps_walk(objects->maps[owned[i].map], owned[i].key_size, owned[i].value_size,
			      sweep_entry, &sweep))
			return bpf_error_set(err, errno, "cannot read the map %s",
					     map_name(owned[i].map));
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stale_slots.c - what damaged records leave behind. */
#include "datapath/records/stale_slots.h"

#include <stddef.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/owners.h"

static enum walk empty_stale_slot(const void *key, const void *value, void *context,
				  struct cni_error *err)
{
	uint32_t number = *(const uint32_t *)key;
	const struct slot *slot = value;
	const struct objects *objects = context;
	struct attachment record;

	if (number && slot->generation && !slot_read_record(objects, number, slot, &record))
		owner_free(objects, (struct owner){number, slot->generation});
	return WALK_ON;
}

struct sweep {
	const struct objects *objects;
	enum map_number map;
	size_t owner_offset;
};

static enum walk sweep_entry(const void *key, const void *value, void *context,
			     struct cni_error *err)
{
	const struct sweep *sweep = context;
	struct owner owner;
	struct slot slot;

	memcpy(&owner, (const char *)value + sweep->owner_offset, sizeof(owner));
	if (!owner.slot || owner_read(sweep->objects, owner, &slot))
		return WALK_ON;
	return map_delete(sweep->objects, sweep->map, key, err) ? WALK_FAILED : WALK_ON;
}

int stale_slots_sweep(const struct objects *objects, struct cni_error *err)
{
	struct sweep sweeps[] = {
		{objects, MAP_PORTMAPS, offsetof(struct portmap, owner)},
		{objects, MAP_ENDPOINTS, offsetof(struct endpoint, owner)},
		{objects, MAP_POLICIES, offsetof(struct policy, owner)},
		{objects, MAP_INTERFACES, offsetof(struct interface, owner)},
	};

	if (map_walk(objects, MAP_SLOTS, empty_stale_slot, (void *)objects, err))
		return -1;
	for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++)
		if (map_walk(objects, sweeps[i].map, sweep_entry, &sweeps[i], err))
			return -1;
	return 0;
}

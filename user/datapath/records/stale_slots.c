/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stale_slots.c - what damaged records leave behind. */
#include "datapath/records/stale_slots.h"

#include <stddef.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/owners.h"

struct sweep {
	const struct objects *objects;
	enum map_number map;
	size_t owner_offset;
	size_t *count; /* NULL: remove them */
};

static enum walk visit_slot(const void *key, const void *value, void *context,
			    struct cni_error *err)
{
	uint32_t number = *(const uint32_t *)key;
	const struct sweep *sweep = context;
	const struct slot *slot = value;
	struct attachment record;

	if (!number || !slot->generation || slot_read_record(sweep->objects, number, slot, &record))
		return WALK_ON;
	if (sweep->count)
		++*sweep->count;
	else
		owner_free(sweep->objects, (struct owner){number, slot->generation});
	return WALK_ON;
}

static enum walk visit_entry(const void *key, const void *value, void *context,
			     struct cni_error *err)
{
	const struct sweep *sweep = context;
	struct attachment record;
	struct owner owner;
	struct slot slot;

	memcpy(&owner, (const char *)value + sweep->owner_offset, sizeof(owner));
	if (!owner.slot || (owner_read(sweep->objects, owner, &slot) &&
			    slot_read_record(sweep->objects, owner.slot, &slot, &record)))
		return WALK_ON;
	if (sweep->count) {
		++*sweep->count;
		return WALK_ON;
	}
	return map_delete(sweep->objects, sweep->map, key, err) ? WALK_FAILED : WALK_ON;
}

static int sweep_all(const struct objects *objects, size_t *count, struct cni_error *err)
{
	struct sweep sweeps[] = {
		{objects, MAP_PORTMAPS, offsetof(struct portmap, owner), count},
		{objects, MAP_ENDPOINTS, offsetof(struct endpoint, owner), count},
		{objects, MAP_POLICIES, offsetof(struct policy, owner), count},
		{objects, MAP_INTERFACES, offsetof(struct interface, owner), count},
	};

	if (map_walk(objects, MAP_SLOTS, visit_slot, &sweeps[0], err))
		return -1;
	for (size_t i = 0; i < sizeof(sweeps) / sizeof(sweeps[0]); i++)
		if (map_walk(objects, sweeps[i].map, visit_entry, &sweeps[i], err))
			return -1;
	return 0;
}

int stale_slots_sweep(const struct objects *objects, struct cni_error *err)
{
	return sweep_all(objects, NULL, err);
}

int stale_slots_count(const struct objects *objects, size_t *count, struct cni_error *err)
{
	*count = 0;
	return sweep_all(objects, count, err);
}

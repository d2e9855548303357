/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* replacements.c - ports that go from one container of a workload to the next. */
#include "datapath/records/replacements.h"

#include <string.h>

#include "datapath/records/attachments.h"

/* Returns whether both say the same, and are whole: neither cut off nor with a letter replaced. */
static bool is_same_name(const char *a, const char *b, size_t size)
{
	size_t length = strnlen(a, size);

	return length < size - 1 && !memchr(a, '?', length) && !strncmp(a, b, size);
}

bool workload_is_same(const struct workload *a, const struct workload *b)
{
	return a->kind != WORKLOAD_NONE && a->kind == b->kind && *a->name &&
	       is_same_name(a->namespace, b->namespace, WORKLOAD_NAMESPACE_SIZE) &&
	       is_same_name(a->name, b->name, WORKLOAD_NAME_SIZE);
}

bool workload_has_slot(const struct objects *objects, const struct workload *workload,
		       uint32_t number, const struct slot *slot)
{
	struct attachment record;

	return slot_read_record(objects, number, slot, &record) &&
	       workload_is_same(workload, &record.workload);
}

int replacement_take(const struct objects *objects, const struct portmap_key *key,
		     const struct portmap *portmap, struct owner *lost, struct cni_error *err)
{
	struct portmap_pair entry;
	struct slot slot;

	*lost = (struct owner){0};
	if (!portmap_pair_read(objects, key, &entry))
		return map_refuse_read(MAP_PORTMAPS, err);
	if (owner_is_live_with_veth(objects, entry.before.owner, &slot))
		*lost = entry.before.owner;
	entry.before = entry.now;
	entry.now = *portmap;
	return map_write(objects, MAP_PORTMAPS, key, &entry, err);
}

int replacements_give_back(const struct objects *objects, struct owner leaving,
			   struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};
	struct slot slot;

	while (map_next(&walk, err)) {
		const struct portmap_key *key = walk.key;
		struct portmap_pair entry = *(const struct portmap_pair *)walk.value;

		if (key->waiter || !owner_is(entry.now.owner, leaving) ||
		    !owner_is_live_with_veth(objects, entry.before.owner, &slot))
			continue;
		entry.now = entry.before;
		entry.before = (struct portmap){0};
		if (map_write(objects, MAP_PORTMAPS, key, &entry, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

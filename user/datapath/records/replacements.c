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

struct portmap *succession_find(struct portmap_succession *entry, struct owner owner)
{
	struct portmap *const all[] = {&entry->now, &entry->before, &entry->earlier};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (owner_is(all[i]->owner, owner))
			return all[i];
	return NULL;
}

void succession_remove(struct portmap_succession *entry, struct owner owner)
{
	const struct portmap *leaving = succession_find(entry, owner);

	if (leaving == &entry->now)
		entry->now = entry->before;
	if (leaving == &entry->now || leaving == &entry->before)
		entry->before = entry->earlier;
	if (leaving)
		entry->earlier = (struct portmap){0};
}

/* Of those that were replaced, only the living stay. */
static void forget_dead(const struct objects *objects, struct portmap_succession *entry)
{
	struct slot slot;

	if (!owner_is_live_with_veth(objects, entry->earlier.owner, &slot))
		entry->earlier = (struct portmap){0};
	if (!owner_is_live_with_veth(objects, entry->before.owner, &slot))
		succession_remove(entry, entry->before.owner);
}

int replacement_take(const struct objects *objects, const struct portmap_key *key,
		     const struct portmap *portmap, struct owner *lost, struct cni_error *err)
{
	struct portmap_succession entry;

	*lost = (struct owner){0};
	if (!portmap_succession_read(objects, key, &entry))
		return map_refuse_read(MAP_PORTMAPS, err);
	forget_dead(objects, &entry);
	*lost = entry.earlier.owner;
	entry.earlier = entry.before;
	entry.before = entry.now;
	entry.now = *portmap;
	return map_write(objects, MAP_PORTMAPS, key, &entry, err);
}

int replacements_give_back(const struct objects *objects, struct owner leaving,
			   struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};

	while (map_next(&walk, err)) {
		const struct portmap_key *key = walk.key;
		struct portmap_succession entry = *(const struct portmap_succession *)walk.value;

		if (key->waiter || !owner_is(entry.now.owner, leaving))
			continue;
		forget_dead(objects, &entry);
		/* Who has the port at any address has it here, too, without this entry. */
		if (!entry.before.owner.slot || entry.before.of_any_address)
			continue;
		succession_remove(&entry, leaving);
		if (map_write(objects, MAP_PORTMAPS, key, &entry, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

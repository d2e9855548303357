/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* stale_slots.c - what damaged records leave behind. */
#include "datapath/records/stale_slots.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/load/bpf_error.h"

struct search {
	const struct objects *objects;
	const struct attachment_key *key; /* NULL: whosever */
	struct attachment_entry *entries;
	size_t count, capacity;
	bool failed;
};

static void fill_entry(struct attachment_entry *entry, uint32_t number, const struct slot *slot)
{
	*entry = (struct attachment_entry){
		.attachment.owner = {number, slot->generation},
		.attachment.ifindex = slot->ifindex,
		.attachment.state = ATTACHMENT_ADDING,
	};
	slot_get_key(slot, &entry->key);
	memcpy(entry->attachment.host_mac, slot->host_mac, sizeof(slot->host_mac));
}

static bool append(struct search *search, uint32_t number, const struct slot *slot)
{
	if (search->count == search->capacity) {
		size_t capacity = search->capacity ? 2 * search->capacity : 4;
		void *entries = realloc(search->entries, capacity * sizeof(*search->entries));

		if (!entries) {
			search->failed = true;
			return false;
		}
		search->entries = entries;
		search->capacity = capacity;
	}
	fill_entry(&search->entries[search->count++], number, slot);
	return true;
}

static bool search_slot(const void *key, const void *value, void *context)
{
	uint32_t number = *(const uint32_t *)key;
	const struct slot *slot = value;
	struct search *search = context;
	struct attachment record;

	if (!number || !slot->generation ||
	    slot_read_record(search->objects, number, slot, &record))
		return true;
	return append(search, number, slot);
}

/* Where one has lost but its record, its veth leads to it. */
static bool search_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct search *search = context;
	struct slot slot;

	if (!owner_is_of(search->objects, interface->owner, search->key) ||
	    !owner_read(search->objects, interface->owner, &slot))
		return true;
	return search_slot(&interface->owner.slot, &slot, search);
}

static int run_search(struct search *search, struct cni_error *err)
{
	bool all = !search->key;
	enum map_number map = all ? MAP_SLOTS : MAP_INTERFACES;

	if (maps_walk(search->objects->maps[map], sizeof(uint32_t),
		      all ? sizeof(struct slot) : sizeof(struct interface),
		      all ? search_slot : search_interface, search))
		return refusal_set(err, errno, "cannot read the map %s", map_name(map));
	return search->failed ? cni_error_no_memory(err) : 0;
}

int orphans_list(const struct objects *objects, struct attachment_entry **entries, size_t *count,
		 struct cni_error *err)
{
	struct search search = {.objects = objects};
	int result = run_search(&search, err);

	*entries = search.entries;
	*count = search.count;
	return result;
}

int orphans_find(const struct objects *objects, const struct attachment_key *key, bool *found,
		 struct cni_error *err)
{
	struct search search = {.objects = objects, .key = key};
	int result = run_search(&search, err);

	*found = search.count > 0;
	free(search.entries);
	return result;
}

static int remove_entry(const struct objects *objects, const struct attachment_entry *entry,
			struct removed *removed, struct cni_error *err)
{
	if (removal_run(objects, &entry->attachment, removed, err))
		return -1;
	owner_free(objects, entry->attachment.owner);
	return 0;
}

int orphans_remove(const struct objects *objects, const struct attachment_key *key,
		   struct removed *removed, struct cni_error *err)
{
	struct search search = {.objects = objects, .key = key};
	int result = run_search(&search, err);

	for (size_t i = 0; !result && i < search.count; i++)
		result = remove_entry(objects, &search.entries[i], removed, err);
	free(search.entries);
	return result;
}

int orphan_remove(const struct objects *objects, struct owner owner, struct removed *removed,
		  struct cni_error *err)
{
	struct attachment_entry entry;
	struct attachment record;
	struct slot slot;

	if (!owner_read(objects, owner, &slot) ||
	    slot_read_record(objects, owner.slot, &slot, &record))
		return 0;
	fill_entry(&entry, owner.slot, &slot);
	return remove_entry(objects, &entry, removed, err);
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

int orphans_sweep(const struct objects *objects, struct cni_error *err)
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
	cleanup_lock int lock = lock_take(err);

	if (lock < 0)
		return -1;
	for (size_t i = 0; i < sizeof(owned) / sizeof(owned[0]); i++) {
		struct sweep sweep = {objects, owned[i].map, owned[i].owner_offset};

		if (maps_walk(objects->maps[owned[i].map], owned[i].key_size, owned[i].value_size,
			      sweep_entry, &sweep))
			return refusal_set(err, errno, "cannot read the map %s",
					   map_name(owned[i].map));
	}
	return 0;
}

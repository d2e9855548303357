/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments_remove.c - removing an attachment, whole or damaged. */
#include <bpf/bpf.h>
#include <errno.h>

#include "datapath/records/attachments.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/stale_slots.h"
#include "datapath/records/owners.h"
#include "datapath/load/bpf_error.h"
#include "datapath/records/removal.h"

/* What a damaged record points to may be another's. */
static bool is_anothers(const struct objects *objects, const struct attachment_key *key,
			struct owner owner)
{
	struct attachment other;
	struct slot slot;

	return !owner.slot ||
	       (owner_read(objects, owner, &slot) && !owner_is_of(objects, owner, key) &&
		slot_read_record(objects, owner.slot, &slot, &other));
}

static int delete_record(const struct objects *objects, const struct attachment_key *key,
			 struct cni_error *err)
{
	if (bpf_map_delete_elem(objects->maps[MAP_ATTACHMENTS], key) && errno != ENOENT)
		return refusal_set(err, errno, "cannot delete from the map attachments");
	return 0;
}

/* It and its slot contradict each other: whatever either says it owns goes. */
static int remove_damaged(const struct objects *objects, const struct attachment_key *key,
			  const struct attachment *record, struct removed *removed,
			  struct cni_error *err)
{
	struct owner owner = {.slot = record->owner.slot};
	struct slot slot;

	if ((!is_anothers(objects, key, record->owner) &&
	     removal_run(objects, record, removed, err)) ||
	    delete_record(objects, key, err))
		return -1;
	if (slot_read(objects, owner.slot, &slot)) {
		owner.generation = slot.generation;
		if (orphan_remove(objects, owner, removed, err))
			return -1;
	}
	return orphans_remove(objects, key, removed, err);
}

int removal_of_attachment(const struct objects *objects, const struct attachment_key *key,
			  struct removed *removed, struct cni_error *err)
{
	struct attachment record;

	removed->found = attachment_read(objects, key, &record);
	if (!removed->found)
		return 0;
	if (!owner_is_of(objects, record.owner, key))
		return remove_damaged(objects, key, &record, removed, err);
	if (removal_run(objects, &record, removed, err) || delete_record(objects, key, err))
		return -1;
	owner_free(objects, record.owner);
	return 0;
}

/* Only a look-up that finds nothing means that nothing is there. */
static int exists(const struct objects *objects, const struct attachment_key *key, bool *found,
		  struct cni_error *err)
{
	struct attachment record;

	*found = attachment_read(objects, key, &record);
	if (*found)
		return 0;
	if (errno != ENOENT)
		return refusal_set(err, errno, "cannot read the map attachments");
	return orphans_find(objects, key, found, err);
}

int attachment_remove(const struct datapath *datapath, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct removed removed = {.likely = likely};
	cleanup_lock int lock = -1;
	bool found;
	int result;

	if (exists(objects, key, &found, err))
		return -1;
	if (!found)
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	result = removal_of_attachment(objects, key, &removed, err);
	if (!result && !removed.found)
		result = orphans_remove(objects, key, &removed, err);
	removal_finish(datapath, &removed, &lock);
	return result;
}

int attachment_remove_stale(const struct datapath *datapath, const struct attachment_entry *entry,
			    struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_lock int lock = lock_take(err);
	struct removed removed = {0};
	struct attachment record;
	int result;

	if (lock < 0)
		return -1;
	if (attachment_read(objects, &entry->key, &record) &&
	    owner_is(record.owner, entry->attachment.owner))
		result = removal_of_attachment(objects, &entry->key, &removed, err);
	else
		result = orphan_remove(objects, entry->attachment.owner, &removed, err);
	removal_finish(datapath, &removed, &lock);
	return result;
}

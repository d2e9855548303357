/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_remove.c - removing an attachment, whole or damaged. */
#include <bpf/bpf.h>
#include <errno.h>

#include "datapath/records/attachment_remove.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/stale_slots.h"
#include "datapath/records/owners.h"
#include "datapath/load/bpf_error.h"
#include "datapath/records/removal.h"
#include "datapath/records/claims.h"

static int delete_record(const struct objects *objects, const struct attachment_key *key,
			 struct cni_error *err)
{
	if (bpf_map_delete_elem(objects->maps[MAP_ATTACHMENTS], key) && errno != ENOENT)
		return bpf_error_set(err, errno, "cannot delete from the map attachments");
	return 0;
}

int attachment_remove_locked(const struct objects *objects, const struct attachment_key *key,
			     struct removed *removed, struct cni_error *err)
{
	struct attachment record;

	if (!attachment_read(objects, key, &record))
		return 0;
	/* Record and slot contradict each other: what the record says may be another's. */
	if (!owner_is_of(objects, record.owner, key))
		return delete_record(objects, key, err) || stale_slots_sweep(objects, err) ? -1 : 0;
	if (removal_run(objects, &record, removed, err) || delete_record(objects, key, err))
		return -1;
	owner_free(objects, record.owner);
	return 0;
}

int attachment_remove(const struct datapath *datapath, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct removed removed = {.likely = likely};
	cleanup_lock int lock = -1;
	struct attachment record;
	int result;

	/* Only a look-up that finds nothing means that nothing is there. */
	if (!attachment_read(objects, key, &record))
		return errno == ENOENT
			       ? 0
			       : bpf_error_set(err, errno, "cannot read the map attachments");
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	result = attachment_remove_locked(objects, key, &removed, err);
	removal_finish(objects, &removed, &lock);
	return result;
}

int attachment_remove_stale(const struct datapath *datapath, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	cleanup_lock int lock = lock_take(err);
	struct removed removed = {0};
	struct attachment record;
	int result = 0;

	if (lock < 0)
		return -1;
	*was_there = attachment_read(objects, &entry->key, &record) &&
		     owner_is(record.owner, entry->attachment.owner);
	if (*was_there)
		result = attachment_remove_locked(objects, &entry->key, &removed, err);
	removal_finish(objects, &removed, &lock);
	return result;
}

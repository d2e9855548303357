/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_remove.c - removing an attachment, whole or damaged. */
#include "datapath/records/attachment_remove.h"

#include <errno.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/stale_slots.h"
#include "datapath/records/owners.h"

int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err)
{
	const struct objects *objects = release->objects;
	struct attachment record;

	if (!attachment_read(objects, key, &record))
		return 0;
	/* Record and slot contradict each other: what the record says may be another's. */
	if (!owner_is_of(objects, record.owner, key))
		return map_delete(objects, MAP_ATTACHMENTS, key, err) ||
				       stale_slots_sweep(objects, err)
			       ? -1
			       : 0;
	if (release_owned(release, &record, err) || map_delete(objects, MAP_ATTACHMENTS, key, err))
		return -1;
	owner_free(objects, record.owner);
	return 0;
}

int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	struct release release = {.objects = objects, .likely = likely};
	cleanup_lock int lock = -1;
	struct attachment record;
	int result;

	/* Only a look-up that finds nothing means that nothing is there. */
	if (!attachment_read(objects, key, &record))
		return errno == ENOENT ? 0 : map_refuse_read(MAP_ATTACHMENTS, err);
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	result = attachment_remove_locked(&release, key, err);
	release_finish(&release, &lock);
	return result;
}

int attachment_remove_stale(const struct objects *objects, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err)
{
	struct release release = {.objects = objects};
	cleanup_lock int lock = lock_take(err);
	struct attachment record;
	int result = 0;

	if (lock < 0)
		return -1;
	*was_there = attachment_read(objects, &entry->key, &record) &&
		     owner_is(record.owner, entry->attachment.owner);
	if (*was_there)
		result = attachment_remove_locked(&release, &entry->key, err);
	release_finish(&release, &lock);
	return result;
}

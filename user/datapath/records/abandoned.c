/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* abandoned.c - attachments whose veth is gone and for which DEL was not called. */
#include "datapath/records/abandoned.h"

#include <stdlib.h>

#include "lib/cleanup.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/attachment_name.h"
#include "datapath/records/describe.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "lib/warning.h"

bool attachment_is_abandoned(const struct objects *objects, struct nl_sock *socket,
			     const struct attachment_entry *entry)
{
	struct cni_error ignored = {0};
	cleanup_lock int lock = lock_take(&ignored);
	struct attachment_name name;
	struct slot slot;

	cni_error_release(&ignored);
	if (lock < 0)
		return false;
	return !attachment_has_veth(objects, socket, &entry->attachment) ||
	       (!attachment_name_split(entry->key.name, &name) &&
		!owner_read(objects, entry->attachment.owner, &slot));
}

/* Called before looking, because the programs note again what they meet from now on. */
static int forget_notice(const struct datapath *datapath, enum abandoned_which which, bool *noticed,
			 struct cni_error *err)
{
	cleanup_lock int lock = -1;
	struct meta meta;

	*noticed = which == ABANDONED_ALL;
	if (!meta_read(&datapath->objects, &meta) || !meta.owner_gone)
		return 0;
	*noticed = true;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	if (!meta_read(&datapath->objects, &meta))
		return 0;
	meta.owner_gone = 0;
	return meta_write(&datapath->objects, &meta, err);
}

/* Without the lock: a veth that is gone does not come back for the same owner. */
static int remove_if_abandoned(const struct datapath *datapath, struct nl_sock *socket,
			       const struct attachment_entry *entry, struct cni_error *err)
{
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool was_there;

	if (attachment_has_veth(&datapath->objects, socket, &entry->attachment))
		return 0;
	/* Before its record goes, which names the pod. */
	describe_attachment(&datapath->objects, entry->key.name, who);
	if (attachment_remove_stale(&datapath->objects, entry, &was_there, err))
		return -1;
	if (was_there)
		warning_passing(
			"removed what %s had left: its veth is gone, and DEL was not called", who);
	return 0;
}

static int remove_all(const struct datapath *datapath, struct nl_sock *socket,
		      enum abandoned_which which, struct cni_error *err)
{
	cleanup_free struct attachment_entry *entries = NULL;
	size_t count = 0;
	bool noticed;

	if (forget_notice(datapath, which, &noticed, err))
		return -1;
	if (noticed && attachment_list(datapath, &entries, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (remove_if_abandoned(datapath, socket, &entries[i], err))
			return -1;
	return 0;
}

void abandoned_remove(const struct datapath *datapath, struct nl_sock *socket,
		      enum abandoned_which which)
{
	struct cni_error failure = {0};

	if (!remove_all(datapath, socket, which, &failure))
		return;
	warning_passing("cannot remove what containers without a veth have left behind: %s",
			cni_error_message(&failure));
	cni_error_release(&failure);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stale_slots.h - what damaged records leave behind.
 *
 * An orphan is a slot in use that no record points to. Nothing that ADD and DEL do, killed
 * anywhere, leaves one that is live; somebody has changed the maps.
 */
#ifndef DATAPATH_RECORDS_STALE_SLOTS_H
#define DATAPATH_RECORDS_STALE_SLOTS_H

#include <stdbool.h>

#include "datapath/records/attachments.h"
#include "datapath/records/removal.h"

/* Whether there is an orphan of the attachment, for who has found no record of it. It is found
 * by its veth's entry in interfaces, as looking through all slots takes long. Code 102. */
int orphans_find(const struct objects *objects, const struct attachment_key *key, bool *found,
		 struct cni_error *err);

/* Removes what orphans_find() finds, and what that owns. Call it with the lock. Code 102. */
int orphans_remove(const struct objects *objects, const struct attachment_key *key,
		   struct removed *removed, struct cni_error *err);

/* Removes the owner if he is an orphan, and what he owns. Call it with the lock. Code 102. */
int orphan_remove(const struct objects *objects, struct owner owner, struct removed *removed,
		  struct cni_error *err);

/* All orphans, whosever, as if they had a record; *entries is malloc'ed. Code 102. */
int orphans_list(const struct objects *objects, struct attachment_entry **entries, size_t *count,
		 struct cni_error *err);

/* Removes from portmaps, endpoints, policies and interfaces what owners have that are no
 * more. Takes the lock. Codes 11, 102. */
int orphans_sweep(const struct objects *objects, struct cni_error *err);

#endif

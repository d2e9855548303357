/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_remove.h - removing an attachment, whole or damaged.
 */
#ifndef DATAPATH_RECORDS_ATTACHMENT_REMOVE_H
#define DATAPATH_RECORDS_ATTACHMENT_REMOVE_H

#include "datapath/records/attachment_list.h"
#include "datapath/records/release.h"

/* Removes all that it owns. One that is not there: 0, without the lock. `likely`: what it probably
 * owns (release.h), or NULL. CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err);

/* Removes all it owns. *was_there: false where it was deleted, or added again, since it was
 * listed, so that nothing is removed. CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove_stale(const struct objects *objects, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err);

/* Removes all that it has, if there is a record of it. Call it with the lock.
 * CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * warnings.h - what ADD has warned of, kept with the attachment: Podman and kubelet hide what a
 * plugin prints when it succeeds.
 *
 * Only an ADD that has warned opens the map, and only the DEL of such an attachment.
 */
#ifndef DATAPATH_RECORDS_WARNINGS_H
#define DATAPATH_RECORDS_WARNINGS_H

#include "datapath/load/objects.h"
#include "lib/error.h"

/* Keeps lines for an attachment that was added. As many whole lines as have room. A failure is a
 * warning. */
void warnings_keep(const struct objects *objects, const struct attachment_key *key,
		   const char *lines);

/* Deletes what was kept. Call it with the lock. */
void warnings_forget(const struct objects *objects, const struct attachment *record);

/* Does the same for an attachment that goes on, and takes the lock. *had_some: there was something.
 * CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int warnings_forget_living(const struct objects *objects, const struct attachment_key *key,
			   bool *had_some, struct cni_error *err);

/* Reads what was kept: printable lines, each ended by a line feed, malloc'ed. NULL:
 * nothing. */
char *warnings_read(const struct objects *objects, const struct attachment *record);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.h - one operation at a time: add, del and check of one attachment exclude each
 * other, gc of a network excludes them all.
 *
 * CNI leaves this to the runtime (specification 1.1.0, section 3).
 */
#ifndef CNIRUN_LOCK_H
#define CNIRUN_LOCK_H

#include "cni/error.h"

/* Begins as LOCK_NONE. */
struct lock {
	int network;
	int attachment;
	char *attachment_path;
};

#define LOCK_NONE \
	{ \
		.network = -1, .attachment = -1 \
	}

/* Both wait as long as it takes; a killed holder lets go. Files are in DIRECTORY/locks.
 * Code 5. */
int lock_attachment(struct lock *lock, const char *directory, const char *network,
		    const char *container_id, const char *ifname, struct cni_error *err);
int lock_network(struct lock *lock, const char *directory, const char *network,
		 struct cni_error *err);

void lock_release(struct lock *lock);

#define cleanup_lock __attribute__((cleanup(lock_release)))

#endif

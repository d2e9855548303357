/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.h - one writer at a time for each host, that is, for each network namespace.
 *
 * flock on the namespace's own file: the same across mount namespaces, and let go by
 * the kernel when its holder dies. Every process of the host can open that file, too. Files that
 * only root can open and that are one for each network namespace are those of sysfs, whose
 * super block goes with the namespace of whoever mounted it; to be sure of the right one takes a
 * mount of our own (fsmount), and to let go of that waits for RCU. To pass over holders who are
 * not root does not do either: who holds it by then may have been let in before.
 */
#ifndef DATAPATH_LOCK_H
#define DATAPATH_LOCK_H

#include <unistd.h>

#include "cni/error.h"

/* A file descriptor that holds the lock until it is closed, or -1 and code 11 naming
 * the holder when it was not to be had within ten seconds. */
int lock_take(struct cni_error *err);

/* The same for what hosts share: the lock of a directory. `what` names it in messages.
 * Whoever takes several takes the host's first. */
int lock_take_directory(const char *path, const char *what, struct cni_error *err);

static inline void lock_release(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

#define cleanup_lock __attribute__((cleanup(lock_release)))

#endif

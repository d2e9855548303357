/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.h - takes all that is in the kernel of this host away again.
 *
 * ADD, attach and CHECK attach programs without the lock, by what they opened before. So removal
 * first writes to meta that the set is removed, and only then looks for programs. It finds what was
 * attached before; a command that attaches later finds the note in meta when it looks at its end.
 */
#ifndef HOST_REMOVAL_H
#define HOST_REMOVAL_H

#include "host/host.h"

/* Removes every attachment, dead or alive, as DEL does; detaches the programs from all interfaces,
 * deletes the clsact qdiscs that nobody else uses, detaches the programs at sockets, and removes
 * the pins, meta last: by it the next call knows what a killed one has left. What hosts in other
 * network namespaces have is theirs. Call it with the lock, which it releases. CNI_ERROR_IO,
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int host_remove(struct host *host, int *lock, struct cni_error *err);

/* For a command that attaches, at its end, with its result. Where the maps that it has opened were
 * removed meanwhile, their programs are detached, by their ids, and not those that were loaded
 * since; it has failed then: -1, CNI_ERROR_TRY_AGAIN. Otherwise the result and *err stay. Takes the
 * lock. */
int host_withdraw_if_removed(struct host *host, int result, struct cni_error *err);

#endif

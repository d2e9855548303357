/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.h - takes all that is in the kernel of this host away again.
 */
#ifndef HOST_REMOVAL_H
#define HOST_REMOVAL_H

#include "host/host.h"

/* Removes every attachment, dead or alive, as DEL does. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int host_remove_attachments(struct host *host, struct cni_error *err);

/* Then: detaches the programs from all interfaces, deletes the clsact qdiscs that nobody else uses,
 * detaches the programs at sockets, and removes the pins, meta last: by it the next call knows what
 * a killed one has left. What hosts in other network namespaces have is theirs. Takes the lock.
 * CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int host_remove_programs(struct host *host, struct cni_error *err);

/* Returns whether a program of ours is at an interface. */
bool host_has_programs(struct host *host);

#endif

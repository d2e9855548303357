/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.h - takes all that is in the kernel of this host away again.
 */
#ifndef OPERATOR_KERNEL_REMOVAL_H
#define OPERATOR_KERNEL_REMOVAL_H

#include "host/host.h"

/* Removes every attachment, dead or alive, as DEL does; detaches the programs from all interfaces,
 * deletes the clsact qdiscs that nobody else uses, detaches the programs at sockets, and removes
 * the pins, meta last: by it the next call knows what a killed one has left. What hosts in other
 * network namespaces have is theirs. The host is open alone; its lock is released. CNI_ERROR_IO,
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int host_remove(struct host *host, struct cni_error *err);

#endif

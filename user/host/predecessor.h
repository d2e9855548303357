/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * predecessor.h - a port that an older sandbox of the same pod still has.
 *
 * A pod that is deleted by force, and made again under its name (StatefulSet), asks for its ports
 * while its old sandbox is being stopped; kubelet would try again only after 12 seconds. That name
 * is the one sign: until its DEL comes, an old sandbox looks as any other one does.
 */
#ifndef HOST_PREDECESSOR_H
#define HOST_PREDECESSOR_H

#include "host/container.h"
#include "host/host.h"

/* Where a port is taken: whether its owner is such a sandbox, and went within two seconds. Without
 * the lock. */
bool predecessor_goes(const struct host *host, const struct container *container);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * predecessor.h - a port that an older sandbox of the same pod still has.
 *
 * A pod that is deleted by force and made again under its name (StatefulSet) gets an ADD while its
 * old sandbox is being stopped. After an error kubelet tries again only after 12 seconds. Nothing
 * but the pod's name tells such a sandbox from others until its DEL comes.
 */
#ifndef HOST_PREDECESSOR_H
#define HOST_PREDECESSOR_H

#include "host/container.h"
#include "host/host.h"

/* For a port that is taken: waits for the DEL of such a sandbox, up to two seconds. Returns whether
 * it came. Call it without the lock. */
bool predecessor_goes(const struct host *host, const struct container *container);

#endif

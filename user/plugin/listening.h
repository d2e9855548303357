/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listening.h - processes of the host that have a port which is to be mapped.
 */
#ifndef PLUGIN_LISTENING_H
#define PLUGIN_LISTENING_H

#include "plugin/container.h"
#include "plugin/host.h"

enum listening_stage {
	LISTENING_UNCLAIMED, /* the container does not have its ports yet */
	LISTENING_CLAIMED,
};

/*
 * Looks for those that listen on a port that the container asks for. Once it has its ports
 * they are warned of: its mapping is reached from outside, not they. What the container's own
 * engine holds is left out. Nothing is said where the kernel cannot say.
 *
 * With reserveHostPorts they are an error: 101 naming a process, or 102 where the kernel
 * cannot say. The look that counts is the one after the claim: from then on nobody can bind,
 * and who did before is there to be found. (But for one whom the programs let pass in the
 * microseconds before the claim, and whose bind is not done yet.) Looking first and claiming
 * then would leave time to bind in between. The look before the claim spares a process that
 * has listened for long the moment in which a mapping that is to be undone takes what comes
 * to it.
 *
 * After interfaces_attach().
 */
int listening_check(const struct host *host, const struct container *container,
		    const char *container_id, enum listening_stage stage, struct cni_error *err);

#endif

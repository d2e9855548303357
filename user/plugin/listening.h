/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * listening.h - processes of the host that have a port which is to be mapped.
 */
#ifndef PLUGIN_LISTENING_H
#define PLUGIN_LISTENING_H

#include "plugin/container.h"
#include "plugin/host.h"

/* Warns of those that listen on a port that the container has now: its mapping is reached
 * from outside, not they. What the container's own engine holds is left out. Nothing is said
 * where the kernel cannot say. After interfaces_attach(). */
void listening_warn(const struct host *host, const struct container *container,
		    const char *container_id);

#endif

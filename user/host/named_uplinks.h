/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * named_uplinks.h - "uplinks" that name no interface there is: the ports are dead, and what leaves
 * keeps the containers' addresses.
 */
#ifndef HOST_NAMED_UPLINKS_H
#define HOST_NAMED_UPLINKS_H

#include "host/container.h"
#include "host/host.h"

/* Whether programs are at one that is named, if any are and the container has ports or masquerade;
 * after interfaces_attach(). Code 102, naming those there are. */
int named_uplinks_verify(struct host *host, const struct container *container,
			 struct cni_error *err);
/* The same as a warning. */
void named_uplinks_warn(struct host *host, const struct container *container);

#endif

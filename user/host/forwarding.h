/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * forwarding.h - a host that does not forward: mapped ports and masquerade are dead.
 */
#ifndef HOST_FORWARDING_H
#define HOST_FORWARDING_H

#include "host/container.h"
#include "host/host.h"

/* Whether the host forwards what comes in by the container's bridge or veth, and by an uplink, of
 * the families that the container has ports or masquerade in. Code 102, naming the sysctl. */
int forwarding_verify(const struct host *host, const struct container *container,
		      struct cni_error *err);
/* The same as a warning. */
void forwarding_warn(const struct host *host, const struct container *container);

/* For STATUS: of the families that any container has ports or masquerade in. Code 102. */
int forwarding_verify_host(const struct host *host, struct cni_error *err);

#endif

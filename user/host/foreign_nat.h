/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_nat.h - rules of port mappers for the same host ports: portmap's, of containers that
 * still run, Docker's, netavark's. They are asked for by the names of their chains, so that an ADD
 * takes no longer beside the thousands of rules of kube-proxy; `who` and `doctor` look at those,
 * too.
 *
 * Our programs come before netfilter: once the container has its ports such a rule gets no packet.
 */
#pragma once

#include "host/container.h"
#include "host/host.h"

/* Looks for such rules for the container's ports. ADD calls it twice, before and after the claim,
 * when host_settle() has written the interfaces.
 * With "refuseForeign" the call before the claim fails: CNI_ERROR_PORT_TAKEN naming a rule, or
 * CNI_ERROR_KERNEL_REFUSED where the rules cannot be read. Without it the call after the claim
 * warns. */
int foreign_nat_check(const struct host *host, const struct container *container, bool is_claimed,
		      struct cni_error *err);

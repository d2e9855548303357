/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_nat.h - rules of port mappers for the same host ports: portmap's, of containers that
 * still run, Docker's, netavark's. They are asked for by the names of their chains, so that an ADD
 * takes no longer beside the thousands of rules of kube-proxy; `who` and `doctor` look at those,
 * too.
 *
 * Our programs come before netfilter: once the container has its ports such a rule gets no packet.
 */
#ifndef HOST_FOREIGN_NAT_H
#define HOST_FOREIGN_NAT_H

#include "host/container.h"
#include "host/host.h"

enum claim_phase {
	BEFORE_CLAIM,
	AFTER_CLAIM,
};

/* Looks for such rules for the container's ports. ADD calls it twice, after host_settle().
 * With "refuseForeign" the call before the claim fails: CNI_ERROR_PORT_TAKEN naming a rule, or
 * CNI_ERROR_KERNEL_REFUSED where the rules cannot be read. Without it the call after the claim
 * warns. */
int foreign_nat_check(const struct host *host, const struct container *container,
		      enum claim_phase phase, struct cni_error *err);

#endif

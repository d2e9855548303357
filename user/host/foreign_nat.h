/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * foreign_nat.h - host ports that are to be mapped, and that rules of iptables or nftables have:
 * portmap's, of containers that still run; Docker's, netavark's, kube-proxy's.
 */
#ifndef HOST_FOREIGN_NAT_H
#define HOST_FOREIGN_NAT_H

#include "host/container.h"
#include "host/host.h"

/* Our programs come before netfilter, so that such rules get no packet any more once the container
 * has its ports. Warns of them when it has (claimed), or, with refuseForeign, fails before: codes
 * 101 naming a rule, or 102 where the kernel cannot say. After interfaces_attach(). */
int foreign_nat_check(const struct host *host, const struct container *container, bool claimed,
		      struct cni_error *err);

#endif

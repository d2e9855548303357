/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * veth.h - the host's end of a container's veth.
 */
#ifndef NET_VETH_H
#define NET_VETH_H

#include "net/link.h"

struct host_veth {
	struct link link;
	struct link bridge; /* ifindex 0: it is no bridge's port, so it routes (ptp) */
};

/* Follows the interface of that name in the namespace to its other end here, and back
 * again: names in results are hints. CNI_ERROR_INVALID_CONFIGURATION when there is no such
 * veth, naming what there is instead; CNI_ERROR_INVALID_NETNS when the namespace cannot be entered.
 */
int veth_find_host_end(struct nl_sock *socket, int netns, const char *ifname,
		       struct host_veth *veth, struct cni_error *err);

#endif

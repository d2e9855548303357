/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xfrm.c - IPsec policies, as the kernel's XFRM counts them. */
#include "net/xfrm.h"

#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <string.h>
#include <unistd.h>

#include "net/netlink.h"

static int parse_counts(struct nl_msg *message, void *context)
{
	struct nlattr *attribute =
		nlmsg_find_attr(nlmsg_hdr(message), sizeof(uint32_t), XFRMA_SPD_INFO);
	struct xfrmu_spdinfo counts;

	if (!attribute || nla_len(attribute) < (int)sizeof(counts))
		return NL_OK;
	memcpy(&counts, nla_data(attribute), sizeof(counts));
	*(bool *)context = counts.outcnt || counts.fwdcnt;
	return NL_OK;
}

bool xfrm_has_policies(void)
{
	cleanup_netlink struct nl_sock *socket = NULL;
	struct cni_error ignored = {0};
	uint32_t flags = 0;
	bool found = false;

	/* A kernel built without it would look for a module each time. */
	if (access("/proc/sys/net/core/xfrm_larval_drop", F_OK))
		return false;
	socket = netlink_open_protocol(NETLINK_XFRM, &ignored);
	cni_error_release(&ignored);
	if (socket)
		netlink_get(socket, XFRM_MSG_GETSPDINFO, 0, &flags, sizeof(flags), parse_counts,
			    &found);
	return found;
}

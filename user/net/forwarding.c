/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* forwarding.c - what the host does with packets that are not its own. */
#include "net/forwarding.h"

#include <linux/xfrm.h>
#include <stdio.h>
#include <unistd.h>

#include "net/netlink.h"
#include "lib/io.h"

bool forwarding_is_on(bool ipv4, const char *interface)
{
	char path[64], value[3];

	snprintf(path, sizeof(path), "/proc/sys/net/ipv%c/conf/%s/forwarding", ipv4 ? '4' : '6',
		 interface);
	text_file_read(path, value, sizeof(value));
	return *value != '0';
}

static void take_counts(struct nlmsghdr *message, void *context)
{
	nla_memcpy(context, nlmsg_find_attr(message, sizeof(uint32_t), XFRMA_SPD_INFO),
		   sizeof(struct xfrmu_spdinfo));
}

bool forwarding_has_ipsec_policies(void)
{
	cleanup_request struct nl_msg *request = NULL;
	struct xfrmu_spdinfo counts = {0};
	uint32_t flags = 0;

	/* A kernel built without it would look for a module each time. */
	if (access("/proc/sys/net/core/xfrm_larval_drop", F_OK))
		return false;
	request = netlink_begin(XFRM_MSG_GETSPDINFO, 0, &flags, sizeof(flags));
	return !netlink_ask(netlink_own(NETLINK_XFRM, NULL), request, take_counts, &counts) &&
	       (counts.outcnt || counts.fwdcnt);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xfrm.c - IPsec policies, as the kernel's XFRM counts them. */
#include "net/xfrm.h"

#include <linux/netlink.h>
#include <linux/xfrm.h>
#include <netlink/msg.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"

#define ANSWER_SIZE 1024

struct request {
	struct nlmsghdr header;
	uint32_t flags;
};

static bool has_counted(struct nlmsghdr *answer, int size)
{
	const struct xfrmu_spdinfo *counts;
	struct nlattr *attribute;

	if (!nlmsg_ok(answer, size) || answer->nlmsg_type != XFRM_MSG_NEWSPDINFO)
		return false;
	attribute = nlmsg_find_attr(answer, sizeof(uint32_t), XFRMA_SPD_INFO);
	if (!attribute || nla_len(attribute) < (int)sizeof(*counts))
		return false;
	counts = nla_data(attribute);
	return counts->outcnt || counts->fwdcnt;
}

/* Each ADD asks: with a bare socket, which takes half the time of libnl's. */
bool xfrm_has_policies(void)
{
	const struct request request = {
		.header.nlmsg_len = sizeof(request),
		.header.nlmsg_type = XFRM_MSG_GETSPDINFO,
		.header.nlmsg_flags = NLM_F_REQUEST,
	};
	union {
		struct nlmsghdr header;
		char bytes[ANSWER_SIZE];
	} answer;
	cleanup_close int fd = -1;
	ssize_t size;

	/* A kernel built without it would look for a module each time. */
	if (access("/proc/sys/net/core/xfrm_larval_drop", F_OK))
		return false;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_XFRM);
	if (fd < 0 || send(fd, &request, sizeof(request), 0) != sizeof(request))
		return false;
	size = recv(fd, &answer, sizeof(answer), MSG_DONTWAIT);
	return size > 0 && has_counted(&answer.header, (int)size);
}

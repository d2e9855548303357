/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* qdisc.c - what sits at an interface's ingress. */
#include "net/qdisc.h"

#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <string.h>

#include "net/netlink.h"

static int parse_kind(struct nl_msg *message, void *context)
{
	struct nlattr *kind = nlmsg_find_attr(nlmsg_hdr(message), sizeof(struct tcmsg), TCA_KIND);
	enum ingress_qdisc *found = context;

	if (!kind)
		return NL_OK;
	if (!nla_strcmp(kind, "clsact"))
		*found = INGRESS_QDISC_CLSACT;
	else if (!nla_strcmp(kind, "ingress"))
		*found = INGRESS_QDISC_INGRESS;
	else
		*found = INGRESS_QDISC_OTHER;
	return NL_OK;
}

enum ingress_qdisc qdisc_at_ingress(struct nl_sock *socket, uint32_t ifindex)
{
	enum ingress_qdisc found = INGRESS_QDISC_NONE;
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = TC_H_INGRESS, /* the same number as TC_H_CLSACT */
	};

	/* An error is the kernel's way to say that there is none. Without ECHO it tells the
	 * answer to its listeners, but not to us. */
	netlink_get(socket, RTM_GETQDISC, NLM_F_ECHO, &header, sizeof(header), parse_kind, &found);
	return found;
}

static int count_filter(struct nl_msg *message, void *context)
{
	if (nlmsg_hdr(message)->nlmsg_type == RTM_NEWTFILTER)
		++*(size_t *)context;
	return NL_OK;
}

static bool has_filters(struct nl_sock *socket, uint32_t ifindex, uint32_t parent)
{
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = parent,
	};
	size_t count = 0;

	return netlink_get(socket, RTM_GETTFILTER, NLM_F_DUMP, &header, sizeof(header),
			   count_filter, &count) ||
	       count;
}

bool qdisc_is_empty_clsact(struct nl_sock *socket, uint32_t ifindex)
{
	return qdisc_at_ingress(socket, ifindex) == INGRESS_QDISC_CLSACT &&
	       !has_filters(socket, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS)) &&
	       !has_filters(socket, ifindex, TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_EGRESS));
}

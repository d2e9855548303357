/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* redirect.c - filters that send packets to another interface. */
#include "net/redirect.h"

#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>

#include "net/netlink.h"

struct search {
	uint32_t before; /* priorities below this one */
	uint32_t found;
};

static uint32_t find_in_action(struct nlattr *action)
{
	struct nlattr *kind = nla_find(nla_data(action), nla_len(action), TCA_ACT_KIND);
	struct nlattr *options = nla_find(nla_data(action), nla_len(action), TCA_ACT_OPTIONS);
	struct nlattr *mirred;
	struct tc_mirred what;

	if (!kind || !options || nla_strcmp(kind, "mirred"))
		return 0;
	mirred = nla_find(nla_data(options), nla_len(options), TCA_MIRRED_PARMS);
	if (!mirred || nla_memcpy(&what, mirred, sizeof(what)) != sizeof(what))
		return 0;
	return what.eaction == TCA_EGRESS_REDIR ? what.ifindex : 0;
}

static int look_at_filter(struct nl_msg *message, void *context)
{
	struct nlmsghdr *header = nlmsg_hdr(message);
	const struct tcmsg *filter = nlmsg_data(header);
	struct search *search = context;
	struct nlattr *kind, *options, *actions, *action;
	int rest;

	if (header->nlmsg_type != RTM_NEWTFILTER || search->found ||
	    TC_H_MAJ(filter->tcm_info) >> 16 >= search->before)
		return NL_OK;
	kind = nlmsg_find_attr(header, sizeof(*filter), TCA_KIND);
	options = nlmsg_find_attr(header, sizeof(*filter), TCA_OPTIONS);
	if (!kind || !options || nla_strcmp(kind, "u32"))
		return NL_OK;
	actions = nla_find(nla_data(options), nla_len(options), TCA_U32_ACT);
	if (!actions)
		return NL_OK;
	action = nla_data(actions);
	rest = nla_len(actions);
	for (; !search->found && nla_ok(action, rest); action = nla_next(action, &rest))
		search->found = find_in_action(action);
	return NL_OK;
}

uint32_t redirect_at_ingress(struct nl_sock *socket, uint32_t ifindex, uint32_t priority)
{
	struct search search = {.before = priority};
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, TC_H_MIN_INGRESS),
	};

	if (netlink_get(socket, RTM_GETTFILTER, NLM_F_DUMP, &header, sizeof(header), look_at_filter,
			&search))
		return 0;
	return search.found;
}

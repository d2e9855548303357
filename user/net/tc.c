/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tc.c - an interface's qdisc for hooks, and the filters on it. */
#include "net/tc.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/tc_act/tc_mirred.h>
#include <stdlib.h>

#include "lib/memory.h"
#include "net/netlink.h"

/* libbpf has such calls too, with a socket of its own for each: that is most of what they cost.
 * Without a socket all that is asked fails. */
static int ask_tc(struct nl_msg *request, netlink_take take, void *context)
{
	return netlink_ask(netlink_route(NULL), request, take, context);
}

static struct nlattr *find_attribute(struct nlmsghdr *message, int type)
{
	return nlmsg_find_attr(message, sizeof(struct tcmsg), type);
}

static struct nl_msg *begin_tc(int type, int flags, struct tcmsg header, const char *kind)
{
	struct nl_msg *request = netlink_begin(type, flags, &header, sizeof(header));

	if (kind)
		nla_put_string(request, TCA_KIND, kind);
	return request;
}

static enum ingress_qdisc kind_of(struct nlmsghdr *message)
{
	const struct nlattr *kind = find_attribute(message, TCA_KIND);

	if (netlink_is(kind, "clsact"))
		return INGRESS_QDISC_CLSACT;
	if (netlink_is(kind, "ingress"))
		return INGRESS_QDISC_INGRESS;
	return kind ? INGRESS_QDISC_OTHER : INGRESS_QDISC_NONE;
}

static void take_kind(struct nlmsghdr *message, void *context)
{
	*(enum ingress_qdisc *)context = kind_of(message);
}

enum ingress_qdisc qdisc_at_ingress(uint32_t ifindex)
{
	enum ingress_qdisc found = INGRESS_QDISC_NONE;
	/* The same number as TC_H_CLSACT. */
	struct tcmsg header = {.tcm_ifindex = (int)ifindex, .tcm_parent = TC_H_INGRESS};
	/* An error is the kernel's way to say that there is none. Without ECHO it tells the
	 * answer to its listeners, but not to us. */
	cleanup_request struct nl_msg *request =
		begin_tc(RTM_GETQDISC, NLM_F_ECHO | NLM_F_ACK, header, NULL);

	ask_tc(request, take_kind, &found);
	return found;
}

static void take_qdisc(struct nlmsghdr *message, void *context)
{
	const struct tcmsg *header = nlmsg_data(message);
	struct qdisc_list *qdiscs = context;

	if (message->nlmsg_type == RTM_NEWQDISC && header->tcm_parent == TC_H_INGRESS)
		*ARRAY_ADD(qdiscs->list, qdiscs->count) =
			(struct interface_qdisc){(uint32_t)header->tcm_ifindex, kind_of(message)};
}

bool qdiscs_at_ingress(struct qdisc_list *qdiscs)
{
	cleanup_request struct nl_msg *request =
		begin_tc(RTM_GETQDISC, NLM_F_DUMP, (struct tcmsg){0}, NULL);

	return !ask_tc(request, take_qdisc, qdiscs);
}

static int change_clsact(int type, int flags, uint32_t ifindex)
{
	struct tcmsg header = {
		.tcm_ifindex = (int)ifindex,
		.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
		.tcm_parent = TC_H_CLSACT,
	};
	cleanup_request struct nl_msg *request =
		begin_tc(type, NLM_F_ACK | flags, header, "clsact");

	return ask_tc(request, NULL, NULL);
}

int qdisc_add_clsact(uint32_t ifindex)
{
	return change_clsact(RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex);
}

/* The interface that the first of the actions redirects packets to, or 0. */
static uint32_t find_redirect(const struct nlattr *actions)
{
	const struct nlattr *action;
	int rest;

	if (!actions)
		return 0;
	nla_for_each_nested(action, actions, rest)
	{
		const struct nlattr *options = netlink_find(action, TCA_ACT_OPTIONS);
		struct tc_mirred what = {0};

		nla_memcpy(&what, netlink_find(options, TCA_MIRRED_PARMS), sizeof(what));
		if (netlink_is(netlink_find(action, TCA_ACT_KIND), "mirred") &&
		    what.eaction == TCA_EGRESS_REDIR)
			return what.ifindex;
	}
	return 0;
}

static void take_filter(struct nlmsghdr *message, void *context)
{
	const struct tcmsg *header = nlmsg_data(message);
	const struct nlattr *kind = find_attribute(message, TCA_KIND);
	const struct nlattr *options = find_attribute(message, TCA_OPTIONS);
	struct filter_list *filters = context;
	struct filter *filter;

	if (message->nlmsg_type != RTM_NEWTFILTER || !kind)
		return;
	filter = ARRAY_ADD(filters->list, filters->count);
	*filter = (struct filter){
		.priority = TC_H_MAJ(header->tcm_info) >> 16,
		.handle = header->tcm_handle,
	};
	nla_strlcpy(filter->kind, kind, sizeof(filter->kind));
	if (netlink_is(kind, "bpf"))
		nla_memcpy(&filter->program, netlink_find(options, TCA_BPF_ID), sizeof(uint32_t));
	else if (netlink_is(kind, "u32"))
		filter->redirect = find_redirect(netlink_find(options, TCA_U32_ACT));
}

static uint32_t parent_at(bool ingress)
{
	return TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS);
}

bool filters_read(uint32_t ifindex, bool ingress, struct filter_list *filters)
{
	struct tcmsg header = {.tcm_ifindex = (int)ifindex, .tcm_parent = parent_at(ingress)};
	cleanup_request struct nl_msg *request = begin_tc(RTM_GETTFILTER, NLM_F_DUMP, header, NULL);

	return !ask_tc(request, take_filter, filters);
}

void qdisc_delete_empty_clsact(uint32_t ifindex)
{
	struct filter_list filters = {0};

	/* What cannot be read may be there. */
	if (qdisc_at_ingress(ifindex) == INGRESS_QDISC_CLSACT &&
	    filters_read(ifindex, true, &filters) && filters_read(ifindex, false, &filters) &&
	    !filters.count)
		change_clsact(RTM_DELQDISC, 0, ifindex);
	free(filters.list);
}

static struct nl_msg *begin_at(int type, int flags, uint32_t ifindex, bool ingress)
{
	struct tcmsg header = {
		.tcm_ifindex = (int)ifindex,
		.tcm_handle = FILTER_HANDLE,
		.tcm_parent = parent_at(ingress),
		.tcm_info = TC_H_MAKE(FILTER_PRIORITY << 16, htons(ETH_P_ALL)),
	};

	return begin_tc(type, flags, header, "bpf");
}

static void take_program(struct nlmsghdr *message, void *context)
{
	nla_memcpy(context, netlink_find(find_attribute(message, TCA_OPTIONS), TCA_BPF_ID),
		   sizeof(uint32_t));
}

uint32_t filter_program(uint32_t ifindex, bool ingress)
{
	cleanup_request struct nl_msg *request = begin_at(RTM_GETTFILTER, 0, ifindex, ingress);
	uint32_t id = 0;

	return ask_tc(request, take_program, &id) ? 0 : id;
}

int filter_add(uint32_t ifindex, bool ingress, int program_fd, const char *name, bool replace)
{
	int flags = NLM_F_CREATE | NLM_F_ECHO | NLM_F_ACK | (replace ? NLM_F_REPLACE : NLM_F_EXCL);
	cleanup_request struct nl_msg *request = begin_at(RTM_NEWTFILTER, flags, ifindex, ingress);
	struct nlattr *options = nla_nest_start(request, TCA_OPTIONS);
	uint32_t id = 0;

	nla_put_u32(request, TCA_BPF_FD, (uint32_t)program_fd);
	nla_put_string(request, TCA_BPF_NAME, name);
	nla_put_u32(request, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT);
	nla_nest_end(request, options);
	if (ask_tc(request, take_program, &id))
		return -1;
	errno = ENOENT;
	return id ? 0 : -1;
}

int filter_delete(uint32_t ifindex, bool ingress)
{
	cleanup_request struct nl_msg *request =
		begin_at(RTM_DELTFILTER, NLM_F_ACK, ifindex, ingress);

	return ask_tc(request, NULL, NULL);
}

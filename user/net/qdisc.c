/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* qdisc.c - what sits at an interface's ingress. */
#include "net/qdisc.h"

#include <errno.h>
#include <linux/pkt_cls.h>
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
	netlink_get(socket, RTM_GETQDISC, NLM_F_ECHO | NLM_F_ACK, &header, sizeof(header),
		    parse_kind, &found);
	return found;
}

static int change(struct nl_sock *socket, int type, int flags, uint32_t ifindex)
{
	struct nl_msg *request = nlmsg_alloc_simple(type, NLM_F_REQUEST | NLM_F_ACK | flags);
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_handle = TC_H_MAKE(TC_H_CLSACT, 0),
		.tcm_parent = TC_H_CLSACT,
	};

	if (request && (nlmsg_append(request, &header, sizeof(header), NLMSG_ALIGNTO) ||
			nla_put_string(request, TCA_KIND, "clsact"))) {
		nlmsg_free(request);
		request = NULL;
	}
	errno = ENOMEM;
	return netlink_request(socket, request, NULL, NULL) ? -1 : 0;
}

int qdisc_add_clsact(struct nl_sock *socket, uint32_t ifindex)
{
	return change(socket, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_EXCL, ifindex);
}

int qdisc_delete_clsact(struct nl_sock *socket, uint32_t ifindex)
{
	return change(socket, RTM_DELQDISC, 0, ifindex);
}

struct search {
	bool (*is_meant)(const struct filter *filter);
	bool found;
	struct filter first;
};

static void read_kind(struct nlmsghdr *message, struct filter *filter)
{
	struct nlattr *kind = nlmsg_find_attr(message, sizeof(struct tcmsg), TCA_KIND);
	struct nlattr *options = nlmsg_find_attr(message, sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *id = NULL;

	if (!kind)
		return;
	nla_strlcpy(filter->kind, kind, sizeof(filter->kind));
	if (options && strcmp(filter->kind, "bpf") == 0)
		id = nla_find(nla_data(options), nla_len(options), TCA_BPF_ID);
	if (id)
		filter->program = nla_get_u32(id);
}

static int look_at_filter(struct nl_msg *message, void *context)
{
	const struct tcmsg *header = nlmsg_data(nlmsg_hdr(message));
	struct search *search = context;
	struct filter filter = {0};

	if (nlmsg_hdr(message)->nlmsg_type != RTM_NEWTFILTER || search->found)
		return NL_OK;
	filter.priority = TC_H_MAJ(header->tcm_info) >> 16;
	filter.handle = header->tcm_handle;
	read_kind(nlmsg_hdr(message), &filter);
	search->found = search->is_meant(&filter);
	search->first = filter;
	return NL_OK;
}

static int search_filters(struct nl_sock *socket, uint32_t ifindex, bool ingress,
			  struct search *search)
{
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)ifindex,
		.tcm_parent = TC_H_MAKE(TC_H_CLSACT, ingress ? TC_H_MIN_INGRESS : TC_H_MIN_EGRESS),
	};

	return netlink_get(socket, RTM_GETTFILTER, NLM_F_DUMP, &header, sizeof(header),
			   look_at_filter, search);
}

bool qdisc_has_filter(struct nl_sock *socket, uint32_t ifindex, bool ingress,
		      bool (*is_meant)(const struct filter *filter))
{
	struct search search = {.is_meant = is_meant};

	search_filters(socket, ifindex, ingress, &search);
	return search.found;
}

bool qdisc_find_filter(struct nl_sock *socket, uint32_t ifindex, bool ingress,
		       bool (*is_meant)(const struct filter *filter), struct filter *found)
{
	struct search search = {.is_meant = is_meant};

	search_filters(socket, ifindex, ingress, &search);
	*found = search.first;
	return search.found;
}

static bool is_any(const struct filter *filter)
{
	(void)filter;
	return true;
}

/* What cannot be read may be there. */
static bool may_have_filters(struct nl_sock *socket, uint32_t ifindex, bool ingress)
{
	struct search search = {.is_meant = is_any};

	return search_filters(socket, ifindex, ingress, &search) || search.found;
}

bool qdisc_is_empty_clsact(struct nl_sock *socket, uint32_t ifindex)
{
	return qdisc_at_ingress(socket, ifindex) == INGRESS_QDISC_CLSACT &&
	       !may_have_filters(socket, ifindex, true) &&
	       !may_have_filters(socket, ifindex, false);
}

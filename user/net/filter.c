/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* filter.c - BPF programs as direct-action filters of tc. */
#include "net/filter.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "net/netlink.h"

/* NULL: no memory. */
static struct nl_msg *begin(int type, int flags, const struct filter_place *place)
{
	struct nl_msg *request = nlmsg_alloc_simple(type, NLM_F_REQUEST | flags);
	struct tcmsg header = {
		.tcm_family = AF_UNSPEC,
		.tcm_ifindex = (int)place->ifindex,
		.tcm_handle = place->handle,
		.tcm_parent =
			TC_H_MAKE(TC_H_CLSACT, place->egress ? TC_H_MIN_EGRESS : TC_H_MIN_INGRESS),
		.tcm_info = TC_H_MAKE((uint32_t)place->priority << 16, htons(ETH_P_ALL)),
	};

	if (request && !nlmsg_append(request, &header, sizeof(header), NLMSG_ALIGNTO) &&
	    !nla_put_string(request, TCA_KIND, "bpf"))
		return request;
	nlmsg_free(request);
	return NULL;
}

static int parse_program(struct nl_msg *message, void *context)
{
	struct nlattr *options =
		nlmsg_find_attr(nlmsg_hdr(message), sizeof(struct tcmsg), TCA_OPTIONS);
	struct nlattr *id =
		options ? nla_find(nla_data(options), nla_len(options), TCA_BPF_ID) : NULL;

	if (id)
		*(uint32_t *)context = nla_get_u32(id);
	return NL_OK;
}

uint32_t filter_find(struct nl_sock *socket, const struct filter_place *place)
{
	uint32_t id = 0;

	if (netlink_request(socket, begin(RTM_GETTFILTER, 0, place), parse_program, &id))
		return 0;
	return id;
}

static struct nl_msg *put_program(struct nl_msg *request, int program_fd, const char *name)
{
	struct nlattr *options = request ? nla_nest_start(request, TCA_OPTIONS) : NULL;

	if (options && !nla_put_u32(request, TCA_BPF_FD, (uint32_t)program_fd) &&
	    !nla_put_string(request, TCA_BPF_NAME, name) &&
	    !nla_put_u32(request, TCA_BPF_FLAGS, TCA_BPF_FLAG_ACT_DIRECT)) {
		nla_nest_end(request, options);
		return request;
	}
	nlmsg_free(request);
	return NULL;
}

int filter_add(struct nl_sock *socket, const struct filter_place *place, int program_fd,
	       const char *name, bool replace)
{
	int flags = NLM_F_CREATE | NLM_F_ECHO | NLM_F_ACK | (replace ? NLM_F_REPLACE : NLM_F_EXCL);
	struct nl_msg *request = put_program(begin(RTM_NEWTFILTER, flags, place), program_fd, name);
	uint32_t id = 0;

	errno = ENOMEM;
	if (netlink_request(socket, request, parse_program, &id))
		return -1;
	errno = ENOENT;
	return id ? 0 : -1;
}

int filter_delete(struct nl_sock *socket, const struct filter_place *place)
{
	errno = ENOMEM;
	return netlink_request(socket, begin(RTM_DELTFILTER, NLM_F_ACK, place), NULL, NULL) ? -1
											    : 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* queue.c - what the queues have done that packets leave interfaces by. */
#include "operator/kernel/queue.h"

#include <linux/gen_stats.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>

#include "net/netlink.h"

struct queue_visit {
	void (*visit)(void *context, const struct queue_use *use);
	void *context;
};

static void take_queue(struct nlmsghdr *message, void *context)
{
	const struct tcmsg *header = nlmsg_data(message);
	const struct nlattr *stats = nlmsg_find_attr(message, sizeof(*header), TCA_STATS2);
	const struct nlattr *kind = nlmsg_find_attr(message, sizeof(*header), TCA_KIND);
	const struct queue_visit *visit = context;
	struct queue_use use = {.ifindex = (uint32_t)header->tcm_ifindex};
	struct gnet_stats_basic basic = {0};
	struct gnet_stats_queue queue = {0};

	if (header->tcm_parent != TC_H_ROOT || !kind)
		return;
	nla_memcpy(&basic, netlink_find(stats, TCA_STATS_BASIC), sizeof(basic));
	nla_memcpy(&queue, netlink_find(stats, TCA_STATS_QUEUE), sizeof(queue));
	use.sent = basic.packets;
	use.dropped = queue.drops;
	nla_strlcpy(use.kind, kind, sizeof(use.kind));
	visit->visit(visit->context, &use);
}

void queues_visit(struct netlink *socket, void (*visit)(void *context, const struct queue_use *use),
		  void *context)
{
	struct tcmsg header = {0};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETQDISC, NLM_F_DUMP, &header, sizeof(header));
	struct queue_visit visits = {visit, context};

	netlink_ask(socket, request, take_queue, &visits);
}

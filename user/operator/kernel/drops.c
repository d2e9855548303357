/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* drops.c - how many packets interfaces and their queues have dropped. */
#include "operator/kernel/drops.h"

#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>

#include "lib/array.h"
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

static void take_link(struct nlmsghdr *message, void *context)
{
	const struct if_stats_msg *header = nlmsg_data(message);
	const struct nlattr *found = nlmsg_find_attr(message, sizeof(*header), IFLA_STATS_LINK_64);
	struct rtnl_link_stats64 stats = {0};
	struct link_drops_list *drops = context;

	nla_memcpy(&stats, found, sizeof(stats));
	*ARRAY_ADD(drops->list, drops->count) = (struct link_drops){
		header->ifindex, stats.rx_dropped + stats.rx_missed_errors + stats.rx_errors,
		stats.tx_dropped + stats.tx_errors, stats.rx_otherhost_dropped};
}

void link_drops_read(struct netlink *socket, struct link_drops_list *drops)
{
	struct if_stats_msg header = {.filter_mask = IFLA_STATS_FILTER_BIT(IFLA_STATS_LINK_64)};
	cleanup_request struct nl_msg *request =
		netlink_begin(RTM_GETSTATS, NLM_F_DUMP, &header, sizeof(header));

	netlink_ask(socket, request, take_link, drops);
}

void link_drops_release(struct link_drops_list *drops)
{
	free(drops->list);
	*drops = (struct link_drops_list){0};
}

struct link_drops link_drops_since(const struct link_drops *now,
				   const struct link_drops_list *before)
{
	for (size_t i = 0; i < before->count; i++) {
		const struct link_drops *then = &before->list[i];

		if (then->ifindex == now->ifindex && now->in >= then->in && now->out >= then->out)
			return (struct link_drops){.ifindex = now->ifindex,
						   .in = now->in - then->in,
						   .out = now->out - then->out};
	}
	return (struct link_drops){.ifindex = now->ifindex};
}

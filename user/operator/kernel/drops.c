/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* drops.c - how many packets interfaces and their queues have dropped. */
#include "operator/kernel/drops.h"

#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <inttypes.h>
#include <linux/gen_stats.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "net/netlink.h"
#include "lib/text.h"

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
	for_each (then, before->list, before->count)
		if (then->ifindex == now->ifindex && now->in >= then->in && now->out >= then->out)
			return (struct link_drops){.ifindex = now->ifindex,
						   .in = now->in - then->in,
						   .out = now->out - then->out};
	return (struct link_drops){.ifindex = now->ifindex};
}

/* --- names for why and where ---------------------------------------------------------------- */

#define REASON_PREFIX "SKB_DROP_REASON_"
#define MOST_FUNCTIONS 256 /* that are remembered */

void kernel_names_release(struct kernel_names *names)
{
	btf__free(names->btf);
	free(names->functions);
	*names = (struct kernel_names){0};
}

/* Not from the tracepoint's format: tracefs need not be mounted. */
void kernel_names_prepare(struct kernel_names *names)
{
	if (!names->btf)
		names->btf = btf__load_vmlinux_btf();
}

const char *kernel_reason(struct kernel_names *names, uint32_t reason)
{
	const struct btf_type *type;
	const struct btf_enum *members;
	int id;

	kernel_names_prepare(names);
	if (!reason || !names->btf)
		return NULL;
	id = btf__find_by_name_kind(names->btf, "skb_drop_reason", BTF_KIND_ENUM);
	type = id < 0 ? NULL : btf__type_by_id(names->btf, (uint32_t)id);
	members = type ? btf_enum(type) : NULL;
	for (uint32_t i = 0; type && i < btf_vlen(type); i++) {
		const char *name = btf__name_by_offset(names->btf, members[i].name_off);

		if ((uint32_t)members[i].val == reason && strstr(name, "DROP_REASON_"))
			return strncmp(name, REASON_PREFIX, strlen(REASON_PREFIX))
				       ? name
				       : name + strlen(REASON_PREFIX);
	}
	return NULL;
}

/* The last function that begins before the address. Nothing is kept of the file, which has a
 * hundred thousand lines: few places drop packets. The functions of BPF programs, which drop none
 * themselves, are its last ones, and to read n of them takes the kernel n^2 steps. */
static void find_function(struct kernel_function *function)
{
	char line[256], name[FUNCTION_NAME_SIZE - 20], best_name[FUNCTION_NAME_SIZE - 20] = "";
	uint64_t address, best = 0;
	FILE *file = fopen("/proc/kallsyms", "re");

	while (file && fgets(line, sizeof(line), file) && !strstr(line, "\t[bpf]")) {
		if (sscanf(line, "%" SCNx64 " %*1[tTwW] %75s", &address, name) != 2 ||
		    address >= function->address || address <= best)
			continue;
		best = address;
		memcpy(best_name, name, sizeof(best_name));
	}
	if (file)
		fclose(file);
	*function->name = '\0';
	if (best)
		snprintf(function->name, sizeof(function->name), "%s+0x%" PRIx64, best_name,
			 function->address - best);
	cni_printable(function->name, "");
}

const char *kernel_function(struct kernel_names *names, uint64_t address)
{
	struct kernel_function *added;

	for (size_t i = 0; i < names->function_count; i++)
		if (names->functions[i].address == address)
			return names->functions[i].name;
	added = names->function_count < MOST_FUNCTIONS
			? ARRAY_ADD(names->functions, names->function_count)
			: NULL;
	if (!added)
		return "";
	added->address = address;
	find_function(added);
	return added->name;
}

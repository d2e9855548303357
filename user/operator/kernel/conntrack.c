/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conntrack.c - the connections that conntrack knows in this network namespace. */
#include "operator/kernel/conntrack.h"

#include <errno.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <string.h>

#include "net/netlink.h"

struct reading {
	conntrack_take take;
	void *context;
};

static bool take_address(const struct nlattr *ip, int type4, int type6, uint8_t *address)
{
	const struct nlattr *four = netlink_find(ip, type4), *six = netlink_find(ip, type6);

	if (four && nla_len(four) == 4) {
		memcpy(address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
		memcpy(address + 12, nla_data(four), 4);
		return true;
	}
	if (six && nla_len(six) == CNI_ADDRESS_SIZE)
		memcpy(address, nla_data(six), CNI_ADDRESS_SIZE);
	return six;
}

static uint16_t port_of(const struct nlattr *nest, int type)
{
	const struct nlattr *port = netlink_find(nest, type);

	return port && nla_len(port) >= 2 ? ntohs(nla_get_u16(port)) : 0;
}

/* False: it has no ports. */
static bool take_tuple(const struct nlattr *nest, struct conntrack_tuple *tuple)
{
	const struct nlattr *ip = netlink_find(nest, CTA_TUPLE_IP);
	const struct nlattr *inner = netlink_find(nest, CTA_TUPLE_PROTO);
	const struct nlattr *number = netlink_find(inner, CTA_PROTO_NUM);

	if (!number || !take_address(ip, CTA_IP_V4_SRC, CTA_IP_V6_SRC, tuple->source) ||
	    !take_address(ip, CTA_IP_V4_DST, CTA_IP_V6_DST, tuple->destination))
		return false;
	tuple->protocol = nla_get_u8(number);
	tuple->source_port = port_of(inner, CTA_PROTO_SRC_PORT);
	tuple->destination_port = port_of(inner, CTA_PROTO_DST_PORT);
	return tuple->protocol == IPPROTO_TCP || tuple->protocol == IPPROTO_UDP ||
	       tuple->protocol == IPPROTO_SCTP;
}

static uint32_t number_of(struct nlmsghdr *message, int type)
{
	const struct nlattr *number = nlmsg_find_attr(message, sizeof(struct nfgenmsg), type);

	return number && nla_len(number) == 4 ? ntohl(nla_get_u32(number)) : 0;
}

static void take_message(struct nlmsghdr *message, void *context)
{
	const int head = sizeof(struct nfgenmsg);
	const struct reading *reading = context;
	struct conntrack_entry entry = {0};
	const struct nlattr *tcp, *state;
	uint32_t status = number_of(message, CTA_STATUS);

	if (!take_tuple(nlmsg_find_attr(message, head, CTA_TUPLE_ORIG), &entry.original) ||
	    !take_tuple(nlmsg_find_attr(message, head, CTA_TUPLE_REPLY), &entry.reply))
		return;
	tcp = netlink_find(nlmsg_find_attr(message, head, CTA_PROTOINFO), CTA_PROTOINFO_TCP);
	state = netlink_find(tcp, CTA_PROTOINFO_TCP_STATE);
	entry.tcp_state = state ? nla_get_u8(state) : 0;
	entry.source_translated = status & IPS_SRC_NAT;
	entry.destination_translated = status & IPS_DST_NAT;
	entry.timeout = number_of(message, CTA_TIMEOUT);
	reading->take(&entry, reading->context);
}

int conntrack_read(conntrack_take take, void *context, struct cni_error *err)
{
	struct nfgenmsg header = {.nfgen_family = AF_UNSPEC, .version = NFNETLINK_V0};
	struct reading reading = {take, context};
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_NETFILTER, err);
	cleanup_request struct nl_msg *request =
		netlink_begin(NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, NLM_F_DUMP, &header,
			      sizeof(header));

	if (!socket)
		return -1;
	if (!netlink_ask(socket, request, take_message, &reading))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot read the connections of conntrack: %s",
			     strerror(errno));
}

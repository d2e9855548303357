/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nft_trace.c - which rule or policy of nftables drops the packets of one connection. */
#include "operator/kernel/nft_trace.h"

#include <errno.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "nat/nft_rule.h"
#include "net/netlink.h"

#define TABLE "bpf-portmap-doctor"
#define OWNED 2        /* NFT_TABLE_F_OWNER, since Linux 5.12 */
#define INET_INGRESS 5 /* NF_INET_INGRESS, since Linux 5.10 */
#define ANSWER_SIZE 32768

const char *nft_family_word(uint8_t family)
{
	static const char *const words[NFPROTO_NUMPROTO] = {
		[NFPROTO_INET] = "inet",     [NFPROTO_IPV4] = "ip",       [NFPROTO_ARP] = "arp",
		[NFPROTO_NETDEV] = "netdev", [NFPROTO_BRIDGE] = "bridge", [NFPROTO_IPV6] = "ip6",
	};

	return family < NFPROTO_NUMPROTO && words[family] ? words[family] : "?";
}

/* --- the table -------------------------------------------------------------------------- */

static void put_number(struct nl_msg *request, int type, uint32_t number)
{
	nla_put_u32(request, type, htonl(number));
}

struct expression {
	const char *name;
	struct {
		int type;
		uint32_t value;
	} numbers[4]; /* of type 0: no more */
	int data_type;
	const void *data; /* NULL: there is none */
	int size;
};

static void put_expression(struct nl_msg *request, const struct expression *expression)
{
	struct nlattr *element = nla_nest_start(request, NFTA_LIST_ELEM), *inner, *data;

	nla_put_string(request, NFTA_EXPR_NAME, expression->name);
	inner = nla_nest_start(request, NFTA_EXPR_DATA);
	for (size_t i = 0; i < 4 && expression->numbers[i].type; i++)
		put_number(request, expression->numbers[i].type, expression->numbers[i].value);
	if (expression->data) {
		data = nla_nest_start(request, expression->data_type);
		nla_put(request, NFTA_DATA_VALUE, expression->size, expression->data);
		nla_nest_end(request, data);
	}
	nla_nest_end(request, inner);
	nla_nest_end(request, element);
}

/* Follows what has loaded register 1. */
static void put_compare(struct nl_msg *request, const void *value, int size)
{
	put_expression(request,
		       &(struct expression){"cmp",
					    {{NFTA_CMP_SREG, NFT_REG_1}, {NFTA_CMP_OP, NFT_CMP_EQ}},
					    NFTA_CMP_DATA,
					    value,
					    size});
}

static void put_meta(struct nl_msg *request, enum nft_meta_keys key, const void *value, int size)
{
	put_expression(request, &(struct expression){.name = "meta",
						     .numbers = {{NFTA_META_DREG, NFT_REG_1},
								 {NFTA_META_KEY, key}}});
	put_compare(request, value, size);
}

static void put_payload(struct nl_msg *request, enum nft_payload_bases base, uint32_t offset,
			const void *value, int size)
{
	put_expression(request,
		       &(struct expression){.name = "payload",
					    .numbers = {{NFTA_PAYLOAD_DREG, NFT_REG_1},
							{NFTA_PAYLOAD_BASE, base},
							{NFTA_PAYLOAD_OFFSET, offset},
							{NFTA_PAYLOAD_LEN, (uint32_t)size}}});
	put_compare(request, value, size);
}

static void put_nftrace(struct nl_msg *request)
{
	static const uint8_t on = 1;

	put_expression(request, &(struct expression){"immediate",
						     {{NFTA_IMMEDIATE_DREG, NFT_REG_1}},
						     NFTA_IMMEDIATE_DATA,
						     &on,
						     sizeof(on)});
	put_expression(request, &(struct expression){.name = "meta",
						     .numbers = {{NFTA_META_KEY, NFT_META_NFTRACE},
								 {NFTA_META_SREG, NFT_REG_1}}});
}

/* The client's own packets, or those that go to it. */
static void add_rule(struct nft_batch *batch, uint8_t family, const char *chain,
		     const struct nft_traced *traced, bool is_answer)
{
	struct nl_msg *request =
		nft_request_begin(NFT_MSG_NEWRULE, family, NLM_F_CREATE | NLM_F_APPEND);
	bool ipv4 = cni_address_is_ipv4(traced->client);
	uint16_t ethertype = htons(ipv4 ? ETH_P_IP : ETH_P_IPV6), port = htons(traced->client_port);
	uint8_t protocol = traced->protocol;
	uint32_t address = ipv4 ? (is_answer ? 16 : 12) : (is_answer ? 24 : 8);
	struct nlattr *list;

	nla_put_string(request, NFTA_RULE_TABLE, TABLE);
	nla_put_string(request, NFTA_RULE_CHAIN, chain);
	list = nla_nest_start(request, NFTA_RULE_EXPRESSIONS);
	put_meta(request, NFT_META_PROTOCOL, &ethertype, sizeof(ethertype));
	put_meta(request, NFT_META_L4PROTO, &protocol, sizeof(protocol));
	put_payload(request, NFT_PAYLOAD_NETWORK_HEADER, address, traced->client + (ipv4 ? 12 : 0),
		    ipv4 ? 4 : CNI_ADDRESS_SIZE);
	put_payload(request, NFT_PAYLOAD_TRANSPORT_HEADER, is_answer ? 2 : 0, &port, sizeof(port));
	put_nftrace(request);
	nla_nest_end(request, list);
	nft_batch_add(batch, request);
}

/* Before all others at the hook. `device`: NULL where the hook is not one device's. */
static void add_chain(struct nft_batch *batch, uint8_t family, uint32_t hook, const char *device,
		      const struct nft_traced *traced)
{
	struct nl_msg *request = nft_request_begin(NFT_MSG_NEWCHAIN, family, NLM_F_CREATE);
	char name[32];
	struct nlattr *nest;

	snprintf(name, sizeof(name), "hook%u%s", hook, device ? device : "");

	nla_put_string(request, NFTA_CHAIN_TABLE, TABLE);
	nla_put_string(request, NFTA_CHAIN_NAME, name);
	nest = nla_nest_start(request, NFTA_CHAIN_HOOK);
	put_number(request, NFTA_HOOK_HOOKNUM, hook);
	put_number(request, NFTA_HOOK_PRIORITY, (uint32_t)INT_MIN);
	if (device)
		nla_put_string(request, NFTA_HOOK_DEV, device);
	nla_nest_end(request, nest);
	nla_put_string(request, NFTA_CHAIN_TYPE, "filter");
	nft_batch_add(batch, request);
	add_rule(batch, family, name, traced, false);
	add_rule(batch, family, name, traced, true);
}

/* 0, or errno. */
static int make_table(const struct nft_trace *trace, uint8_t family, bool with_devices)
{
	struct nl_msg *request = nft_request_begin(NFT_MSG_NEWTABLE, family, NLM_F_CREATE);
	struct nft_batch batch = {0};

	nla_put_string(request, NFTA_TABLE_NAME, TABLE);
	put_number(request, NFTA_TABLE_FLAGS, OWNED);
	nft_batch_add(&batch, request);
	for (size_t i = 0; i < 2 && with_devices && trace->traced.devices[i]; i++)
		add_chain(&batch, family, INET_INGRESS, trace->traced.devices[i], &trace->traced);
	add_chain(&batch, family, NF_INET_PRE_ROUTING, NULL, &trace->traced);
	add_chain(&batch, family, NF_INET_LOCAL_OUT, NULL, &trace->traced);
	return nft_batch_send(&batch, trace->tables);
}

int nft_trace_open(struct nft_trace *trace, const struct nft_traced *traced, struct cni_error *err)
{
	const struct sockaddr_nl group = {.nl_family = AF_NETLINK,
					  .nl_groups = 1 << (NFNLGRP_NFTRACE - 1)};
	int failed;

	*trace = (struct nft_trace){.traced = *traced};
	if (!netfilter_has("nf_tables"))
		return 0;
	trace->tables = netlink_open(NETLINK_NETFILTER, err);
	trace->events = trace->tables ? netlink_open(NETLINK_NETFILTER, err) : NULL;
	if (!trace->events)
		return -1;
	if (bind(trace->events->fd, (const struct sockaddr *)&group, sizeof(group)))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot listen to what nftables traces: %s", strerror(errno));
	failed = make_table(trace, NFPROTO_INET, true);
	if (failed)
		failed = make_table(trace, NFPROTO_INET, false);
	/* A kernel without tables for bridges has no rules there. */
	if (traced->with_bridges)
		make_table(trace, NFPROTO_BRIDGE, false);
	return failed ? cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				      "cannot have nftables trace packets: %s", strerror(failed))
		      : 0;
}

void nft_trace_close(struct nft_trace *trace)
{
	netlink_close(&trace->tables);
	netlink_close(&trace->events);
}

/* --- what it tells ---------------------------------------------------------------------- */

static bool has_bytes(struct bytes header, size_t offset, const void *wanted, size_t size)
{
	return header.size >= offset + size && !memcmp(header.data + offset, wanted, size);
}

/* The first message of each chain has the packet's headers, and others may have theirs traced. */
static bool is_wanted(const struct nft_traced *traced, struct bytes attributes, bool *is_answer)
{
	bool ipv4 = cni_address_is_ipv4(traced->client);
	const uint8_t *client = traced->client + (ipv4 ? 12 : 0);
	size_t size = ipv4 ? 4 : CNI_ADDRESS_SIZE;
	struct bytes ip = nft_find(attributes, NFTA_TRACE_NETWORK_HEADER);
	struct bytes ports = nft_find(attributes, NFTA_TRACE_TRANSPORT_HEADER);
	uint16_t port = htons(traced->client_port);

	*is_answer = has_bytes(ip, ipv4 ? 16 : 24, client, size) &&
		     has_bytes(ports, 2, &port, sizeof(port));
	return *is_answer || (has_bytes(ip, ipv4 ? 12 : 8, client, size) &&
			      has_bytes(ports, 0, &port, sizeof(port)));
}

static bool drops(struct bytes attributes)
{
	struct bytes verdict = nft_find(attributes, NFTA_TRACE_VERDICT);

	switch (nft_number_at(attributes, NFTA_TRACE_TYPE, NFT_TRACETYPE_UNSPEC)) {
	case NFT_TRACETYPE_POLICY:
		return nft_number_at(attributes, NFTA_TRACE_POLICY, NF_ACCEPT) == NF_DROP;
	case NFT_TRACETYPE_RULE:
		return nft_number_at(verdict, NFTA_VERDICT_CODE, NF_ACCEPT) == NF_DROP;
	default:
		return false;
	}
}

static uint8_t message_family(const struct nlmsghdr *message)
{
	const struct nfgenmsg *fixed = nlmsg_data(message);

	return fixed->nfgen_family;
}

static void take_drop(const struct nlmsghdr *message, struct bytes attributes,
		      struct nft_drop *drop)
{
	uint64_t handle;

	drop->family = message_family(message);
	if (bytes_copy_front(&handle, sizeof(handle), nft_find(attributes, NFTA_TRACE_RULE_HANDLE)))
		drop->handle = be64toh(handle);
	nat_text_copy(drop->table, sizeof(drop->table), nft_find(attributes, NFTA_TRACE_TABLE));
	nat_text_copy(drop->chain, sizeof(drop->chain), nft_find(attributes, NFTA_TRACE_CHAIN));
}

/* Remembers whose packet the messages are about that have no headers. */
struct telling {
	uint32_t id;
	bool wanted, is_answer, is_forward;
};

static bool take_message(const struct nft_traced *traced, const struct nlmsghdr *message,
			 struct telling *telling, struct nft_drop *drop)
{
	struct bytes attributes = {(uint8_t *)nlmsg_attrdata(message, sizeof(struct nfgenmsg)),
				   (size_t)nlmsg_attrlen(message, sizeof(struct nfgenmsg))};
	uint32_t id = nft_number_at(attributes, NFTA_TRACE_ID, 0);

	if (message->nlmsg_type != (NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_TRACE))
		return false;
	if (nft_find(attributes, NFTA_TRACE_NETWORK_HEADER).size) {
		telling->id = id;
		telling->wanted = is_wanted(traced, attributes, &telling->is_answer);
		/* That hook alone knows both interfaces. */
		telling->is_forward = message_family(message) != NFPROTO_BRIDGE &&
				      nft_find(attributes, NFTA_TRACE_IIF).size &&
				      nft_find(attributes, NFTA_TRACE_OIF).size;
	}
	if (telling->id != id || !telling->wanted || !drops(attributes))
		return false;
	*drop = (struct nft_drop){.is_answer = telling->is_answer,
				  .is_forward = telling->is_forward};
	take_drop(message, attributes, drop);
	return true;
}

bool nft_trace_read(struct nft_trace *trace, struct nft_drop *drop)
{
	_Alignas(struct nlmsghdr) uint8_t bytes[ANSWER_SIZE];
	struct telling telling = {0};
	ssize_t length;

	while (trace->events &&
	       (length = recv(trace->events->fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
		struct nlmsghdr *message = (struct nlmsghdr *)bytes;
		int rest = (int)length;

		for (; nlmsg_ok(message, rest); message = nlmsg_next(message, &rest))
			if (take_message(&trace->traced, message, &telling, drop))
				return true;
	}
	return false;
}

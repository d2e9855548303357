/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* xt_rule.c - matches and targets of iptables. */
#include "nat/xt_rule.h"

#include <arpa/inet.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/xt_TPROXY.h>
#include <linux/netfilter/xt_addrtype.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_sctp.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <string.h>

static void take_port_match(struct nat_rule *rule, const uint16_t ports[2], bool inverted)
{
	struct port_range range = {ports[0], ports[1]};

	/* The match is there for something else, the source port say. */
	if (!range.first && range.last == UINT16_MAX)
		return;
	if (inverted)
		nat_rule_exclude_ports(rule, &range);
	else
		nat_rule_limit_ports(rule, &range, 1);
}

static void take_multiport(struct nat_rule *rule, unsigned int revision, struct bytes info)
{
	struct xt_multiport_v1 match = {0};
	struct port_range ranges[XT_MULTI_PORTS];
	size_t count = 0;

	/* Revision 0 is the same without what follows the ports. */
	if (!bytes_copy_front(&match, revision ? sizeof(match) : sizeof(struct xt_multiport),
			      info) ||
	    match.flags == XT_MULTIPORT_SOURCE || match.count > XT_MULTI_PORTS)
		return;
	for (size_t i = 0; i < match.count; i++) {
		struct port_range *range = &ranges[count++];

		*range = (struct port_range){match.ports[i], match.ports[i]};
		if (match.pflags[i] && i + 1 < match.count)
			range->last = match.ports[++i];
	}
	for (size_t i = 0; match.invert && i < count; i++)
		nat_rule_exclude_ports(rule, &ranges[i]);
	if (!match.invert && count)
		nat_rule_limit_ports(rule, ranges, count);
}

/* Whether the match is that the destination is an address of this host, and no more. */
static bool is_local_destination(const char *name, unsigned int revision, struct bytes info)
{
	struct xt_addrtype_info_v1 match;

	return !strcmp(name, "addrtype") && revision == 1 &&
	       bytes_copy_front(&match, sizeof(match), info) && !match.source && !match.flags &&
	       match.dest == XT_ADDRTYPE_LOCAL;
}

void xt_rule_take_match(struct nat_rule *rule, const char *name, unsigned int revision,
			struct bytes info)
{
	static const char *const known[] = {"multiport", "comment", "tcp", "udp", "sctp"};
	size_t i = sizeof(known) / sizeof(known[0]);
	union {
		struct xt_tcp tcp;
		struct xt_udp udp;
		struct xt_sctp_info sctp;
	} match;

	while (i && strcmp(name, known[i - 1]) != 0)
		i--;
	if (!i && is_local_destination(name, revision, info))
		rule->excepts = true;
	else
		rule->restricted |= !i;
	if (!strcmp(name, "multiport"))
		take_multiport(rule, revision, info);
	else if (!strcmp(name, "comment"))
		nat_text_copy(rule->comment, sizeof(rule->comment), info);
	else if (!strcmp(name, "tcp") && bytes_copy_front(&match.tcp, sizeof(match.tcp), info))
		take_port_match(rule, match.tcp.dpts, match.tcp.invflags & XT_TCP_INV_DSTPT);
	else if (!strcmp(name, "udp") && bytes_copy_front(&match.udp, sizeof(match.udp), info))
		take_port_match(rule, match.udp.dpts, match.udp.invflags & XT_UDP_INV_DSTPT);
	else if (!strcmp(name, "sctp") && bytes_copy_front(&match.sctp, sizeof(match.sctp), info) &&
		 match.sctp.flags & XT_SCTP_DEST_PORTS)
		take_port_match(rule, match.sctp.dpts, match.sctp.invflags & XT_SCTP_DEST_PORTS);
}

static void take_tproxy(struct nat_rule *rule, unsigned int revision, struct bytes info)
{
	struct xt_tproxy_target_info_v1 proxy;

	rule->verdict = "tproxy";
	if (!revision || !bytes_copy_front(&proxy, sizeof(proxy), info))
		return;
	cni_address_make(rule->new_address, &proxy.laddr, rule->ipv4 ? 4 : CNI_ADDRESS_SIZE);
	rule->new_port = ntohs(proxy.lport);
}

void xt_rule_take_target(struct nat_rule *rule, const char *name, unsigned int revision,
			 struct bytes info)
{
	struct nf_nat_ipv4_multi_range_compat old;
	struct nf_nat_range range; /* a later revision appends to it */

	if (!strcmp(name, "REDIRECT"))
		rule->verdict = "redirect";
	if (!strcmp(name, "TPROXY"))
		take_tproxy(rule, revision, info);
	if (strcmp(name, "DNAT") != 0)
		return;
	rule->verdict = "dnat";
	if (!revision && rule->ipv4 && bytes_copy_front(&old, sizeof(old), info)) {
		cni_address_make(rule->new_address, &old.range[0].min_ip, 4);
		rule->new_port = ntohs(old.range[0].min.all);
		rule->is_one_of_several = old.range[0].min_ip != old.range[0].max_ip ||
					  old.range[0].min.all != old.range[0].max.all;
	} else if (revision && bytes_copy_front(&range, sizeof(range), info)) {
		cni_address_make(rule->new_address, &range.min_addr,
				 rule->ipv4 ? 4 : CNI_ADDRESS_SIZE);
		rule->new_port = ntohs(range.min_proto.all);
		rule->is_one_of_several =
			memcmp(&range.min_addr, &range.max_addr, sizeof(range.min_addr)) != 0 ||
			range.min_proto.all != range.max_proto.all;
	}
}

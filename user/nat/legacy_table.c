/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* legacy_table.c - a table of iptables-legacy, which the kernel hands out whole, and what its
 * matches and targets say. */
#include "nat/legacy_table.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_TPROXY.h>
#include <linux/netfilter/xt_addrtype.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_sctp.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/io.h"

/* --- what matches and targets say of destinations --------------------------------------------- */

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

#define TRIES 3

/* The structures and numbers of both families are the same. */
_Static_assert(sizeof(struct ipt_getinfo) == sizeof(struct ip6t_getinfo), "getinfo");
_Static_assert(sizeof(struct ipt_get_entries) == sizeof(struct ip6t_get_entries), "get_entries");
_Static_assert(IPT_SO_GET_INFO == IP6T_SO_GET_INFO, "get info");
_Static_assert(IPT_SO_GET_ENTRIES == IP6T_SO_GET_ENTRIES, "get entries");

static int read_entries(struct legacy_table *table, int socket)
{
	struct ipt_getinfo info = {0};
	cleanup_free struct ipt_get_entries *entries = NULL;
	socklen_t length = sizeof(info);
	int level = table->ipv4 ? SOL_IP : SOL_IPV6;

	snprintf(info.name, sizeof(info.name), "%s", table->name);
	if (getsockopt(socket, level, IPT_SO_GET_INFO, &info, &length))
		return -1;
	length = (socklen_t)(sizeof(*entries) + info.size);
	entries = or_exit(calloc(1, length));
	memcpy(entries->name, info.name, sizeof(entries->name));
	entries->size = info.size;
	if (getsockopt(socket, level, IPT_SO_GET_ENTRIES, entries, &length))
		return -1;
	memcpy(table->hook_begin, info.hook_entry, sizeof(table->hook_begin));
	table->valid_hooks = info.valid_hooks;
	table->size = info.size;
	memmove(entries, entries->entrytable, info.size);
	table->entries = (const uint8_t *)TAKE(entries);
	return 0;
}

/* Asking for a table that is not there would make it. */
bool legacy_table_exists(bool ipv4, const char *name)
{
	char names[256] = "\n", line[XT_TABLE_MAXNAMELEN + 2]; /* one a line */

	text_file_read(ipv4 ? "/proc/net/ip_tables_names" : "/proc/net/ip6_tables_names", names + 1,
		       sizeof(names) - 1);
	snprintf(line, sizeof(line), "\n%s\n", name);
	return strstr(names, line);
}

int legacy_table_read(bool ipv4, const char *name, struct legacy_table *table)
{
	cleanup_close int fd = -1;
	int result = -1;

	*table = (struct legacy_table){.name = name, .ipv4 = ipv4};
	/* Any kind serves, and this one needs no right. */
	fd = socket(ipv4 ? AF_INET : AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* EAGAIN: it changed between the two questions. */
	errno = EAGAIN;
	for (int i = 0; i < TRIES && result && errno == EAGAIN; i++)
		result = read_entries(table, fd);
	return result;
}

bool legacy_may_have_portmap(void)
{
	char users[16];

	if (text_file_read("/sys/module/xt_multiport/refcnt", users, sizeof(users)))
		return strcmp(users, "0\n") != 0;
	/* Not built in, and not loaded either. */
	return access("/sys/module/nf_conntrack/initstate", F_OK) != 0;
}

/* An entry: addresses, then matches, then one target. */
struct layout {
	size_t entry_size, target_offset, next_offset, address, mask, source_mask, interfaces,
		address_size, protocol, inverted;
};

static const struct layout layouts[] = {
	[false] = {sizeof(struct ip6t_entry), offsetof(struct ip6t_entry, target_offset),
		   offsetof(struct ip6t_entry, next_offset), offsetof(struct ip6t_entry, ipv6.dst),
		   offsetof(struct ip6t_entry, ipv6.dmsk), offsetof(struct ip6t_entry, ipv6.smsk),
		   offsetof(struct ip6t_entry, ipv6.iniface), 16,
		   offsetof(struct ip6t_entry, ipv6.proto),
		   offsetof(struct ip6t_entry, ipv6.invflags)},
	[true] = {sizeof(struct ipt_entry), offsetof(struct ipt_entry, target_offset),
		  offsetof(struct ipt_entry, next_offset), offsetof(struct ipt_entry, ip.dst),
		  offsetof(struct ipt_entry, ip.dmsk), offsetof(struct ipt_entry, ip.smsk),
		  offsetof(struct ipt_entry, ip.iniface), 4, offsetof(struct ipt_entry, ip.proto),
		  offsetof(struct ipt_entry, ip.invflags)},
};

/* The same numbers in both families. */
_Static_assert(IPT_INV_DSTIP == IP6T_INV_DSTIP, "inverted destination");

static uint16_t number_at(const uint8_t *entry, size_t offset)
{
	uint16_t number;

	memcpy(&number, entry + offset, sizeof(number));
	return number;
}

/* Matches and targets begin alike: size, name, revision. */
struct part {
	char name[XT_EXTENSION_MAXNAMELEN + 1];
	unsigned int revision;
	size_t size;
	struct bytes info;
};

static bool part_read(struct part *part, const uint8_t *at, size_t left)
{
	struct xt_entry_match header;

	if (left < sizeof(header))
		return false;
	memcpy(&header, at, sizeof(header));
	part->size = header.u.user.match_size;
	if (part->size < sizeof(header) || part->size > left)
		return false;
	memcpy(part->name, header.u.user.name, sizeof(header.u.user.name));
	part->name[sizeof(header.u.user.name)] = '\0';
	part->revision = header.u.user.revision;
	part->info = (struct bytes){at + sizeof(header), part->size - sizeof(header)};
	return true;
}

/* The entry's size; 0: there is no whole one. */
static size_t entry_size(const struct legacy_table *table, size_t offset)
{
	const struct layout *layout = &layouts[table->ipv4];
	size_t size;

	if (offset > table->size || table->size - offset < layout->entry_size)
		return 0;
	size = number_at(table->entries + offset, layout->next_offset);
	return size >= layout->entry_size && size <= table->size - offset ? size : 0;
}

static bool target_read(const struct legacy_table *table, size_t offset, size_t size,
			struct part *target)
{
	const struct layout *layout = &layouts[table->ipv4];
	size_t target_offset = number_at(table->entries + offset, layout->target_offset);

	return target_offset >= layout->entry_size && target_offset <= size &&
	       part_read(target, table->entries + offset + target_offset, size - target_offset);
}

/* The hook whose chain begins there, or NULL. */
static const char *hook_name(const struct legacy_table *table, size_t offset)
{
	static const char *const names[LEGACY_HOOKS] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
							"POSTROUTING"};

	for (unsigned int i = 0; i < LEGACY_HOOKS; i++)
		if (table->valid_hooks & 1U << i && table->hook_begin[i] == offset)
			return names[i];
	return NULL;
}

/* Other chains begin behind an entry whose target is ERROR and has their name. */
static void chain_name(const struct legacy_table *table, size_t offset, char *name, size_t room)
{
	size_t head = layouts[table->ipv4].entry_size + sizeof(struct xt_error_target);
	const char *hook = hook_name(table, offset);
	struct part target;

	*name = '\0';
	if (hook)
		snprintf(name, room, "%s", hook);
	else if (offset >= head && entry_size(table, offset - head) == head &&
		 target_read(table, offset - head, head, &target) &&
		 !strcmp(target.name, XT_ERROR_TARGET))
		nat_text_copy(name, room, target.info);
}

bool legacy_chain_find(const struct legacy_table *table, const char *name, size_t *offset)
{
	char found[NAT_NAME_SIZE];
	struct part target;
	size_t size;

	for (size_t at = 0; (size = entry_size(table, at)); at += size) {
		if (!target_read(table, at, size, &target) ||
		    strcmp(target.name, XT_ERROR_TARGET) != 0)
			continue;
		nat_text_copy(found, sizeof(found), target.info);
		*offset = at + size;
		if (!strcmp(found, name))
			return true;
	}
	return false;
}

/* Conditions other than of destination, port and protocol. All interfaces but one, and all
 * destinations but loopback ones, are nearly all. */
static void parse_exceptions(const struct legacy_table *table, const uint8_t *entry,
			     struct nat_rule *rule)
{
	static const uint8_t any[2 * IFNAMSIZ];
	const struct layout *layout = &layouts[table->ipv4];
	const uint8_t *address = entry + layout->address, *in = entry + layout->interfaces;
	uint8_t inverted = entry[layout->inverted];
	bool all_but_one = inverted & IPT_INV_VIA_IN && !memcmp(in + IFNAMSIZ, any, IFNAMSIZ);

	rule->not_loopback = inverted & IPT_INV_DSTIP &&
			     (table->ipv4 ? *address == IN_LOOPBACKNET
					  : IN6_IS_ADDR_LOOPBACK((const void *)address));
	rule->excepts = all_but_one || rule->not_loopback;
	if (all_but_one)
		memcpy(rule->except_interface, in, IFNAMSIZ - 1);
	inverted &= (uint8_t) ~((all_but_one ? IPT_INV_VIA_IN : 0) |
				(rule->not_loopback ? IPT_INV_DSTIP : 0));
	rule->restricted = inverted ||
			   memcmp(entry + layout->source_mask, any, layout->address_size) != 0 ||
			   (!all_but_one && memcmp(in, any, sizeof(any)) != 0);
}

static void parse_entry(const struct legacy_table *table, size_t offset, const struct part *target,
			struct nat_rule *rule)
{
	static const uint8_t any[CNI_ADDRESS_SIZE];
	const struct layout *layout = &layouts[table->ipv4];
	const uint8_t *entry = table->entries + offset, *at = entry + layout->entry_size;
	size_t left = number_at(entry, layout->target_offset) - layout->entry_size;
	uint8_t inverted = entry[layout->inverted];
	struct part part;
	int verdict;

	nat_rule_begin(rule, table->ipv4, !table->ipv4);
	rule->legacy = true;
	snprintf(rule->table, sizeof(rule->table), "%s", table->name);
	rule->family = table->ipv4 ? NFPROTO_IPV4 : NFPROTO_IPV6;
	parse_exceptions(table, entry, rule);
	if (!(inverted & XT_INV_PROTO))
		rule->protocol = (uint8_t)number_at(entry, layout->protocol);
	if (!(inverted & IPT_INV_DSTIP) &&
	    memcmp(entry + layout->mask, any, layout->address_size) != 0)
		nat_rule_limit_address(rule, table->ipv4, entry + layout->address,
				       entry + layout->mask, layout->address_size);
	for (; part_read(&part, at, left); at += part.size, left -= part.size)
		xt_rule_take_match(rule, part.name, part.revision, part.info);
	if (*target->name) {
		xt_rule_take_target(rule, target->name, target->revision, target->info);
	} else if (bytes_copy_front(&verdict, sizeof(verdict), target->info)) {
		/* Where it leads: a chain's first entry, or a negative verdict. */
		rule->jumps = verdict >= 0;
		rule->target_offset = rule->jumps ? (size_t)verdict : 0;
		if (rule->jumps)
			chain_name(table, rule->target_offset, rule->target, sizeof(rule->target));
	}
}

static bool begins_chain(const struct legacy_table *table, size_t offset)
{
	size_t size = entry_size(table, offset);
	struct part target;

	return !size || hook_name(table, offset) || !target_read(table, offset, size, &target) ||
	       !strcmp(target.name, XT_ERROR_TARGET);
}

/* The last entry of a chain is none of its rules: it is the policy, or the end. */
void legacy_chain_parse(const struct legacy_table *table, size_t offset,
			void (*take)(void *context, const struct nat_rule *rule), void *context)
{
	char name[NAT_NAME_SIZE];
	struct nat_rule rule;
	struct part target;
	size_t size;

	chain_name(table, offset, name, sizeof(name));
	for (size_t at = offset; (size = entry_size(table, at)); at += size) {
		if (!target_read(table, at, size, &target) || begins_chain(table, at + size))
			return;
		parse_entry(table, at, &target, &rule);
		memcpy(rule.chain_name, name, sizeof(name));
		take(context, &rule);
	}
}

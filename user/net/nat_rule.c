/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rule.c - what one rule of a NAT table says about the destination of packets. */
#include "net/nat_rule.h"

#include <linux/netfilter/nf_nat.h>
#include <linux/netfilter/x_tables.h>
#include <linux/netfilter/xt_multiport.h>
#include <linux/netfilter/xt_sctp.h>
#include <linux/netfilter/xt_tcpudp.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <stdio.h>
#include <string.h>

#include "lib/text.h"

#define LAST_PORT 65535

void nat_rule_begin(struct nat_rule *rule, bool ipv4, bool ipv6)
{
	*rule = (struct nat_rule){
		.ipv4 = ipv4,
		.ipv6 = ipv6,
		.ports = {{0, LAST_PORT}},
		.range_count = 1,
	};
}

/* What both have. More ranges than fit are left out. */
static void intersect(struct nat_rule *rule, const struct port_range *ranges, size_t count)
{
	struct port_range kept[NAT_RULE_RANGES] = {0};
	size_t kept_count = 0;

	for (size_t i = 0; i < rule->range_count * count && kept_count < NAT_RULE_RANGES; i++) {
		const struct port_range *own = &rule->ports[i / count], *other = &ranges[i % count];
		struct port_range both = {
			.first = own->first > other->first ? own->first : other->first,
			.last = own->last < other->last ? own->last : other->last,
		};

		if (both.first <= both.last)
			kept[kept_count++] = both;
	}
	memcpy(rule->ports, kept, kept_count * sizeof(*kept));
	rule->range_count = kept_count;
}

void nat_rule_limit_ports(struct nat_rule *rule, const struct port_range *ranges, size_t count)
{
	intersect(rule, ranges, count);
	rule->names_port = true;
}

void nat_rule_exclude_ports(struct nat_rule *rule, const struct port_range *range)
{
	struct port_range others[2];
	size_t count = 0;

	if (range->first > range->last)
		return;
	if (range->first > 0)
		others[count++] = (struct port_range){0, (__u16)(range->first - 1)};
	if (range->last < LAST_PORT)
		others[count++] = (struct port_range){(__u16)(range->last + 1), LAST_PORT};
	intersect(rule, others, count);
}

void nat_rule_limit_address(struct nat_rule *rule, bool ipv4, const uint8_t *bytes,
			    const uint8_t *mask, size_t size)
{
	size_t begin = ipv4 ? 12 : 0;

	if (size > CNI_ADDRESS_SIZE - begin)
		return;
	*(ipv4 ? &rule->ipv6 : &rule->ipv4) = false;
	if (ipv4)
		memcpy(rule->address, cni_address_any_ipv4, begin);
	for (size_t i = 0; i < size; i++) {
		rule->mask[begin + i] = mask ? mask[i] : 0xff;
		rule->address[begin + i] = bytes[i] & rule->mask[begin + i];
	}
}

void nat_rule_set_destination(struct nat_rule *rule, const uint8_t *address, size_t size)
{
	memcpy(rule->new_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
	if (size == 4)
		memcpy(rule->new_address + 12, address, size);
	else if (size == CNI_ADDRESS_SIZE)
		memcpy(rule->new_address, address, size);
}

bool bytes_copy_front(void *to, size_t size, struct bytes bytes)
{
	if (bytes.size < size)
		return false;
	memcpy(to, bytes.data, size);
	return true;
}

void nat_text_copy(char *to, size_t room, struct bytes text)
{
	size_t length = text.size ? strnlen((const char *)text.data, text.size) : 0;

	if (length >= room)
		length = room - 1;
	if (length)
		memcpy(to, text.data, length);
	to[length] = '\0';
	cni_printable(to, "");
}

static void take_port_match(struct nat_rule *rule, const uint16_t ports[2], bool inverted)
{
	struct port_range range = {ports[0], ports[1]};

	/* The match is there for something else, the source port say. */
	if (!range.first && range.last == LAST_PORT)
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

void nat_rule_take_match(struct nat_rule *rule, const char *name, unsigned int revision,
			 struct bytes info)
{
	union {
		struct xt_tcp tcp;
		struct xt_udp udp;
		struct xt_sctp_info sctp;
	} match;

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

void nat_rule_take_target(struct nat_rule *rule, const char *name, unsigned int revision,
			  struct bytes info)
{
	struct nf_nat_ipv4_multi_range_compat old;
	struct nf_nat_range range; /* a later revision appends to it */

	if (!strcmp(name, "REDIRECT"))
		rule->translates = true;
	if (strcmp(name, "DNAT") != 0)
		return;
	rule->translates = true;
	if (!revision && rule->ipv4 && bytes_copy_front(&old, sizeof(old), info)) {
		nat_rule_set_destination(rule, (const uint8_t *)&old.range[0].min_ip, 4);
		rule->new_port = ntohs(old.range[0].min.all);
	} else if (revision && bytes_copy_front(&range, sizeof(range), info)) {
		nat_rule_set_destination(rule, (const uint8_t *)&range.min_addr,
					 rule->ipv4 ? 4 : CNI_ADDRESS_SIZE);
		rule->new_port = ntohs(range.min_proto.all);
	}
}

bool nat_rule_has_any_address(const struct nat_rule *rule)
{
	static const uint8_t any[CNI_ADDRESS_SIZE];

	return !memcmp(rule->mask, any, sizeof(any));
}

bool nat_rule_holds_address(const struct nat_rule *rule, const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address) ? !rule->ipv4 : !rule->ipv6)
		return false;
	for (size_t i = 0; i < CNI_ADDRESS_SIZE; i++)
		if ((address[i] & rule->mask[i]) != (rule->address[i] & rule->mask[i]))
			return false;
	return true;
}

bool nat_rule_may_match(const struct nat_rule *rule, uint8_t protocol,
			const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	if (rule->protocol && rule->protocol != protocol)
		return false;
	if (cni_address_is_ipv4(address) ? !rule->ipv4 : !rule->ipv6)
		return false;
	if (!cni_address_is_any(address) && !nat_rule_holds_address(rule, address))
		return false;
	for (size_t i = 0; i < rule->range_count; i++)
		if (rule->ports[i].first <= port && port <= rule->ports[i].last)
			return true;
	return false;
}

/* An entry: addresses, then matches, then one target. */
struct layout {
	size_t entry_size, target_offset, next_offset, address, mask, address_size, protocol,
		inverted;
};

static const struct layout layouts[] = {
	[false] = {sizeof(struct ip6t_entry), offsetof(struct ip6t_entry, target_offset),
		   offsetof(struct ip6t_entry, next_offset), offsetof(struct ip6t_entry, ipv6.dst),
		   offsetof(struct ip6t_entry, ipv6.dmsk), 16,
		   offsetof(struct ip6t_entry, ipv6.proto),
		   offsetof(struct ip6t_entry, ipv6.invflags)},
	[true] = {sizeof(struct ipt_entry), offsetof(struct ipt_entry, target_offset),
		  offsetof(struct ipt_entry, next_offset), offsetof(struct ipt_entry, ip.dst),
		  offsetof(struct ipt_entry, ip.dmsk), 4, offsetof(struct ipt_entry, ip.proto),
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
	static const char *const names[IPT_HOOKS] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
						     "POSTROUTING"};

	for (unsigned int i = 0; i < IPT_HOOKS; i++)
		if (table->hooks.valid & 1U << i && table->hooks.begin[i] == offset)
			return names[i];
	return NULL;
}

/* Other chains begin behind an entry whose target is ERROR and has their name. */
static void chain_name(const struct legacy_table *table, size_t offset, char name[NAT_NAME_SIZE])
{
	const char *hook = hook_name(table, offset);
	size_t at = 0, size = 0;
	struct part target;

	*name = '\0';
	if (hook)
		snprintf(name, NAT_NAME_SIZE, "%s", hook);
	while ((size = entry_size(table, at)) && at + size < offset)
		at += size;
	if (!hook && size && target_read(table, at, size, &target) &&
	    !strcmp(target.name, XT_ERROR_TARGET))
		nat_text_copy(name, NAT_NAME_SIZE, target.info);
}

bool ipt_chain_find(const struct legacy_table *table, const char *name, size_t *offset)
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
	if (!(inverted & XT_INV_PROTO))
		rule->protocol = (uint8_t)number_at(entry, layout->protocol);
	if (!(inverted & IPT_INV_DSTIP) &&
	    memcmp(entry + layout->mask, any, layout->address_size) != 0)
		nat_rule_limit_address(rule, table->ipv4, entry + layout->address,
				       entry + layout->mask, layout->address_size);
	for (; part_read(&part, at, left); at += part.size, left -= part.size)
		nat_rule_take_match(rule, part.name, part.revision, part.info);
	if (*target->name) {
		nat_rule_take_target(rule, target->name, target->revision, target->info);
	} else if (bytes_copy_front(&verdict, sizeof(verdict), target->info)) {
		/* Where it leads: a chain's first entry, or a negative verdict. */
		rule->jumps = verdict >= 0;
		rule->target_offset = rule->jumps ? (size_t)verdict : 0;
	}
}

void ipt_chain_parse(const struct legacy_table *table, size_t offset,
		     void (*take)(void *context, const struct nat_rule *rule), void *context)
{
	char name[NAT_NAME_SIZE];
	struct nat_rule rule;
	struct part target;
	size_t size;

	chain_name(table, offset, name);
	for (size_t at = offset; (size = entry_size(table, at)); at += size) {
		if (!target_read(table, at, size, &target) ||
		    !strcmp(target.name, XT_ERROR_TARGET) || (at != offset && hook_name(table, at)))
			return;
		parse_entry(table, at, &target, &rule);
		memcpy(rule.chain_name, name, sizeof(name));
		take(context, &rule);
	}
}

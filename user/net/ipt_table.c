/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ipt_table.c - the table `nat` of iptables-legacy as the kernel hands it out. */
#include "net/ipt_table.h"

#include <linux/netfilter/x_tables.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
#include <stdio.h>
#include <string.h>

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

static void take_addresses(struct nat_rule *rule, bool ipv4, const uint8_t *entry)
{
	static const uint8_t any[CNI_ADDRESS_SIZE];
	const struct layout *layout = &layouts[ipv4];
	uint8_t inverted = entry[layout->inverted];

	if (!(inverted & XT_INV_PROTO))
		rule->protocol = (uint8_t)number_at(entry, layout->protocol);
	if (!(inverted & IPT_INV_DSTIP) &&
	    memcmp(entry + layout->mask, any, layout->address_size) != 0)
		nat_rule_limit_address(rule, ipv4, entry + layout->address, entry + layout->mask,
				       layout->address_size);
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

static void take_matches(struct nat_rule *rule, const uint8_t *at, size_t left)
{
	struct part part;

	for (; part_read(&part, at, left); at += part.size, left -= part.size)
		nat_rule_take_match(rule, part.name, part.revision, part.info);
}

/* Where a target without a name leads: a chain's first entry, or a negative verdict. */
static void take_jump(struct nat_rule *rule, const struct part *target)
{
	int verdict;

	if (!bytes_copy_front(&verdict, sizeof(verdict), target->info))
		return;
	rule->jumps = verdict >= 0;
	rule->target_offset = rule->jumps ? (size_t)verdict : 0;
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

static void parse_entry(const struct legacy_table *table, size_t offset, const struct part *target,
			struct nat_rule *rule)
{
	const struct layout *layout = &layouts[table->ipv4];
	const uint8_t *entry = table->entries + offset;

	nat_rule_begin(rule, table->ipv4, !table->ipv4);
	take_addresses(rule, table->ipv4, entry);
	take_matches(rule, entry + layout->entry_size,
		     number_at(entry, layout->target_offset) - layout->entry_size);
	if (!*target->name)
		take_jump(rule, target);
	else
		nat_rule_take_target(rule, target->name, target->revision, target->info);
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ipt_table.c - the table `nat` of iptables-legacy as the kernel hands it out. */
#include "net/ipt_table.h"

#include <linux/netfilter/x_tables.h>
#include <linux/netfilter_ipv4/ip_tables.h>
#include <linux/netfilter_ipv6/ip6_tables.h>
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

uint64_t ipt_chain_number(bool ipv4, size_t offset)
{
	return 1ULL << 63 | (uint64_t)ipv4 << 62 | offset;
}

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
	const uint8_t *info;
	size_t info_size, size;
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
	part->info = at + sizeof(header);
	part->info_size = part->size - sizeof(header);
	return true;
}

static void take_matches(struct nat_rule *rule, const uint8_t *at, size_t left)
{
	struct part part;

	for (; part_read(&part, at, left); at += part.size, left -= part.size)
		nat_rule_take_match(rule, part.name, part.revision, part.info, part.info_size);
}

/* The chain that entries belong to. */
struct chain {
	uint64_t number;
	char name[NAT_NAME_SIZE];
};

/* Where a target without a name leads: a chain's first entry, or a negative verdict. */
static void take_jump(struct nat_rule *rule, bool ipv4, const struct part *target)
{
	int verdict;

	if (target->info_size < sizeof(verdict))
		return;
	memcpy(&verdict, target->info, sizeof(verdict));
	if (verdict >= 0)
		rule->target = ipt_chain_number(ipv4, (size_t)verdict);
}

static void find_hook(const struct ipt_hooks *hooks, bool ipv4, size_t offset, struct chain *chain)
{
	static const char *const names[IPT_HOOKS] = {"PREROUTING", "INPUT", "FORWARD", "OUTPUT",
						     "POSTROUTING"};

	for (unsigned int i = 0; i < IPT_HOOKS; i++)
		if (hooks->valid & 1U << i && hooks->begin[i] == offset) {
			chain->number = ipt_chain_number(ipv4, offset);
			nat_text_copy(chain->name, sizeof(chain->name), names[i], strlen(names[i]));
		}
}

/* One entry. One with the target ERROR has the name of the chain that begins behind it. */
static bool parse_entry(bool ipv4, const uint8_t *entry, size_t offset_behind, struct chain *chain,
			struct nat_rule *rule)
{
	const struct layout *layout = &layouts[ipv4];
	size_t target_offset = number_at(entry, layout->target_offset);
	size_t size = number_at(entry, layout->next_offset);
	struct part target;

	if (target_offset < layout->entry_size || target_offset > size ||
	    !part_read(&target, entry + target_offset, size - target_offset))
		return false;
	if (!strcmp(target.name, XT_ERROR_TARGET)) {
		chain->number = ipt_chain_number(ipv4, offset_behind);
		nat_text_copy(chain->name, sizeof(chain->name), target.info, target.info_size);
		return false;
	}
	nat_rule_begin(rule, ipv4, !ipv4);
	rule->chain = chain->number;
	memcpy(rule->chain_name, chain->name, sizeof(rule->chain_name));
	take_addresses(rule, ipv4, entry);
	take_matches(rule, entry + layout->entry_size, target_offset - layout->entry_size);
	if (!*target.name)
		take_jump(rule, ipv4, &target);
	else
		nat_rule_take_target(rule, target.name, target.revision, target.info,
				     target.info_size);
	return true;
}

void ipt_table_parse(bool ipv4, const struct ipt_hooks *hooks, const uint8_t *entries, size_t size,
		     bool (*take)(void *context, const struct nat_rule *rule), void *context)
{
	const struct layout *layout = &layouts[ipv4];
	struct chain chain = {0};
	struct nat_rule rule;
	size_t length;

	for (size_t offset = 0; size - offset >= layout->entry_size; offset += length) {
		length = number_at(entries + offset, layout->next_offset);
		if (length < layout->entry_size || length > size - offset)
			return;
		find_hook(hooks, ipv4, offset, &chain);
		if (parse_entry(ipv4, entries + offset, offset + length, &chain, &rule) &&
		    !take(context, &rule))
			return;
	}
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_rule.c - what one rule of a NAT table says about the destination of packets. */
#include "nat/nat_rule.h"

#include <string.h>

#include "lib/text.h"

void nat_rule_begin(struct nat_rule *rule, bool ipv4, bool ipv6)
{
	*rule = (struct nat_rule){
		.ipv4 = ipv4,
		.ipv6 = ipv6,
		.ports = {{0, UINT16_MAX}},
		.range_count = 1,
	};
}

/* What both have. More ranges than fit are left out. */
static void intersect_ports(struct nat_rule *rule, const struct port_range *ranges, size_t count)
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
	intersect_ports(rule, ranges, count);
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
	if (range->last < UINT16_MAX)
		others[count++] = (struct port_range){(__u16)(range->last + 1), UINT16_MAX};
	intersect_ports(rule, others, count);
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
	size_t i = 0;

	while (i < rule->range_count && (port < rule->ports[i].first || rule->ports[i].last < port))
		i++;
	if (i == rule->range_count || (rule->protocol && rule->protocol != protocol))
		return false;
	if (cni_address_is_ipv4(address) ? !rule->ipv4 : !rule->ipv6)
		return false;
	return cni_address_is_any(address) || nat_rule_holds_address(rule, address);
}

bool nat_rule_limit_to(struct nat_rule *rule, const struct nat_rule *outer)
{
	bool has_any = nat_rule_has_any_address(rule);

	rule->ipv4 &= outer->ipv4;
	rule->ipv6 &= outer->ipv6;
	rule->restricted |= outer->restricted;
	rule->excepts |= outer->excepts;
	rule->not_loopback |= outer->not_loopback;
	if (!*rule->except_interface)
		memcpy(rule->except_interface, outer->except_interface, IFNAMSIZ);
	intersect_ports(rule, outer->ports, outer->range_count);
	if (rule->protocol && outer->protocol && rule->protocol != outer->protocol)
		return false;
	if (!rule->protocol)
		rule->protocol = outer->protocol;
	if (has_any) {
		memcpy(rule->address, outer->address, sizeof(rule->address));
		memcpy(rule->mask, outer->mask, sizeof(rule->mask));
	}
	return rule->range_count && (rule->ipv4 || rule->ipv6);
}

static bool may_take_at(const struct nat_rule *rule, const struct portmap_key *key,
			const uint8_t address[CNI_ADDRESS_SIZE])
{
	/* No packet from outside has a loopback destination. */
	return nat_rule_may_match(rule, key->protocol, address, key->host_port) &&
	       !((rule->not_loopback || rule->hooks == NAT_FROM_OUTSIDE) &&
		 cni_address_is_loopback(address));
}

bool nat_rule_may_take(const struct nat_rule *rule, const struct portmap_key *key,
		       const struct nat_asked *asked)
{
	if (!may_take_at(rule, key, key->host_address))
		return false;
	if (!cni_address_is_any(key->host_address) || nat_rule_has_any_address(rule))
		return true;
	for (size_t i = 0; i < asked->address_count; i++)
		if (may_take_at(rule, key, asked->addresses[i]))
			return true;
	return false;
}

/* The first key with this port, or a higher one. */
static size_t first_key(const struct nat_asked *asked, uint16_t port)
{
	size_t low = 0, high = asked->key_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (asked->keys[middle].host_port < port)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool nat_rule_is_asked_for(const struct nat_rule *rule, const struct nat_asked *asked)
{
	for (size_t i = 0; i < rule->range_count; i++)
		for (size_t j = first_key(asked, rule->ports[i].first);
		     j < asked->key_count && asked->keys[j].host_port <= rule->ports[i].last; j++)
			if (nat_rule_may_take(rule, &asked->keys[j], asked))
				return true;
	return false;
}

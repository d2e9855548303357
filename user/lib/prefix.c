/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prefix.c - subnets, written as ADDRESS/LENGTH.
 */
#include "lib/prefix.h"

#include <stdio.h>
#include <string.h>

#define WHOLE_LENGTH 127 /* from here on each address is an interface's (RFC 3021, RFC 6164) */

/* The first or the last address with the prefix. */
static void fill_host(const struct prefix *prefix, bool ones, uint8_t address[CNI_ADDRESS_SIZE])
{
	memcpy(address, prefix->address, CNI_ADDRESS_SIZE);
	cni_address_fill(address, prefix->length, ones);
}

int prefix_parse(const char *text, struct prefix *prefix)
{
	struct prefix parsed;

	if (cni_address_parse_cidr(text, parsed.address, &parsed.length))
		return -1;
	if (cni_address_is_ipv4(parsed.address))
		parsed.length = (uint8_t)(parsed.length + PREFIX_IPV4_BITS);
	cni_address_fill(parsed.address, parsed.length, false);
	*prefix = parsed;
	return 0;
}

bool prefix_is_ipv4(const struct prefix *prefix)
{
	return cni_address_is_ipv4(prefix->address) && prefix->length >= PREFIX_IPV4_BITS;
}

int prefix_own_length(const struct prefix *prefix)
{
	return prefix_is_ipv4(prefix) ? prefix->length - PREFIX_IPV4_BITS : prefix->length;
}

const char *prefix_format(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	snprintf(text, PREFIX_TEXT_SIZE, "%s/%d", cni_address_format(prefix->address, address),
		 prefix_own_length(prefix));
	return text;
}

char *prefix_format_name(const struct prefix *prefix, char text[PREFIX_TEXT_SIZE])
{
	prefix_format(prefix, text);
	for (char *c = text; *c; c++)
		*c = (char)(*c == ':' ? '-' : *c == '/' ? '_' : *c);
	return text;
}

bool prefix_contains(const struct prefix *prefix, const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_has_prefix(address, prefix->address,
				      (unsigned int)prefix_own_length(prefix));
}

bool prefix_overlaps(const struct prefix *one, const struct prefix *other)
{
	return one->length <= other->length ? prefix_contains(one, other->address)
					    : prefix_contains(other, one->address);
}

bool prefix_equals(const struct prefix *one, const struct prefix *other)
{
	return one->length == other->length &&
	       !memcmp(one->address, other->address, CNI_ADDRESS_SIZE);
}

/* To the next address, or to the one before. */
static void step_address(uint8_t address[CNI_ADDRESS_SIZE], int by)
{
	uint8_t overflow = by > 0 ? 0 : 0xff;

	for (int i = CNI_ADDRESS_SIZE - 1; i >= 0; i--) {
		address[i] = (uint8_t)(address[i] + by);
		if (address[i] != overflow)
			return;
	}
}

void prefix_usable(const struct prefix *whole, const struct prefix *part,
		   uint8_t first[CNI_ADDRESS_SIZE], uint8_t last[CNI_ADDRESS_SIZE])
{
	uint8_t end[CNI_ADDRESS_SIZE];

	fill_host(part, false, first);
	fill_host(part, true, last);
	fill_host(whole, true, end);
	if (whole->length >= WHOLE_LENGTH)
		return;
	if (!memcmp(first, whole->address, CNI_ADDRESS_SIZE))
		step_address(first, 1);
	if (prefix_is_ipv4(whole) && !memcmp(last, end, CNI_ADDRESS_SIZE))
		step_address(last, -1);
}

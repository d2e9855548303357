/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* addresses.c - lists of addresses, and of address ranges, some of them exceptions. */
#include "conf/addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define IPV4_PREFIX_BITS 96
#define RANGE_TEXT_SIZE (CNI_ADDRESS_TEXT_SIZE + sizeof("!/128"))

/* Multicast, or IPv4 reserved or broadcast. */
static bool is_group_or_reserved(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return cni_address_is_ipv4(address) ? address[12] >= 224 : address[0] == 0xff;
}

bool conf_is_never_mapped(const uint8_t address[CNI_ADDRESS_SIZE])
{
	return is_group_or_reserved(address) ||
	       (!cni_address_is_ipv4(address) && cni_address_is_link_local(address));
}

/* Returns the length in all of the 128 bits. */
static unsigned int whole_prefix_length(const struct address_range *range)
{
	return range->prefix_length + (cni_address_is_ipv4(range->address) ? IPV4_PREFIX_BITS : 0U);
}

bool conf_ranges_hold(const struct address_range *ranges, size_t count,
		      const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (size_t i = 0; i < count; i++)
		if (cni_address_has_prefix(address, ranges[i].address, ranges[i].prefix_length))
			return !ranges[i].exception;
	return false;
}

static const char *format_range(const struct address_range *range, char text[RANGE_TEXT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE];

	snprintf(text, RANGE_TEXT_SIZE, "%s%s/%u", range->exception ? "!" : "",
		 cni_address_format(range->address, address), range->prefix_length);
	return text;
}

/* The longest prefix first, then by address, so that equal ranges stand together. */
static int compare_ranges(const void *left, const void *right)
{
	const struct address_range *a = left, *b = right;
	unsigned int length_a = whole_prefix_length(a), length_b = whole_prefix_length(b);

	if (length_a != length_b)
		return length_a > length_b ? -1 : 1;
	return memcmp(a->address, b->address, sizeof(a->address));
}

struct range_list {
	struct address_range *ranges;
	size_t count;
	const struct given *given;
};

static const char *add_range(void *field, const char *text)
{
	struct range_list *list = field;
	struct address_range *range = &list->ranges[list->count], written;
	const char *address = text + (*text == '!');
	char taken[RANGE_TEXT_SIZE];

	*range = (struct address_range){.exception = *text == '!'};
	if (strchr(address, '/')
		    ? cni_address_parse_cidr(address, range->address, &range->prefix_length)
		    : cni_address_parse(address, range->address))
		return "is no range of addresses";
	if (!strchr(address, '/'))
		range->prefix_length = cni_address_is_ipv4(range->address) ? 32 : 128;
	written = *range;
	cni_address_fill(range->address, whole_prefix_length(range), false);
	if (memcmp(&written, range, sizeof(written)))
		conf_warn(list->given->warnings, "\"%s\"[%zu] is \"%s\", which is taken as \"%s\"",
			  list->given->key, list->count, text, format_range(range, taken));
	list->count++;
	return NULL;
}

int conf_read_ranges(struct address_range ranges[POLICY_RANGES], __u8 *count,
		     const struct given *given, bool one_is_none, struct cni_error *err)
{
	static const struct string_list strings = {
		.most = POLICY_RANGES,
		.advice =
			"give it as \"10.0.0.0/8\", \"fd00::/8\" or \"192.0.2.1\", an exception as "
			"\"!10.1.0.0/16\"",
		.add = add_range,
	};
	struct range_list list = {ranges, 0, given};
	char text[RANGE_TEXT_SIZE];
	size_t exceptions = 0;
	__u8 kept = 0;

	if (option_read_strings(given, &strings, &list, err))
		return -1;
	/* Each range stays once. */
	qsort(ranges, list.count, sizeof(*ranges), compare_ranges);
	for (size_t i = 0; i < list.count; i++) {
		struct address_range *last = kept ? &ranges[kept - 1] : NULL;

		if (!last || compare_ranges(last, &ranges[i])) {
			exceptions += ranges[i].exception;
			ranges[kept++] = ranges[i];
		} else if (last->exception != ranges[i].exception) {
			last->exception = 0;
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\" has \"%s\" and, as an exception, \"!%s\": "
					     "remove one of the two",
					     given->key, format_range(last, text), text);
		}
	}
	memset(&ranges[kept], 0, (list.count - kept) * sizeof(*ranges));
	*count = kept;
	if (one_is_none && kept && exceptions == kept)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" has nothing but exceptions: add what they are "
				     "exceptions of, such as \"0.0.0.0/0\" and \"::/0\"",
				     given->key);
	/* An exception is one of the next larger range, or it is none. */
	for (__u8 i = 0; i < kept; i++)
		if (ranges[i].exception &&
		    !conf_ranges_hold(&ranges[i + 1], kept - i - 1U, ranges[i].address))
			conf_warn(given->warnings,
				  "\"%s\": \"%s\" has no effect: its addresses are left out anyway",
				  given->key, format_range(&ranges[i], text));
	return 0;
}

/* NULL, or what keeps it from being a source on the network. */
static const char *find_source_fault(const char *text, uint8_t address[CNI_ADDRESS_SIZE])
{
	bool ipv4;

	if (cni_address_parse(text, address))
		return "is no IP address";
	ipv4 = cni_address_is_ipv4(address);
	if (ipv4 && strchr(text, ':'))
		return "is an IPv4 address in IPv6 notation";
	if (cni_address_is_loopback(address))
		return "is a loopback address";
	if (ipv4 ? address[12] == 0 : !memcmp(address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		return "is an unspecified address";
	if (is_group_or_reserved(address))
		return "is the address of a group or reserved";
	return cni_address_is_link_local(address) ? "is link-local" : NULL;
}

static const char *add_source(void *field, const char *text)
{
	struct policy *policy = field;
	uint8_t address[CNI_ADDRESS_SIZE];
	const char *fault = find_source_fault(text, address);
	bool ipv4 = !fault && cni_address_is_ipv4(address);
	__u8(*sources)[CNI_ADDRESS_SIZE] = ipv4 ? policy->sources4 : policy->sources6;
	__u8 *count = ipv4 ? &policy->source4_count : &policy->source6_count;

	/* Twice in the list would be chosen twice as often. */
	for (__u8 i = 0; !fault && i < *count; i++)
		if (!memcmp(sources[i], address, CNI_ADDRESS_SIZE))
			return NULL;
	if (fault || *count == POLICY_ADDRESSES)
		return fault ? fault : "is one more than the 8 that are possible of each family";
	memcpy(sources[(*count)++], address, CNI_ADDRESS_SIZE);
	return NULL;
}

int conf_read_sources(struct policy *policy, const struct given *given, struct cni_error *err)
{
	static const struct string_list strings = {
		.most = SIZE_MAX,
		.advice =
			"give an address of the host, such as \"203.0.113.7\" or \"2001:db8::7\", "
			"without prefix length",
		.add = add_source,
	};

	return option_read_strings(given, &strings, policy, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_ranges.c - lists of address ranges, some of them exceptions.
 */
#include "plugin/conf_ranges.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cni/json.h"

#define IPV4_PREFIX_BITS 96
#define RANGE_TEXT_SIZE (CNI_ADDRESS_TEXT_SIZE + sizeof("!/128"))

/* In all of the 128 bits. */
static unsigned int whole_prefix_length(const struct address_range *range)
{
	return range->prefix_length + (cni_address_is_ipv4(range->address) ? IPV4_PREFIX_BITS : 0U);
}

static void clear_bits_behind(uint8_t address[CNI_ADDRESS_SIZE], unsigned int length)
{
	for (unsigned int i = 0; i < CNI_ADDRESS_SIZE; i++) {
		unsigned int kept = length > 8 * i ? length - 8 * i : 0;

		if (kept < 8)
			address[i] &= (uint8_t)(0xff00 >> kept);
	}
}

static bool range_holds(const struct address_range *range, const uint8_t address[CNI_ADDRESS_SIZE])
{
	uint8_t prefix[CNI_ADDRESS_SIZE];

	/* ::/0 is IPv6 alone. */
	if (cni_address_is_ipv4(range->address) != cni_address_is_ipv4(address))
		return false;
	memcpy(prefix, address, sizeof(prefix));
	clear_bits_behind(prefix, whole_prefix_length(range));
	return !memcmp(prefix, range->address, sizeof(prefix));
}

bool conf_ranges_hold(const struct address_range *ranges, size_t count,
		      const uint8_t address[CNI_ADDRESS_SIZE])
{
	for (size_t i = 0; i < count; i++)
		if (range_holds(&ranges[i], address))
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

static int parse_range(const char *text, struct address_range *range)
{
	*range = (struct address_range){.exception = *text == '!'};
	text += range->exception;
	if (strchr(text, '/'))
		return cni_address_parse_cidr(text, range->address, &range->prefix_length);
	if (cni_address_parse(text, range->address))
		return -1;
	range->prefix_length = cni_address_is_ipv4(range->address) ? 32 : 128;
	return 0;
}

static int refuse_range(const char *key, size_t index, const char *text, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\"[%zu] is \"%s\", which is no range of addresses: give it as "
			     "\"10.0.0.0/8\", \"fd00::/8\" or \"192.0.2.1\", an exception as "
			     "\"!10.1.0.0/16\"",
			     key, index, text);
}

static int read_range(struct conf *conf, const json_t *element, const char *key, size_t index,
		      struct address_range *range, struct cni_error *err)
{
	char meant[RANGE_TEXT_SIZE];
	struct address_range given;
	const char *text;

	if (cni_json_get_string_element(element, key, index, &text, err))
		return -1;
	if (parse_range(text, range))
		return refuse_range(key, index, text, err);
	given = *range;
	clear_bits_behind(range->address, whole_prefix_length(range));
	if (!memcmp(&given, range, sizeof(given)))
		return 0;
	return conf_warn(conf, err, "\"%s\"[%zu] is \"%s\", which is taken as \"%s\"", key, index,
			 text, format_range(range, meant));
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

/* Leaves each range once. */
static int unite_ranges(struct address_range *ranges, __u8 *count, const char *key,
			struct cni_error *err)
{
	char text[RANGE_TEXT_SIZE];
	__u8 kept = 0;

	qsort(ranges, *count, sizeof(*ranges), compare_ranges);
	for (__u8 i = 0; i < *count; i++) {
		struct address_range *last = kept ? &ranges[kept - 1] : NULL;

		if (!last || compare_ranges(last, &ranges[i])) {
			ranges[kept++] = ranges[i];
		} else if (last->exception != ranges[i].exception) {
			last->exception = 0;
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\" has \"%s\" and, as an exception, \"!%s\": "
					     "remove one of the two",
					     key, format_range(last, text), text);
		}
	}
	memset(&ranges[kept], 0, (*count - kept) * sizeof(*ranges));
	*count = kept;
	return 0;
}

/* An exception is one of the next larger range, or it is none. */
int conf_warn_of_idle_exceptions(struct conf *conf, const char *key,
				 const struct address_range *ranges, size_t count,
				 struct cni_error *err)
{
	char text[RANGE_TEXT_SIZE];

	for (size_t i = 0; i < count; i++)
		if (ranges[i].exception &&
		    !conf_ranges_hold(&ranges[i + 1], count - i - 1, ranges[i].address) &&
		    conf_warn(conf, err,
			      "\"%s\": \"%s\" has no effect: its addresses are left out anyway",
			      key, format_range(&ranges[i], text)))
			return -1;
	return 0;
}

int conf_read_ranges(struct conf *conf, const json_t *config, const char *key,
		     struct address_range ranges[POLICY_RANGES], __u8 *count, struct cni_error *err)
{
	json_t *array = NULL;
	json_t *element;
	size_t index;

	*count = 0;
	if (cni_json_get_array(config, key, &array, err))
		return -1;
	if (json_array_size(array) > POLICY_RANGES)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" has %zu entries, at most %d are possible: unite "
				     "neighbouring ranges",
				     key, json_array_size(array), POLICY_RANGES);
	json_array_foreach (array, index, element) {
		if (read_range(conf, element, key, index, &ranges[index], err))
			return -1;
		++*count;
	}
	return unite_ranges(ranges, count, key, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* addresses.c - lists of addresses, and of address ranges, some of them exceptions; portmap's
 * conditions as such lists. */
#include "conf/addresses.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/address.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/text.h"

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

/* --- portmap's conditions ------------------------------------------------------------------- */

#define ALL_IPV4 "0.0.0.0/0"
#define ALL_IPV6 "::/0"

enum { MATCH_SOURCE, MATCH_DESTINATION, MATCH_INTERFACE, MATCH_COUNT };

static const struct match {
	const char *words[3]; /* iptables' for it */
	/* The key for what shall match, and the one for what shall not */
	const char *key, *negated;
} matches[MATCH_COUNT] = {
	[MATCH_SOURCE] = {{"-s", "--source", "--src"}, "sourceRanges", "sourceRanges"},
	[MATCH_DESTINATION] = {{"-d", "--destination", "--dst"}, "excludeCIDRs", "excludeCIDRs"},
	[MATCH_INTERFACE] = {{"-i", "--in-interface", NULL}, "uplinks", "excludeInterfaces"},
};

/* What the words at hand say: "!" perhaps, a match, its value. */
struct condition {
	int match;
	bool negated;
	const char *value;
};

static const char *word_at(const json_t *conditions, size_t *next)
{
	const char *word = json_string_value(json_array_get(conditions, *next));

	*next += word != NULL;
	return word ? word : "";
}

static bool is_match(const struct match *match, const char *word)
{
	for (size_t i = 0; i < sizeof(match->words) / sizeof(match->words[0]); i++)
		if (match->words[i] && !strcmp(match->words[i], word))
			return true;
	return false;
}

static bool read_condition(const json_t *conditions, size_t *next, struct condition *condition)
{
	const char *word = word_at(conditions, next);

	condition->negated = !strcmp(word, "!");
	if (condition->negated)
		word = word_at(conditions, next);
	for (condition->match = 0; condition->match < MATCH_COUNT; condition->match++)
		if (is_match(&matches[condition->match], word))
			break;
	condition->value = word_at(conditions, next);
	return condition->match < MATCH_COUNT && *condition->value;
}

/* "10.0.0.0/8,192.0.2.1" */
static json_t *split(const char *value)
{
	json_t *list = json_array();

	for (size_t length; *value; value += length + (value[length] == ',')) {
		length = strcspn(value, ",");
		json_array_append_new(list, json_stringn(value, length));
	}
	return list;
}

/* iptables' "eth+" is our "eth*". False: the name would be another one to us. */
static bool translate_names(json_t *list)
{
	json_t *element;
	size_t i;

	json_array_foreach (list, i, element) {
		const char *name = json_string_value(element);
		size_t length = strlen(name);

		if (strpbrk(name, "*?["))
			return false;
		if (length && name[length - 1] == '+')
			json_array_set_new(list, i, json_sprintf("%.*s*", (int)length - 1, name));
	}
	return true;
}

/* iptables also knows names of hosts, and masks as 255.255.0.0, which no option of ours does. */
static bool are_ranges(const json_t *list)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	const json_t *element;
	struct prefix prefix;
	size_t i;

	json_array_foreach (list, i, element)
		if (cni_address_parse(json_string_value(element), address) &&
		    prefix_parse(json_string_value(element), &prefix))
			return false;
	return true;
}

/* All but these: an exception for each, of all addresses of the family. */
static json_t *invert(json_t *list, const char *all)
{
	json_t *inverted = json_pack("[s]", all);
	const json_t *element;
	size_t i;

	json_array_foreach (list, i, element)
		json_array_append_new(inverted, json_sprintf("!%s", json_string_value(element)));
	json_decref(list);
	return inverted;
}

/* Returns what it names, as our options have it. NULL: they cannot. */
static json_t *read_value(const struct condition *condition, const char *all)
{
	bool is_interface = condition->match == MATCH_INTERFACE;
	json_t *list = is_interface ? json_pack("[s]", condition->value) : split(condition->value);

	if (!list || !(is_interface ? translate_names(list) : are_ranges(list))) {
		json_decref(list);
		return NULL;
	}
	/* Clients are named that may, addresses that may not. */
	if ((condition->match == MATCH_SOURCE && condition->negated) ||
	    (condition->match == MATCH_DESTINATION && !condition->negated))
		list = invert(list, all);
	return list;
}

/* Adds it to what the other family's conditions have. Ours about interfaces are for both families:
 * where both name some, these must be the same. */
static bool add_value(json_t *keys, const struct condition *condition, json_t *list)
{
	const struct match *match = &matches[condition->match];
	const char *key = condition->negated ? match->negated : match->key;
	json_t *present = json_object_get(keys, key);

	if (condition->match == MATCH_INTERFACE &&
	    (json_object_get(keys, match->key) || json_object_get(keys, match->negated)))
		return present && json_equal(present, list);
	return present ? !json_array_extend(present, list) : !json_object_set(keys, key, list);
}

/* Adds one family's. Returns false where no key of ours does the same: two of one kind must both
 * hold, which one list cannot say. */
static bool translate(json_t *keys, const json_t *conditions, const char *all, bool *has_source)
{
	bool seen[MATCH_COUNT] = {false};
	struct condition condition;

	for (size_t next = 0; next < json_array_size(conditions);) {
		cleanup_json json_t *list = NULL;

		if (!read_condition(conditions, &next, &condition) || seen[condition.match])
			return false;
		seen[condition.match] = true;
		list = read_value(&condition, all);
		if (!list || !add_value(keys, &condition, list))
			return false;
	}
	*has_source = seen[MATCH_SOURCE];
	return true;
}

json_t *conditions_translate(const json_t *config)
{
	cleanup_json json_t *keys = or_exit(json_object());
	bool source4, source6;

	if (!translate(keys, cni_json_get(config, "conditionsV4"), ALL_IPV4, &source4) ||
	    !translate(keys, cni_json_get(config, "conditionsV6"), ALL_IPV6, &source6))
		return NULL;
	/* A list with ranges of one family lets in nobody of the other one. */
	if (source4 != source6)
		json_array_append_new(json_object_get(keys, "sourceRanges"),
				      json_string(source4 ? ALL_IPV6 : ALL_IPV4));
	return json_incref(keys);
}

char *conditions_print(const json_t *keys)
{
	cleanup_free char *text = or_exit(json_dumps(keys, 0));

	/* Without its braces. */
	return or_exit(cni_format("%.*s", (int)strlen(text) - 2, text + 1));
}

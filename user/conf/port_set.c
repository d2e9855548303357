/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_set.c - sets of ports. */
#include "conf/port_set.h"

#include <string.h>

#include "lib/json.h"

#define PORTS 65536

/* Those of the range's bits that are in one word. */
static uint64_t bits_in(unsigned int word, struct port_range range)
{
	unsigned int low = word * 64, high = low + 63;

	if (low < range.first)
		low = range.first;
	if (high > range.last)
		high = range.last;
	return (~0ULL << low % 64) & (~0ULL >> (63 - high % 64));
}

void port_set_add(struct port_set *set, struct port_range range)
{
	for (unsigned int word = range.first / 64; word <= range.last / 64U; word++)
		set->words[word] |= bits_in(word, range);
}

void port_set_remove(struct port_set *set, struct port_range range)
{
	for (unsigned int word = range.first / 64; word <= range.last / 64U; word++)
		set->words[word] &= ~bits_in(word, range);
}

/* The next port that is in the set, or is not; PORTS: there is none. */
static unsigned int find_next(const struct port_set *set, unsigned int from, bool wanted)
{
	for (; from < PORTS; from = (from | 63) + 1) {
		uint64_t word = wanted ? set->words[from / 64] : ~set->words[from / 64];

		word &= ~0ULL << from % 64;
		if (word)
			return (from & ~63U) + (unsigned int)__builtin_ctzll(word);
	}
	return PORTS;
}

struct port_range port_set_next(const struct port_set *set, unsigned int from)
{
	unsigned int first = find_next(set, from, true);

	if (first == PORTS)
		return (struct port_range){0, 0};
	return (struct port_range){(__u16)first, (__u16)(find_next(set, first, false) - 1)};
}

/* At most five digits; 0: not a port. */
static __u16 parse_port(const char **text)
{
	size_t digits = strspn(*text, "0123456789");
	unsigned int port = 0;

	if (digits > 5)
		return 0;
	for (; digits; digits--)
		port = port * 10 + (unsigned int)(*(*text)++ - '0');
	return port < PORTS ? (__u16)port : 0;
}

const char *port_range_parse(const char *text, struct port_range *range)
{
	range->first = range->last = parse_port(&text);
	if (range->first && *text == '-') {
		text++;
		range->last = parse_port(&text);
	}
	return range->first && range->last ? text : NULL;
}

void port_set_change_by_list(struct port_set *set, const char *list,
			     void (*change)(struct port_set *set, struct port_range range))
{
	struct port_range range;

	while (*list) {
		if (port_range_parse(list, &range) && range.first <= range.last)
			change(set, range);
		list += strcspn(list, ",");
		list += *list == ',';
	}
}

static int set_port_error(const char *key, const json_t *value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\": %s is not a list of ports: give 1 to 65535 as "
			     "\"1024-32767\", \"5000\" or \"1024-2000,3000-4000\"",
			     key, cni_json_describe(value, found));
}

static int add_value(struct port_set *set, const char *key, const json_t *value,
		     struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];
	json_int_t port = json_integer_value(value);
	const char *text = json_string_value(value);
	struct port_range range;

	if (json_is_integer(value)) {
		if (port < 1 || port >= PORTS)
			return set_port_error(key, value, err);
		port_set_add(set, (struct port_range){(__u16)port, (__u16)port});
		return 0;
	}
	if (!text)
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "\"%s\" must be a string, an integer or an array of "
				     "those, found %s",
				     key, cni_json_describe(value, found));
	for (;; text++) {
		text = port_range_parse(text, &range);
		if (!text || (*text && *text != ','))
			return set_port_error(key, value, err);
		if (range.last < range.first)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\": \"%u-%u\" ends before it begins", key,
					     range.first, range.last);
		port_set_add(set, range);
		if (!*text)
			return 0;
	}
}

int conf_read_port_set(struct port_range ranges[MASQUERADE_RANGES], const struct given *given,
		       struct cni_error *err)
{
	const json_t *element, *value = cni_json_get(given->object, given->key);
	struct port_range range;
	struct port_set set = {0};
	size_t index, count = 0;

	if (value && !json_is_array(value) && add_value(&set, given->key, value, err))
		return -1;
	json_array_foreach (value, index, element)
		if (add_value(&set, given->key, element, err))
			return -1;
	memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
	for (range = port_set_next(&set, 1); range.last;
	     range = port_set_next(&set, range.last + 1U)) {
		if (count == MASQUERADE_RANGES)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\" is more than %d ranges, the limit: "
					     "merge some of them",
					     given->key, MASQUERADE_RANGES);
		ranges[count++] = range;
	}
	return 0;
}

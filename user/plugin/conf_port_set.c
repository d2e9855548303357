/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_port_set.c - options that are sets of ports: masqPorts, neverPorts.
 */
#include "plugin/conf_port_set.h"

#include <string.h>

#include "cni/json.h"

#define PORTS 65536

/* A byte for each port: 1 if it is wanted. However often and in whatever order ports are
 * named, ranges fall out of it. */
typedef char port_set[PORTS];

/* At most five digits; 0: not a port. */
static unsigned int parse_port(const char **text)
{
	size_t digits = strspn(*text, "0123456789");
	unsigned int port = 0;

	if (digits > 5)
		return 0;
	for (; digits; digits--)
		port = port * 10 + (unsigned int)(*(*text)++ - '0');
	return port < PORTS ? port : 0;
}

static int refuse(const char *key, const json_t *value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\": %s is not a list of ports: give 1 to 65535 as "
			     "\"1024-32767\", \"5000\" or \"1024-2000,3000-4000\"",
			     key, cni_json_describe(value, found));
}

static int refuse_backwards(const char *key, const struct port_range *range, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\": \"%u-%u\" ends before it begins", key, range->first,
			     range->last);
}

/* "1024-2000,5000" */
static int add_list(port_set wanted, const char *key, const json_t *value, struct cni_error *err)
{
	const char *text = json_string_value(value);

	for (;; text++) {
		struct port_range range;

		range.first = range.last = (__u16)parse_port(&text);
		if (range.first && *text == '-') {
			text++;
			range.last = (__u16)parse_port(&text);
		}
		if (!range.first || !range.last)
			return refuse(key, value, err);
		if (range.last < range.first)
			return refuse_backwards(key, &range, err);
		memset(wanted + range.first, 1, (size_t)range.last - range.first + 1);
		if (!*text)
			return 0;
		if (*text != ',')
			return refuse(key, value, err);
	}
}

/* A string or a number. */
static int add_value(port_set wanted, const char *key, const json_t *value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];
	json_int_t port = json_integer_value(value);

	if (json_is_string(value))
		return add_list(wanted, key, value, err);
	if (!json_is_integer(value))
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "\"%s\" must be a string, an integer or an array of "
				     "those, found %s",
				     key, cni_json_describe(value, found));
	if (port < 1 || port >= PORTS)
		return refuse(key, value, err);
	wanted[port] = 1;
	return 0;
}

static int add_values(port_set wanted, const char *key, const json_t *value, struct cni_error *err)
{
	const json_t *element;
	size_t index;

	if (!json_is_array(value))
		return add_value(wanted, key, value, err);
	json_array_foreach (value, index, element)
		if (add_value(wanted, key, element, err))
			return -1;
	return 0;
}

/* PORTS: there is none. */
static unsigned int find(const port_set wanted, unsigned int from, char value)
{
	const char *found = memchr(wanted + from, value, PORTS - from);

	return found ? (unsigned int)(found - wanted) : PORTS;
}

static int collect(const port_set wanted, const char *key,
		   struct port_range ranges[PORT_SET_RANGES], struct cni_error *err)
{
	unsigned int first = find(wanted, 1, 1), after;

	for (size_t count = 0; first < PORTS; first = find(wanted, after, 1)) {
		if (count == PORT_SET_RANGES)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\" is more than %d ranges, which is all "
					     "that are possible: unite some of them",
					     key, PORT_SET_RANGES);
		after = find(wanted, first, 0);
		ranges[count++] = (struct port_range){(__u16)first, (__u16)(after - 1)};
	}
	return 0;
}

int conf_read_port_set(const json_t *config, const char *key,
		       struct port_range ranges[PORT_SET_RANGES], struct cni_error *err)
{
	const json_t *value = cni_json_get(config, key);
	port_set wanted;

	memset(ranges, 0, PORT_SET_RANGES * sizeof(*ranges));
	if (!value)
		return 0;
	memset(wanted, 0, sizeof(wanted));
	if (add_values(wanted, key, value, err))
		return -1;
	return collect(wanted, key, ranges, err);
}

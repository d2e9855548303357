/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_masquerade_ports.c - masqPorts: the ports that masqueraded flows leave with.
 */
#include "plugin/conf_masquerade_ports.h"

#include <string.h>

#include "cni/json.h"

#define KEY "masqPorts"
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

static int refuse(const json_t *value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];

	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"" KEY "\": %s is not a list of ports: give 1 to 65535 as "
			     "\"1024-32767\", \"5000\" or \"1024-2000,3000-4000\"",
			     cni_json_describe(value, found));
}

static int refuse_backwards(unsigned int first, unsigned int last, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"" KEY "\": \"%u-%u\" ends before it begins", first, last);
}

/* "1024-2000,5000" */
static int add_list(port_set wanted, const json_t *value, struct cni_error *err)
{
	const char *text = json_string_value(value);

	for (;; text++) {
		unsigned int first = parse_port(&text), last = first;

		if (first && *text == '-') {
			text++;
			last = parse_port(&text);
		}
		if (!first || !last)
			return refuse(value, err);
		if (last < first)
			return refuse_backwards(first, last, err);
		memset(wanted + first, 1, last - first + 1);
		if (!*text)
			return 0;
		if (*text != ',')
			return refuse(value, err);
	}
}

/* A string or a number. */
static int add_value(port_set wanted, const json_t *value, struct cni_error *err)
{
	char found[CNI_JSON_DESCRIPTION_SIZE];
	json_int_t port = json_integer_value(value);

	if (json_is_string(value))
		return add_list(wanted, value, err);
	if (!json_is_integer(value))
		return cni_error_set(err, CNI_ERROR_DECODE,
				     "\"" KEY "\" must be a string, an integer or an array of "
				     "those, found %s",
				     cni_json_describe(value, found));
	if (port < 1 || port >= PORTS)
		return refuse(value, err);
	wanted[port] = 1;
	return 0;
}

static int add_values(port_set wanted, const json_t *value, struct cni_error *err)
{
	const json_t *element;
	size_t index;

	if (!json_is_array(value))
		return add_value(wanted, value, err);
	json_array_foreach (value, index, element)
		if (add_value(wanted, element, err))
			return -1;
	return 0;
}

/* PORTS: there is none. */
static unsigned int find(const port_set wanted, unsigned int from, char value)
{
	const char *found = memchr(wanted + from, value, PORTS - from);

	return found ? (unsigned int)(found - wanted) : PORTS;
}

static int collect(const port_set wanted, struct port_range ranges[MASQUERADE_RANGES],
		   struct cni_error *err)
{
	unsigned int first = find(wanted, 1, 1), after;

	for (size_t count = 0; first < PORTS; first = find(wanted, after, 1)) {
		if (count == MASQUERADE_RANGES)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"" KEY "\" is more than %d ranges, which is all "
					     "that are possible: unite some of them",
					     MASQUERADE_RANGES);
		after = find(wanted, first, 0);
		ranges[count++] = (struct port_range){(__u16)first, (__u16)(after - 1)};
	}
	return 0;
}

int conf_read_masquerade_ports(const json_t *config, struct port_range ranges[MASQUERADE_RANGES],
			       struct cni_error *err)
{
	const json_t *value = cni_json_get(config, KEY);
	port_set wanted;

	memset(ranges, 0, MASQUERADE_RANGES * sizeof(*ranges));
	if (!value)
		return 0;
	memset(wanted, 0, sizeof(wanted));
	if (add_values(wanted, value, err))
		return -1;
	return collect(wanted, ranges, err);
}

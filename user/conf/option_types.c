/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* option_types.c - options of any type: warnings, numbers, choices, and keys that are unknown. */
#include "conf/option_types.h"

#include <ctype.h>
#include <fnmatch.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "lib/json.h"
#include "lib/ports.h"
#include "lib/text.h"

#define PREFIX_OF_CNI "cni.dev/"
#define MAX_UNKNOWN 16 /* each is a line in the system's log, at each ADD */

void conf_warn(json_t *warnings, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	json_array_append_new(warnings, json_vsprintf(format, arguments));
	va_end(arguments);
}

int option_read_number(const struct given *given, struct limits limits, uint32_t *value,
		       struct cni_error *err)
{
	json_int_t number = 0;

	if (!cni_json_get(given->object, given->key))
		return 0;
	if (cni_json_get_integer(given->object, given->key, &number, err))
		return -1;
	if (number < limits.least || number > limits.most)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is %" JSON_INTEGER_FORMAT ", must be %u to %u",
				     given->key, number, limits.least, limits.most);
	*value = (uint32_t)number;
	return 0;
}

const char *option_list_choices(const char *const *choices, char text[CHOICES_TEXT_SIZE])
{
	size_t length = 0;

	for (size_t i = 0; choices[i]; i++) {
		const char *separator = !i ? "" : choices[i + 1] ? ", " : " or ";

		length += (size_t)snprintf(text + length, CHOICES_TEXT_SIZE - length, "%s\"%s\"",
					   separator, choices[i]);
	}
	return text;
}

int option_read_choice(const struct given *given, const char *const *choices, uint8_t *chosen,
		       struct cni_error *err)
{
	char list[CHOICES_TEXT_SIZE];
	const char *value = "";

	if (cni_json_get_string(given->object, given->key, &value, err))
		return -1;
	for (uint8_t i = 0; choices[i]; i++) {
		if (!strcasecmp(choices[i], value)) {
			*chosen = i;
			return 0;
		}
	}
	option_list_choices(choices, list);
	if (!*value)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is missing, must be %s", given->key, list);
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"%s\" is \"%s\", must be %s",
			     given->key, value, list);
}

int option_read_strings(const struct given *given, const struct string_list *list, void *field,
			struct cni_error *err)
{
	json_t *array = NULL, *element;
	const char *text, *fault;
	size_t index;

	if (cni_json_get_array(given->object, given->key, &array, err))
		return -1;
	if (json_array_size(array) > list->most)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" has %zu entries, at most %zu are possible", given->key,
				     json_array_size(array), list->most);
	json_array_foreach (array, index, element) {
		if (cni_json_get_string_element(element, given->key, index, &text, err))
			return -1;
		fault = list->add(field, text);
		if (fault)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"%s\"[%zu] is \"%s\", which %s: %s", given->key,
					     index, text, fault, list->advice);
	}
	return 0;
}

/* Keys that CNI and runtimes give a meaning. */
static const char *const keys_of_cni[] = {"type", "name", "cniVersion",    "capabilities", "ipam",
					  "dns",  "args", "runtimeConfig", "prevResult"};

static bool key_is_known(const struct option *options, const char *key)
{
	for (size_t i = 0; i < sizeof(keys_of_cni) / sizeof(keys_of_cni[0]); i++)
		if (!strcasecmp(keys_of_cni[i], key))
			return true;
	for (const struct option *option = options; option->name; option++)
		if (!strcasecmp(option->name, key))
			return true;
	return !strncmp(key, PREFIX_OF_CNI, strlen(PREFIX_OF_CNI));
}

void option_check_keys(const struct option *options, const json_t *config, json_t *warnings)
{
	json_t *constless = (json_t *)config; /* the iterators of jansson take no const */
	const char *key;
	json_t *value;

	json_object_foreach (constless, key, value)
		if (!key_is_known(options, key) && json_array_size(warnings) < MAX_UNKNOWN)
			conf_warn(warnings, "unknown key \"%s\" is ignored", key);
}

bool conf_names_interface(const char *names, const char *interface)
{
	for_each_name (name, names)
		if (!fnmatch(name, interface, 0))
			return true;
	return false;
}

bool conf_is_glob(const char *name)
{
	return strpbrk(name, "*?[\\") != NULL;
}

/* NULL, or what keeps every interface from having such a name. */
static const char *find_fault(const char *name)
{
	if (!*name)
		return "is empty";
	if (strchr(name, '/'))
		return "has a slash";
	for (const char *byte = name; *byte; byte++)
		if (isspace((unsigned char)*byte) || iscntrl((unsigned char)*byte))
			return "has a blank or control character";
	if (conf_is_glob(name))
		return strlen(name) > CONF_NAME_LENGTH ? "is longer than 64 bytes" : NULL;
	if (strchr(name, ':'))
		return "has a colon";
	if (strlen(name) >= IF_NAMESIZE)
		return "is longer than 15 bytes";
	return strcmp(name, ".") && strcmp(name, "..") ? NULL : "is a directory";
}

static const char *add_name(void *field, const char *name)
{
	const char *fault = find_fault(name);
	char **end = field;

	if (!fault)
		*end = stpcpy(*end, name) + 1;
	return fault;
}

int conf_read_names(char names[CONF_NAMES_SIZE], const struct given *given, struct cni_error *err)
{
	static const struct string_list list = {
		.most = CONF_NAMES_MOST,
		.advice = "give the name of an interface (\"eth0\") or a glob (\"eth*\")",
		.add = add_name,
	};
	char *end = names;

	return option_read_strings(given, &list, &end, err);
}

/* --- ports ---------------------------------------------------------------------------------- */

#define PORTS (UINT16_MAX + 1)

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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network_options.c - options that are text, by the table of the plugin's options and one of the
 * driver's own.
 */
#include "runtimes/netavark/network_options.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "lib/json.h"
#include "conf/option_table.h"
#include "cni/execute.h"
#include "runtimes/cnirun/output.h"

#define FIELD(member) offsetof(struct network_options, member)
#define CNI_PATH_OPTION "cni_path"
#define RESERVE_OPTION "reserveHostPorts"
#define VLAN_OPTION "vlan"
#define DIGITS_OF_UINT32 10

/* Named as Podman's own driver names them. */
static const struct option own_options[] = {
	{"mtu", OPTION_NUMBER, FIELD(mtu), .limits = {68, UINT16_MAX},
	 .help = "The MTU of the bridge and of the containers' interfaces."},
	{"isolate", OPTION_BOOLEAN, FIELD(isolate),
	 .help = "No connections to and from other networks that have this too; by the CNI plugin "
		 "firewall."},
	{"no_default_route", OPTION_BOOLEAN, FIELD(no_default_route),
	 .help = "Containers get no default route."},
	{0},
};

static const struct option *find_option(const struct option *options, const char *name)
{
	for (; options->name; options++)
		if (!strcmp(options->name, name))
			return options->type < OPTION_IGNORED_NUMBER ? options : NULL;
	return NULL;
}

/* "a,b": ["a","b"]; "": []. */
static json_t *split(const char *text)
{
	json_t *array = json_array();

	while (*text) {
		size_t length = strcspn(text, ",");

		json_array_append_new(array, json_stringn(text, length));
		text += length;
		text += *text == ',';
	}
	return array;
}

static json_t *read_number(const char *text)
{
	size_t digits = strspn(text, "0123456789");

	return digits && digits <= DIGITS_OF_UINT32 && !text[digits]
		       ? json_integer((json_int_t)strtoll(text, NULL, 10))
		       : NULL;
}

/* What the option's text would be in a configuration of CNI: a new reference. NULL: nothing. */
static json_t *value_of(const struct option *option, const char *text)
{
	switch (option->type) {
	case OPTION_BOOLEAN:
		if (!strcmp(text, "true") || !strcmp(text, "1"))
			return json_true();
		return !strcmp(text, "false") || !strcmp(text, "0") ? json_false() : NULL;
	case OPTION_NUMBER:
		return read_number(text);
	case OPTION_CHOICE:
		return json_string(text);
	default:
		return *text == '[' ? json_loads(text, 0, NULL) : split(text);
	}
}

static int refuse_value(const struct option *option, const char *text, struct cni_error *err)
{
	if (option->type == OPTION_BOOLEAN)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "option %s=%s: must be true or false", option->name, text);
	if (option->type == OPTION_NUMBER)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "option %s=%s: must be a number, %u to %u", option->name, text,
				     option->limits.least, option->limits.most);
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "option %s=%s: must be a list, \"A,B\" or a JSON array", option->name,
			     text);
}

static int refuse_name(const char *name, struct cni_error *err)
{
	static const struct option *const tables[] = {own_options, conf_options};
	cleanup_free char *names = or_exit(strdup(CNI_PATH_OPTION));

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct option *option = tables[i]; option->name; option++) {
			char *longer = find_option(tables[i], option->name)
					       ? cni_format("%s, %s", names, option->name)
					       : NULL;

			if (!longer)
				continue;
			free(names);
			names = longer;
		}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "unknown option \"%s\": there are %s", name, names);
}

static int read_own(struct network_options *options, const struct option *option, json_t *value,
		    struct cni_error *err)
{
	cleanup_json json_t *object = json_pack("{s:O}", option->name, value);
	const struct given given = {object, option->name, NULL};
	char *field = (char *)options + option->field;

	if (option->type == OPTION_BOOLEAN)
		return cni_json_get_boolean(object, option->name, (bool *)field, err);
	return option_read_number(&given, option->limits, (uint32_t *)(void *)field, err);
}

/* Directories, with colons between them. */
static bool are_absolute(const char *paths)
{
	for (; *paths == '/'; paths++) {
		paths += strcspn(paths, ":");
		if (!*paths)
			return true;
	}
	return false;
}

static int read_one(struct network_options *options, const char *name, const char *text,
		    struct cni_error *err)
{
	const struct option *own = find_option(own_options, name);
	const struct option *option = own ? own : find_option(conf_options, name);
	cleanup_json json_t *value = NULL;

	if (!strcmp(name, CNI_PATH_OPTION))
		return are_absolute(text)
			       ? 0
			       : cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					       "option " CNI_PATH_OPTION
					       "=%s: must be absolute paths of directories, "
					       "with colons between them",
					       text);
	if (!strcmp(name, VLAN_OPTION))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "option " VLAN_OPTION " is not supported: the host ports of "
				     "containers in a VLAN of the bridge do not answer");
	if (!option)
		return refuse_name(name, err);
	if (!strcmp(name, RESERVE_OPTION) && strcmp(text, "false"))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "option " RESERVE_OPTION " is not supported: Podman itself "
				     "listens on each host port while the container runs");
	value = value_of(option, text);
	if (!value)
		return refuse_value(option, text, err);
	if (own)
		return read_own(options, own, value, err);
	json_object_set(options->portmap, name, value);
	return 0;
}

/* The plugin itself would refuse them only when a container starts. */
static int check_portmap(const struct network_options *options, struct cni_error *err)
{
	struct conf conf = {0};
	int failed = conf_parse_options(&conf, options->portmap, err);
	const json_t *text;
	size_t index;

	json_array_foreach (conf.warnings, index, text)
		output_warn("%s", json_string_value(text));
	conf_release(&conf);
	return failed;
}

int network_options_read(struct network_options *options, const json_t *given,
			 struct cni_error *err)
{
	const char *name;
	json_t *value;
	int failed = 0;

	options->portmap = json_object();
	json_object_foreach ((json_t *)given, name, value) {
		struct cni_error problem = {0};

		if (!json_is_string(value))
			cni_error_set(&problem, CNI_ERROR_DECODE, "option \"%s\" must be a string",
				      name);
		else
			read_one(options, name, json_string_value(value), &problem);
		if (cni_error_is_set(&problem))
			failed = cni_error_chain(err, &problem);
	}
	return failed ? -1 : check_portmap(options, err);
}

void network_options_release(struct network_options *options)
{
	json_decref(options->portmap);
	*options = (struct network_options){0};
}

void network_options_print_help(void)
{
	for (const struct option *option = own_options; option->name; option++)
		output_text("  %-20s %s\n", option->name, option->help);
	output_text("  %-20s %s\n", CNI_PATH_OPTION,
		    "Where the CNI plugins are (default: CNI_PATH, or " EXECUTE_DEFAULT_PATH ").");
	for (const struct option *option = conf_options; option->name; option++)
		if (find_option(conf_options, option->name))
			output_text("  %-20s %s\n", option->name, option->help);
}

const char *network_options_cni_path(const json_t *given)
{
	const char *path = json_string_value(cni_json_get(given, CNI_PATH_OPTION));

	if (!path || !are_absolute(path))
		path = getenv("CNI_PATH");
	return path && *path ? path : EXECUTE_DEFAULT_PATH;
}

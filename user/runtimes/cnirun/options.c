/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.c - the command line of a verb, completed from the environment.
 *
 * The variables are cnitool's: CNI_PATH, CNI_IFNAME, CNI_ARGS, CAP_ARGS.
 */
#include "runtimes/cnirun/verbs.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/command_line.h"
#include "lib/memory.h"
#include "lib/json.h"
#include "cni/cache.h"
#include "cni/execute.h"

#define DEFAULT_IFNAME "eth0"
/* As long as kubelet gives its runtime; the dhcp plugin tries for more than a minute. */
#define DEFAULT_TIMEOUT 120
#define PORT_MAPPINGS "portMappings"
#define TEXT_OF(value) #value
#define TEXT(macro) TEXT_OF(macro)

static int set_usage_error(struct cni_error *err, const char *verb, const char *problem,
			   const char *value)
{
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT, "%s%s; see cnirun %s --help",
			     problem, value, verb);
}

static const char *variable(const char *name, const char *otherwise)
{
	const char *value = getenv(name);

	return value && *value ? value : otherwise;
}

static int set_id(void *into, const char *id, struct cni_error *err)
{
	struct options *options = into;
	free((char *)options->conf.container_id);
	options->conf.container_id = or_exit(strdup(id));
	return 0;
}

static int add_port_mappings(void *into, const char *text, struct cni_error *err)
{
	struct options *options = into;
	return portmapping_parse(text, options->port_mappings, err);
}

static int set_args(void *into, const char *text, struct cni_error *err)
{
	struct options *options = into;
	json_decref(options->conf.args);
	options->conf.args = args_parse(text, err);
	return options->conf.args ? 0 : -1;
}

static int add_capability(void *into, const char *text, struct cni_error *err)
{
	struct options *options = into;
	const char *equals = strchr(text, '=');
	cleanup_free char *name = equals ? or_exit(strndup(text, (size_t)(equals - text))) : NULL;
	json_t *value;

	if (!name || !*name)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "invalid --capability \"%s\": must be NAME=JSON", text);
	value = cni_json_parse(equals + 1, strlen(equals + 1), name, err);
	if (!value)
		return cni_error_wrap(err, "invalid --capability");
	json_object_set_new(options->demanded, name, value);
	return 0;
}

static const struct command_option descriptions[] = {
	{OPTIONS_ATTACHMENT, 0, "id", "ID",
	 "container ID (default, as in cnitool: cnitool- and 20 digits of the\n"
	 "SHA-512 of the namespace's path)",
	 set_id, 0, 0, 0},
	{OPTIONS_ATTACHMENT, 0, "ifname", "NAME",
	 "interface in the container (default: CNI_IFNAME, or eth0)", NULL,
	 offsetof(struct options, conf.ifname), 0, 0},
	{OPTIONS_ATTACHMENT, 'p', "publish", "[HOSTIP:]HOSTPORT:CONTAINERPORT[/PROTO]",
	 "(short: -p) map a host port; an IPv6 HOSTIP in brackets; two ranges of\n"
	 "the same length (8000-8010:80-90); PROTO tcp (default), udp, sctp; may be\n"
	 "repeated",
	 add_port_mappings, 0, 0, 0},
	{OPTIONS_ATTACHMENT, 0, "args", "KEY=VALUE[;KEY=VALUE]...",
	 "CNI_ARGS of the plugins (default: CNI_ARGS)", set_args, 0, 0, 0},
	{OPTIONS_ATTACHMENT, 0, "capability", "NAME=JSON",
	 "runtimeConfig for plugins that declare the capability; may be repeated\n"
	 "(default: the object in CAP_ARGS)",
	 add_capability, 0, 0, 0},
	{OPTIONS_RUN, 0, "cni-path", "DIRECTORY[:DIRECTORY]...",
	 "where plugins are (default: CNI_PATH, or\n" EXECUTE_DEFAULT_PATH ")", NULL,
	 offsetof(struct options, conf.plugin_path), 0, 0},
	{OPTIONS_RUN, 0, "timeout", "SECONDS",
	 "how long each plugin may take; then it is killed, with the processes\n"
	 "that it has started; 0: no limit (default: " TEXT(DEFAULT_TIMEOUT) ")",
	 NULL, offsetof(struct options, conf.timeout), 0, 0},
	{OPTIONS_CACHE, 0, "cache-dir", "DIRECTORY",
	 "where the attachments are recorded (default: CNI_CACHE_DIR, or\n" CNI_CACHE_DIRECTORY ")",
	 NULL, offsetof(struct options, conf.cache_directory), 0, 0},
	{0, 'h', "help", NULL, "(short: -h) this text", NULL, offsetof(struct options, help), 0, 0},
};

static struct command_line command_line_of(unsigned int set)
{
	return (struct command_line){"cnirun", descriptions,
				     sizeof(descriptions) / sizeof(descriptions[0]), set};
}

/* `operands` ends with NULL. */
static int read_operands(struct options *options, const char *verb, char **operands,
			 unsigned int set, struct cni_error *err)
{
	bool wants_netns = set & OPTIONS_ATTACHMENT;

	if (!operands[0] || (wants_netns && !operands[1]))
		return set_usage_error(err, verb,
				       "missing operand: ", operands[0] ? "NETNS" : "CONFLIST");
	if (operands[1 + wants_netns])
		return set_usage_error(err, verb,
				       "one operand too many: ", operands[1 + wants_netns]);
	options->conflist = operands[0];
	if (!wants_netns)
		return 0;
	options->conf.netns = netns_resolve(operands[1], err);
	return options->conf.netns ? 0 : -1;
}

static int demand_port_mappings(struct options *options, struct cni_error *err)
{
	if (!json_array_size(options->port_mappings))
		return 0;
	if (json_object_get(options->demanded, PORT_MAPPINGS))
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "both -p and --capability " PORT_MAPPINGS
				     ": give one of them");
	json_object_set(options->demanded, PORT_MAPPINGS, options->port_mappings);
	return 0;
}

/* CAP_ARGS, with what the command line names in place of its keys. */
static int complete_capabilities(struct options *options, struct cni_error *err)
{
	const char *inherited = variable("CAP_ARGS", NULL);

	if (!inherited && !json_object_size(options->demanded))
		return 0;
	if (inherited)
		options->conf.capability_args =
			cni_json_parse_object(inherited, strlen(inherited), "CAP_ARGS", err);
	else
		options->conf.capability_args = json_object();
	if (!options->conf.capability_args)
		return -1;
	json_object_update(options->conf.capability_args, options->demanded);
	return 0;
}

/* What an attachment needs and the command line does not have. */
static int complete_from_environment(struct options *options, struct cni_error *err)
{
	struct runtime_conf *conf = &options->conf;
	const char *args = variable("CNI_ARGS", NULL);

	if ((!conf->args && args && set_args(options, args, err)) ||
	    demand_port_mappings(options, err) || complete_capabilities(options, err))
		return -1;
	if (conf->container_id || !*conf->netns)
		return 0;
	conf->container_id = netns_default_container_id(conf->netns);
	return 0;
}

int options_parse(struct options *options, int argc, char **argv, unsigned int set,
		  struct cni_error *err)
{
	struct command_line line = command_line_of(set);
	int first;

	options->conf.ifname = variable("CNI_IFNAME", DEFAULT_IFNAME);
	options->conf.plugin_path = variable("CNI_PATH", EXECUTE_DEFAULT_PATH);
	options->conf.timeout = DEFAULT_TIMEOUT;
	options->conf.longer = "--timeout SECONDS";
	options->conf.cache_directory = variable("CNI_CACHE_DIR", CNI_CACHE_DIRECTORY);
	options->demanded = json_object();
	options->port_mappings = json_array();
	first = command_line_read(&line, argc, argv, options, err);
	if (first < 0)
		return -1;
	if (options->help)
		return 0;
	if (read_operands(options, argv[0], argv + first, set, err))
		return -1;
	return set & OPTIONS_ATTACHMENT ? complete_from_environment(options, err) : 0;
}

void options_release(struct options *options)
{
	free((char *)options->conf.netns);
	free((char *)options->conf.container_id);
	json_decref(options->conf.args);
	json_decref(options->conf.capability_args);
	json_decref(options->demanded);
	json_decref(options->port_mappings);
	*options = (struct options){0};
}

void options_print_help(unsigned int set)
{
	struct command_line line = command_line_of(set);

	command_line_print_help(&line, stdout);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* settings.c - the command line of cni-ipam. */
#include "runtimes/ipam/settings.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/command_line.h"
#include "lib/text.h"
#include "cni/environment.h"
#include "lib/json.h"
#include "runtimes/cnirun/directory.h"
#include "cni/execute.h"

#define DEFAULT_SOCKET "/run/docker/plugins/cni-ipam.sock"
#define DEFAULT_STATE "/var/lib/cni-ipam"
#define DEFAULT_DOCKER "/run/docker.sock"
/* Requests for one subnet wait for each other, and Docker waits for half a minute. */
#define DEFAULT_TIMEOUT 20
/* Docker knows an address some time after it was given: a container must be started meanwhile. */
#define DEFAULT_GRACE 300
#define TEXT_OF(value) #value
#define TEXT(macro) TEXT_OF(macro)

static int set_ipam(void *into, const char *path, struct cni_error *err)
{
	struct settings *settings = into;
	size_t length;
	cleanup_free char *text = directory_read_any(path, &length, err);
	cleanup_json json_t *ipam = text ? cni_json_parse_object(text, length, path, err) : NULL;

	if (!ipam)
		return -1;
	if (!json_string_length(cni_json_get(ipam, "type")))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "%s: no \"type\": it must be an object as \"ipam\" of a "
				     "conflist is, with the name of a plugin",
				     path);
	json_decref(settings->ipam);
	settings->ipam = TAKE(ipam);
	return 0;
}

static const struct command_option descriptions[] = {
	{0, 0, "socket", "PATH",
	 "where Docker asks; its name without .sock is that of the driver\n"
	 "(default: " DEFAULT_SOCKET ")",
	 NULL, offsetof(struct settings, socket), 0, 0},
	{0, 0, "state", "DIRECTORY",
	 "which pools and addresses Docker has (default: " DEFAULT_STATE ")", NULL,
	 offsetof(struct settings, state), 0, 0},
	{0, 0, "ipam", "FILE",
	 "the \"ipam\" object, as in a conflist, for pools that are of no conflist\n"
	 "(default: {\"type\": \"host-local\"})",
	 set_ipam, 0, 0, 0},
	{0, 0, "cni-path", "DIRECTORY[:DIRECTORY]...",
	 "where plugins are (default: CNI_PATH, or\n" EXECUTE_DEFAULT_PATH ")", NULL,
	 offsetof(struct settings, conf.plugin_path), 0, 0},
	{0, 0, "timeout", "SECONDS",
	 "how long a plugin may take; then it is killed; 0: no limit\n"
	 "(default: " TEXT(DEFAULT_TIMEOUT) ")",
	 NULL, offsetof(struct settings, conf.timeout), 0, 0},
	{0, 0, "docker", "PATH", "the socket of Docker's API (default: " DEFAULT_DOCKER ")", NULL,
	 offsetof(struct settings, docker), 0, 0},
	{SETTINGS_RECONCILE, 0, "grace", "SECONDS",
	 "what is younger may be of a container that Docker is starting, and stays\n"
	 "(default: " TEXT(DEFAULT_GRACE) ")",
	 NULL, offsetof(struct settings, grace), 0, 0},
	{SETTINGS_RECONCILE, 0, "dry-run", NULL, "print what would be done, and do nothing", NULL,
	 offsetof(struct settings, dry_run), 0, 0},
	{SETTINGS_RECONCILE, 0, "json", NULL, "print JSON, not lines", NULL,
	 offsetof(struct settings, json), 0, 0},
	{0, 'h', "help", NULL, "(short: -h) this text", NULL, offsetof(struct settings, help), 0,
	 0},
};

static struct command_line command_line_of(unsigned int set)
{
	return (struct command_line){"cni-ipam", descriptions,
				     sizeof(descriptions) / sizeof(descriptions[0]), set};
}

int settings_name_driver(struct settings *settings, const char *socket, struct cni_error *err)
{
	const char *name = strrchr(socket, '/'), *end;

	name = name ? name + 1 : socket;
	end = strrchr(name, '.');
	free(settings->driver);
	settings->driver = cni_format("%.*s", end ? (int)(end - name) : (int)strlen(name), name);
	if (!cni_validate_container_id(settings->driver, err))
		return 0;
	return cni_error_wrap(err, "the socket \"%s\" must have the driver's name", socket);
}

int settings_parse(struct settings *settings, int argc, char **argv, unsigned int set,
		   struct cni_error *err)
{
	struct command_line line = command_line_of(set);
	const char *plugins = getenv("CNI_PATH");
	int first;

	settings->socket = DEFAULT_SOCKET;
	settings->state = DEFAULT_STATE;
	settings->docker = DEFAULT_DOCKER;
	settings->grace = DEFAULT_GRACE;
	settings->ipam = json_pack("{s:s}", "type", "host-local");
	settings->conf.timeout = DEFAULT_TIMEOUT;
	settings->conf.longer = "--timeout SECONDS";
	settings->conf.plugin_path = plugins && *plugins ? plugins : EXECUTE_DEFAULT_PATH;
	first = command_line_read(&line, argc, argv, settings, err);
	if (first < 0)
		return -1;
	if (first < argc && !settings->help)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "one operand too many: %s; see cni-ipam --help", argv[first]);
	return settings_name_driver(settings, settings->socket, err);
}

void settings_release(struct settings *settings)
{
	json_decref(settings->ipam);
	free(settings->driver);
	*settings = (struct settings){0};
}

void settings_print_help(unsigned int set)
{
	struct command_line line = command_line_of(set);

	command_line_print_help(&line, stdout);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* environment.c - the CNI_ variables: which command needs which, and what is valid. */
#include "cni/environment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_IFNAME_LENGTH 15 /* IFNAMSIZ - 1, counted in bytes */
#define MISSING_SIZE 128     /* all names of required[] with commas */
#define LETTERS_AND_DIGITS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static const char *const command_names[] = {
	[CNI_ADD] = "ADD", [CNI_DEL] = "DEL",       [CNI_CHECK] = "CHECK",
	[CNI_GC] = "GC",   [CNI_STATUS] = "STATUS", [CNI_VERSION] = "VERSION",
};

static const char *variable(const char *name)
{
	const char *value = getenv(name);

	return value ? value : "";
}

void cni_environment_read(struct cni_environment *environment)
{
	const char *override = variable("CNI_NETNS_OVERRIDE");

	*environment = (struct cni_environment){
		.command_name = variable("CNI_COMMAND"),
		.container_id = variable("CNI_CONTAINERID"),
		.netns = variable("CNI_NETNS"),
		.ifname = variable("CNI_IFNAME"),
		.args = variable("CNI_ARGS"),
		.netns_override = !strcmp(override, "1") || !strcasecmp(override, "true"),
		.engine_holds_ports = *variable(ENGINE_HOLDS_PORTS),
	};
	if (*environment->command_name)
		do
			environment->command++;
		while (environment->command != CNI_UNKNOWN_COMMAND &&
		       strcmp(command_names[environment->command], environment->command_name));
}

/* A bit for each command that needs a variable. */
#define BIT(command) (1u << (command))
#define NEEDED_BY_ALL (~BIT(CNI_VERSION) & ~BIT(CNI_UNKNOWN_COMMAND))
#define NEEDED_FOR_ATTACHMENT (BIT(CNI_ADD) | BIT(CNI_DEL) | BIT(CNI_CHECK))

int cni_environment_validate(const struct cni_environment *environment, struct cni_error *err)
{
	const struct {
		const char *name;
		const char *value;
		unsigned int needed_by;
		int (*validate)(const char *value, struct cni_error *err);
	} required[] = {
		{"CNI_COMMAND", environment->command_name, NEEDED_BY_ALL, NULL},
		{"CNI_CONTAINERID", environment->container_id, NEEDED_FOR_ATTACHMENT,
		 cni_validate_container_id},
		{"CNI_NETNS", environment->netns, BIT(CNI_ADD) | BIT(CNI_CHECK), NULL},
		{"CNI_IFNAME", environment->ifname, NEEDED_FOR_ATTACHMENT, cni_validate_ifname},
	};
	char missing[MISSING_SIZE];
	size_t length = 0;

	for (size_t i = 0; i < sizeof(required) / sizeof(required[0]); i++) {
		if (!(required[i].needed_by & BIT(environment->command)))
			continue;
		if (!*required[i].value)
			length += snprintf(missing + length, sizeof(missing) - length, "%s%s",
					   length ? "," : "", required[i].name);
		else if (required[i].validate && required[i].validate(required[i].value, err))
			return -1;
	}
	if (length)
		return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
				     "required env variables [%s] missing", missing);
	return 0;
}

static bool is_identifier(const char *text)
{
	return *text && strchr(LETTERS_AND_DIGITS, *text) &&
	       !text[strspn(text, LETTERS_AND_DIGITS "_.-")];
}

static int refuse_identifier(const char *text, enum cni_error_code code, const char *message,
			     struct cni_error *err)
{
	cni_error_set(err, code,
		      "%s \"%s\": it must begin with a letter or digit, and letters, digits, '_', "
		      "'.', '-' may follow",
		      message, text);
	return cni_error_set_details(err, "%s", text);
}

int cni_validate_container_id(const char *container_id, struct cni_error *err)
{
	if (is_identifier(container_id))
		return 0;
	return refuse_identifier(container_id, CNI_ERROR_INVALID_ENVIRONMENT,
				 "invalid characters in containerID", err);
}

int cni_validate_network_name(const char *name, struct cni_error *err)
{
	if (!*name)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "missing network name: the configuration needs a \"name\"");
	if (is_identifier(name))
		return 0;
	return refuse_identifier(name, CNI_ERROR_INVALID_CONFIGURATION,
				 "invalid characters found in network name", err);
}

int cni_validate_ifname(const char *ifname, struct cni_error *err)
{
	const char *reason = NULL;

	if (!*ifname)
		reason = "it is empty";
	else if (strlen(ifname) > MAX_IFNAME_LENGTH)
		reason = "it is longer than 15 bytes";
	else if (!strcmp(ifname, ".") || !strcmp(ifname, ".."))
		reason = "the kernel reserves it";
	else if (strpbrk(ifname, "/: \t\n\v\f\r"))
		reason = "it contains a slash, a colon or white space";

	if (!reason)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "invalid interface name \"%s\": %s", ifname, reason);
}

const char *cni_args_get(const char *args, const char *key, size_t *length)
{
	size_t key_length = strlen(key);
	const char *found = NULL;

	while (*args) {
		size_t part = strcspn(args, ";");

		if (part > key_length && !strncmp(args, key, key_length) &&
		    args[key_length] == '=') {
			found = args + key_length + 1;
			*length = part - key_length - 1;
		}
		args += part;
		args += *args == ';';
	}
	return found;
}

bool cni_args_have_key(const char *args, const char *key)
{
	size_t ignored;

	return cni_args_get(args, key, &ignored) != NULL;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* environment.h - the CNI_ variables that a plugin is called with. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

enum cni_command {
	CNI_NO_COMMAND, /* CNI_COMMAND is unset or empty: not run by a runtime */
	CNI_ADD,
	CNI_DEL,
	CNI_CHECK,
	CNI_GC,
	CNI_STATUS,
	CNI_VERSION,
	CNI_UNKNOWN_COMMAND,
};

/* The driver for Podman sets it: Podman listens on each host port of a container before it asks for
 * its network, and so keeps it from others. */
#define ENGINE_HOLDS_PORTS "BPF_PORTMAP_ENGINE_HOLDS_PORTS"

/* The strings belong to the environment. A variable that is unset is "", as CNI makes no difference
 * between the two. */
struct cni_environment {
	enum cni_command command;
	const char *command_name; /* as given, for messages */
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args;
	bool netns_override; /* CNI_NETNS_OVERRIDE: the plugin's own netns is meant */
	bool engine_holds_ports;
};

void cni_environment_read(struct cni_environment *environment);

/* Checks the variables that the command needs and no others, in libcni's order.
 * CNI_ERROR_INVALID_ENVIRONMENT. An unknown command needs nothing here:
 * cni_network_config_parse() reports it, after the configuration's own errors. CNI_PATH is never
 * required, as a plugin that delegates nothing does not need it. */
int cni_environment_validate(const struct cni_environment *environment, struct cni_error *err);

/* Checks for ^[A-Za-z0-9][A-Za-z0-9_.-]*$; CNI_ERROR_INVALID_ENVIRONMENT. */
int cni_validate_container_id(const char *container_id, struct cni_error *err);
/* Checks for the same characters; CNI_ERROR_INVALID_CONFIGURATION. */
int cni_validate_network_name(const char *name, struct cni_error *err);
/* Checks for 1-15 bytes, not . or .., no slash, colon or white space;
 * CNI_ERROR_INVALID_ENVIRONMENT. */
int cni_validate_ifname(const char *ifname, struct cni_error *err);

/* Returns the key's value in CNI_ARGS ("K=V;K=V"), *length bytes long without a NUL; the last one
 * of several, or NULL. Skips what is not K=V. */
const char *cni_args_get(const char *args, const char *key, size_t *length);
bool cni_args_have_key(const char *args, const char *key);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plugin.h - an operation of a plugin: what it finds on stdin, and what its answer means. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/runtime_conf.h"

/* The same for all plugins of a conflist. */
struct operation {
	const char *command; /* CNI_COMMAND */
	const struct conflist *list;
	const struct runtime_conf *conf;
	json_t *valid_attachments; /* for GC: [{"containerID","ifname"}]; else NULL */
	bool goes_on;              /* after an error, too */
	const char *when;          /* before the messages; NULL: nothing */
};

/* Makes the plugin's object with the conflist's name and version, prevResult unless it is NULL,
 * those capability arguments that the plugin declares as runtimeConfig, unless there are none, and
 * the valid attachments under both of their keys. A new reference. */
json_t *plugin_compose_request(const struct operation *operation, const json_t *plugin,
			       json_t *prev_result);

/* Runs one. *result (NULL: not wanted): what ADD answered, a valid object with cniVersion, a new
 * reference. Errors name the plugin and say how it failed; the code is the plugin's own where it
 * gave one. */
int plugin_run(const struct operation *operation, const json_t *plugin, json_t *prev_result,
	       json_t **result, struct cni_error *err);

/* Runs each plugin of the conflist, in order or, for DEL, in reverse. *result as above: of ADD each
 * plugin's result is the next one's prevResult, and the last one's is left there. */
int plugin_run_all(const struct operation *operation, json_t *prev_result, json_t **result,
		   struct cni_error *err);

/* Returns the versions that a plugin says it supports: a new array, or NULL. */
json_t *plugin_ask_versions(const struct conflist *list, const struct runtime_conf *conf,
			    const json_t *plugin, struct cni_error *err);

/* Checks whether every plugin of an operation has a file, which is asked before the first one is
 * run. */
int plugin_find_all(const struct operation *operation, struct cni_error *err);

/* Returns the names that an operation on a network has, which concerns no container. */
struct runtime_conf plugin_conf_of_network(const struct runtime_conf *conf);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * invoke.h - one operation of one plugin, and what its answer means.
 */
#ifndef CNIRUN_INVOKE_H
#define CNIRUN_INVOKE_H

#include <jansson.h>

#include "cni/error.h"
#include "cnirun/conflist.h"
#include "cnirun/execute.h"

/* Runs the plugin with the request on stdin. *result (NULL: not wanted): what ADD
 * answered, an object with cniVersion, a new reference. Errors name the plugin and say
 * how it failed; the code is the plugin's own where it gave one. */
int invoke_plugin(const struct conflist *list, const json_t *plugin,
		  const struct execute_environment *environment, const struct execution *execution,
		  const json_t *request, json_t **result, struct cni_error *err);

/* The same for a command that concerns a network, not a container: GC, STATUS. */
int invoke_for_network(const struct conflist *list, const json_t *plugin, const char *command,
		       const struct execution *execution, const json_t *request,
		       struct cni_error *err);

/* The versions that a plugin says it supports: a new array, or NULL. */
json_t *invoke_version(const struct conflist *list, const json_t *plugin,
		       const struct execution *execution, struct cni_error *err);

/* Whether every plugin of the list has a file, before the first one is run. */
int invoke_find_all(const struct conflist *list, const char *path, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * request.h - what a plugin finds on stdin.
 */
#ifndef CNIRUN_REQUEST_H
#define CNIRUN_REQUEST_H

#include <jansson.h>

#include "cni/error.h"
#include "cnirun/conflist.h"

/* The plugin's object with the list's name and version, prevResult unless it is NULL,
 * and of the capability arguments (an object or NULL) those that the plugin declares;
 * where that is none, its runtimeConfig stays as it was. A new reference, or NULL. */
json_t *request_compose(const struct conflist *list, const json_t *plugin, json_t *prev_result,
			const json_t *capability_args, struct cni_error *err);

/* For GC: valid attachments ([{"containerID","ifname"}]) under both of their keys. */
json_t *request_compose_gc(const struct conflist *list, const json_t *plugin,
			   json_t *valid_attachments, struct cni_error *err);

#endif

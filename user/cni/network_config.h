/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network_config.h - the configuration that a plugin finds on stdin: the parts that
 * belong to CNI and not to a plugin.
 */
#ifndef CNI_NETWORK_CONFIG_H
#define CNI_NETWORK_CONFIG_H

#include <jansson.h>
#include <stddef.h>

#include "cni/environment.h"
#include "cni/error.h"

/* Begins as {0}. All but `root` is borrowed from it. */
struct cni_network_config {
	json_t *root;        /* the whole object */
	const char *name;    /* valid */
	const char *version; /* supported; "0.1.0" where missing or empty */
};

/* Reports in libcni's order: not JSON (6), name (7), command unknown (4), version
 * (1, 6). Nothing else is looked at, so that DEL can do without the rest. Also after
 * a failure, release the config; `version` is then set if it was found and supported. */
int cni_network_config_parse(struct cni_network_config *config, const char *text, size_t length,
			     const struct cni_environment *environment, struct cni_error *err);
void cni_network_config_release(struct cni_network_config *config);

/* For the error object: the configuration's version, or our newest. */
const char *cni_network_config_reply_version(const struct cni_network_config *config);

/* For ADD and CHECK of a chained plugin: prevResult, borrowed, must be there (7) and
 * an object (6). */
int cni_network_config_get_prev_result(const struct cni_network_config *config,
				       json_t **prev_result, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network_config.h - the configuration that a plugin finds on stdin: the parts that
 * belong to CNI and not to a plugin.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/environment.h"
#include "lib/error.h"

/* Begins as {0}. All but `root` is borrowed from it, `text` from the caller. */
struct cni_network_config {
	const char *text;    /* as it came */
	json_t *root;        /* the whole object */
	const char *name;    /* valid */
	const char *version; /* supported; "0.1.0" where missing or empty */
};

/* Reports errors in libcni's order: not JSON (CNI_ERROR_DECODE), name
 * (CNI_ERROR_INVALID_CONFIGURATION), unknown command (CNI_ERROR_INVALID_ENVIRONMENT), version
 * (CNI_ERROR_INCOMPATIBLE_VERSION, CNI_ERROR_DECODE). Examines nothing else, so that DEL can do
 * without the rest. Release it also after a failure, when `version` is set if it was found and
 * supported. */
int cni_network_config_parse(struct cni_network_config *config, const char *text, size_t length,
			     const struct cni_environment *environment, struct cni_error *err);
void cni_network_config_release(struct cni_network_config *config);

/* For the error object: returns the configuration's version, or the newest one. */
const char *cni_network_config_reply_version(const struct cni_network_config *config);

/* For ADD and CHECK of a chained plugin: gets prevResult, borrowed. CNI_ERROR_INVALID_CONFIGURATION
 * where it is missing, CNI_ERROR_DECODE where it is no object. */
int cni_network_config_get_prev_result(const struct cni_network_config *config,
				       json_t **prev_result, struct cni_error *err);

/* Reads which attachments GC is told to keep: cni.dev/valid-attachments, else cni.dev/attachments
 * (libcni sends both). *valid: a new object, or NULL where the configuration has neither key, so
 * that they are not known; for null, which libcni sends if none is valid, it is empty.
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION; to be released after a failure, too. */
int cni_attachments_read(json_t **valid, const json_t *config, struct cni_error *err);

bool cni_attachments_have(const json_t *valid, const char *container_id, const char *ifname);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* reply.h - what goes to stdout: one JSON document per run, and nothing else. */
#pragma once

#include <jansson.h>

#include "cni/network_config.h"
#include "lib/error.h"

/* Prints the result of an operation. Call it when nothing else can fail. CNI_ERROR_IO. */
int cni_reply_result(const json_t *result, struct cni_error *err);

/* The same for a chained plugin that changes nothing: the result is prevResult, which was read
 * before. */
int cni_reply_prev_result(const struct cni_network_config *config, struct cni_error *err);

/* Prints the answer to VERSION: our newest version and all we support. CNI_ERROR_IO. */
int cni_reply_versions(struct cni_error *err);

/* Prints the error object. After another reply, even an incomplete one, and where stdout cannot be
 * written, the message goes to stderr instead: two documents on stdout are not valid JSON. */
void cni_reply_error(const char *version, const struct cni_error *err);

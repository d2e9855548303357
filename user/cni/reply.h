/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reply.h - what goes to stdout: one JSON document per run, and nothing else.
 */
#ifndef CNI_REPLY_H
#define CNI_REPLY_H

#include <jansson.h>

#include "cni/error.h"

/* The result of an operation. Call it when nothing else can fail. Code 5. */
int cni_reply_result(const json_t *result, struct cni_error *err);

/* The answer to VERSION: our newest version and all we support. Code 5. */
int cni_reply_versions(struct cni_error *err);

/* The error object. Where a reply has been begun before, or stdout cannot be written,
 * the message goes to stderr instead: a second document would void the first. */
void cni_reply_error(const char *version, const struct cni_error *err);

#endif

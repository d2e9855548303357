/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_validate.h - whether a result is one, in the shape of its version.
 */
#ifndef CNIRUN_RESULT_VALIDATE_H
#define CNIRUN_RESULT_VALIDATE_H

#include <jansson.h>

#include "cni/error.h"

/* Takes what libcni takes when it reads a result of that (supported) version into its
 * types: unknown keys, any index of an interface, no gateway. Only addresses and destinations must
 * be there, without which libcni would write "<nil>" for the next plugin. Errors name the field.
 * Codes 6 and 7. */
int result_validate(const json_t *result, const char *version, struct cni_error *err);

#endif

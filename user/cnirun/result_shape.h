/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_shape.h - whether a plugin's result is valid.
 */
#ifndef CNIRUN_RESULT_SHAPE_H
#define CNIRUN_RESULT_SHAPE_H

#include <jansson.h>

#include "lib/error.h"

/* Accepts what libcni accepts when it reads a result of that (supported) version into its types:
 * unknown keys, any index of an interface, no gateway. Only addresses and destinations must be
 * there, without which libcni would write "<nil>" for the next plugin. Errors name the field:
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
int result_validate(const json_t *result, const char *version, struct cni_error *err);

#endif

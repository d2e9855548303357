/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* result_shape.h - whether a plugin's result is valid. */
#ifndef CNIRUN_RESULT_SHAPE_H
#define CNIRUN_RESULT_SHAPE_H

#include <jansson.h>

#include "lib/error.h"

/* Checks, for a supported version, what plugins of the list could not go on with: interfaces,
 * addresses, and destinations of routes, of which libcni would write "<nil>" for the next plugin.
 * What it does not know it leaves to them. Errors name the field: CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. */
int result_validate(const json_t *result, const char *version, struct cni_error *err);

#endif

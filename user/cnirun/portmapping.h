/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * portmapping.h - -p [HOSTIP:]HOSTPORT:CONTAINERPORT[/PROTO] to runtimeConfig.portMappings.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"

/* Appends one mapping to the array, or one for each port of two ranges of the same length
 * ("8000-8010:80-90"). An IPv6 host address is in brackets. CNI_ERROR_INVALID_ENVIRONMENT. */
int portmapping_parse(const char *text, json_t *mappings, struct cni_error *err);

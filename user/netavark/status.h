/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.h - what setup answers: `podman inspect` shows it, and Podman takes the container's name
 * servers from it.
 */
#ifndef NETAVARK_STATUS_H
#define NETAVARK_STATUS_H

#include <jansson.h>

#include "lib/error.h"
#include "netavark/request.h"

/* Makes it from the last plugin's result. A new reference, or NULL and CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. */
json_t *status_make(const json_t *result, const struct request *request, struct cni_error *err);

#endif

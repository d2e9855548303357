/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * status.h - what setup answers: `podman inspect` shows it, and Podman takes the container's name
 * servers from it.
 */
#ifndef NETAVARK_STATUS_H
#define NETAVARK_STATUS_H

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "netavark/request.h"

/* Makes it from the last plugin's result. has_names: the network's name server knows the container,
 * which then gets it in place of the servers that the network has. A new reference, or NULL and
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
json_t *status_make(const json_t *result, const struct request *request, bool has_names,
		    struct cni_error *err);

#endif

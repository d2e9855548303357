/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * create.h - create: what `podman network create` asks of the driver.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"

/* Completes the network: its bridge, its subnets, and whether it has names, which it has not where
 * aardvark-dns cannot be used (a warning). Refuses what setup would refuse. Changes nothing on the
 * host. CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION, CNI_ERROR_INVALID_ENVIRONMENT. */
int create_network(json_t *root, struct cni_error *err);

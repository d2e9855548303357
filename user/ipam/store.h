/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * store.h - which addresses host-local has given, from its own files.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"

/* Returns {ADDRESS: {"id", "since"}} for all addresses of the pool, whoever has them, as the
 * records of state.h are; empty if the pool's plugin is another one. A new reference, or NULL and
 * CNI_ERROR_IO. */
json_t *store_read(const json_t *pool, struct cni_error *err);

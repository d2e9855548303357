/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conditions.h - portmap's "conditionsV4" and "conditionsV6", words of iptables, as our options.
 */
#pragma once

#include <jansson.h>

/* Returns a new object of the keys that let in and keep out the same clients. NULL: not all of
 * these conditions have such a key. */
json_t *conditions_translate(const json_t *config);

/* Returns the keys as they stand in a list: "excludeCIDRs": ["192.0.2.1"]. malloc'ed. */
char *conditions_print(const json_t *keys);

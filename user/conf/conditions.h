/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conditions.h - portmap's "conditionsV4" and "conditionsV6", words of iptables, as our options.
 */
#pragma once

#include <jansson.h>

/* Returns the keys that let in and keep out the same clients, as they stand in a list:
 * "excludeCIDRs": ["192.0.2.1"]. malloc'ed; NULL: not all of these conditions have such a key. */
char *conditions_translate(const json_t *ipv4, const json_t *ipv6);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_ranges.h - lists of address ranges, some of them exceptions, for conf_policy.c.
 */
#ifndef PLUGIN_CONF_RANGES_H
#define PLUGIN_CONF_RANGES_H

#include <jansson.h>

#include "plugin/conf.h"

/* Reads `key`: ["10.0.0.0/8", "!10.1.0.0/16", "192.0.2.1"]. Bits behind the prefix are
 * cleared, with a warning; each range is kept once, the longest prefix first. Codes 6 and 7. */
int conf_read_ranges(struct conf *conf, const json_t *config, const char *key,
		     struct address_range ranges[POLICY_RANGES], __u8 *count,
		     struct cni_error *err);

/* Of exceptions that change nothing. */
int conf_warn_of_idle_exceptions(struct conf *conf, const char *key,
				 const struct address_range *ranges, size_t count,
				 struct cni_error *err);

/* Whether the address is meant: the first range that holds it decides; in none: false. */
bool conf_ranges_hold(const struct address_range *ranges, size_t count,
		      const uint8_t address[CNI_ADDRESS_SIZE]);

#endif

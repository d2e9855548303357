/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_port_set.h - options that are sets of ports: masqPorts, neverPorts.
 */
#ifndef PLUGIN_CONF_PORT_SET_H
#define PLUGIN_CONF_PORT_SET_H

#include <jansson.h>

#include "plugin/conf.h"

/* Reads `key`: "1024-2000,5000", 5000, or an array of both. Ascending, neighbours united; all {0,
 * 0} where the key is missing or the array is empty. Codes 6 and 7. */
int conf_read_port_set(const json_t *config, const char *key,
		       struct port_range ranges[PORT_SET_RANGES], struct cni_error *err);

#endif

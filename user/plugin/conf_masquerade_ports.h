/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_masquerade_ports.h - masqPorts, for conf_policy.c.
 */
#ifndef PLUGIN_CONF_MASQUERADE_PORTS_H
#define PLUGIN_CONF_MASQUERADE_PORTS_H

#include <jansson.h>

#include "plugin/conf.h"

/* "1024-2000,5000", 5000, or an array of both. Ascending, neighbours united; all {0, 0}
 * where the key is missing or the array is empty. Codes 6 and 7. */
int conf_read_masquerade_ports(const json_t *config, struct port_range ranges[MASQUERADE_RANGES],
			       struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_ports.h - runtimeConfig.portMappings, for conf.c.
 */
#ifndef PLUGIN_CONF_PORTS_H
#define PLUGIN_CONF_PORTS_H

#include <jansson.h>

#include "plugin/conf.h"

/* Codes 6 and 7; also for two entries that give one host port to different targets. */
int conf_read_port_mappings(struct conf *conf, const json_t *runtime_config, struct cni_error *err);

#endif

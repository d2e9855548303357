/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_interfaces.h - uplinks and excludeInterfaces, for conf.c.
 */
#ifndef PLUGIN_CONF_INTERFACES_H
#define PLUGIN_CONF_INTERFACES_H

#include <jansson.h>

#include "plugin/conf.h"

/* Codes 6 and 7. */
int conf_read_interfaces(struct conf *conf, const json_t *config, struct cni_error *err);
void conf_release_interfaces(struct conf *conf);

#endif

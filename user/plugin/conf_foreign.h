/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_foreign.h - options that nothing here obeys, for conf.c: those that are meant for
 * iptables, and those of a later version.
 */
#ifndef PLUGIN_CONF_FOREIGN_H
#define PLUGIN_CONF_FOREIGN_H

#include <jansson.h>

#include "plugin/conf.h"

/* Refuses what is asked for in vain, and warns of what has no effect. Codes 2, 6, 7. */
int conf_check_foreign(struct conf *conf, const json_t *config, struct cni_error *err);

#endif

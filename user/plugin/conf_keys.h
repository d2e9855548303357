/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_keys.h - the names of our options, for conf.c: a misspelt one would be ignored in silence.
 */
#ifndef PLUGIN_CONF_KEYS_H
#define PLUGIN_CONF_KEYS_H

#include <jansson.h>

#include "plugin/conf.h"

/* Unknown keys are legal. One that is within two edits of an option's name gets a warning. */
int conf_check_keys(struct conf *conf, const json_t *config, struct cni_error *err);

#endif

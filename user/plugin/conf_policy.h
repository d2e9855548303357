/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_policy.h - the options that say how flows of the container are treated, for conf.c.
 */
#ifndef PLUGIN_CONF_POLICY_H
#define PLUGIN_CONF_POLICY_H

#include <jansson.h>

#include "plugin/conf.h"

/* masqAll, snat, maxFlows, masqPorts, snatAddresses, nonMasqueradeCIDRs, sourceRanges,
 * excludeCIDRs. Codes 6 and 7. */
int conf_read_policy(struct conf *conf, const json_t *config, struct cni_error *err);

/* Code 7 if a mapping's hostIP is in excludeCIDRs: it would stay silent. */
int conf_check_excluded(const struct conf *conf, struct cni_error *err);

#endif

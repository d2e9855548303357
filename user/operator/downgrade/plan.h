/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plan.h - from the attachments in the maps, and what runtimes keep, to ADDs.
 */
#ifndef OPERATOR_DOWNGRADE_PLAN_H
#define OPERATOR_DOWNGRADE_PLAN_H

#include <jansson.h>

#include "host/host.h"

/* Appends to `adds` the ADD of each attachment of a live container:
 * {"network", "container_id", "ifname", "args", "veth", "veth_index", "config"}; the last one is
 * what the plugin read. Fails where that of one is not known, or its network namespace is not seen,
 * and names the containers.
 * CNI_ERROR_INVALID_CONFIGURATION, CNI_ERROR_KERNEL_REFUSED. */
int plan_adds(json_t *adds, struct host *host, struct cni_error *err);

/* Fails where an ADD that had opened our maps before has ended since: `adds` lacks its container.
 * Call it with the lock. CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int plan_check(const json_t *adds, const struct host *host, struct cni_error *err);

#endif

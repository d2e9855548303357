/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_workload.h - whose container it is, as CNI_ARGS say, for conf.c.
 */
#ifndef PLUGIN_CONF_WORKLOAD_H
#define PLUGIN_CONF_WORKLOAD_H

#include "plugin/conf.h"

/* What Kubernetes' runtimes say (K8S_POD_NAMESPACE, K8S_POD_NAME), Nomad (NOMAD_NAMESPACE,
 * NOMAD_JOB_ID, NOMAD_GROUP_NAME) and Podman (K8S_POD_NAME); WORKLOAD_NONE where none does. People
 * will read it, so that whatever is not printable ASCII becomes a question mark, and what is too
 * long is cut. */
void conf_read_workload(struct workload *workload, const char *args);

#endif

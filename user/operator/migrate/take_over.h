/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * take_over.h - what ADD would do, for a container that runs already and whose ports are in use.
 */
#pragma once

#include "operator/migrate/containers.h"

/* Maps the ports of the container, as its runtime has asked portmap to: it becomes
 * MIGRATING_MAPPED. One that a run which was killed has mapped is completed. After a failure the
 * ports are where they were. Codes as of ADD. */
int take_over(struct migrating *container, struct cni_error *err);

/* Checks whether that can be told from what its runtime has kept, and says in container->reason
 * what it changes. Codes as of ADD. */
int take_over_check(struct migrating *container, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connections.h - the connections that conntrack translates by rules of portmap, and goes on to
 * translate when the rules are gone. They get records, so that our programs leave them alone.
 */
#pragma once

#include "datapath/load/objects.h"
#include "operator/migrate/containers.h"

/* What connections_keep() works on: the connections of one container. */
struct keeping {
	struct migrating *container;
	const struct objects *objects;
	int program; /* -1 until it is loaded */
};

/* Makes records of all that the container has now, and counts them at its ports. Call it before the
 * ports are claimed, and again afterwards. CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
int connections_keep(struct keeping *keeping, struct cni_error *err);

/* Counts the connections of all containers, and makes no records. CNI_ERROR_IO. */
int connections_count(const struct migrating_list *containers, struct cni_error *err);

/* Counts those that conntrack still translates and that have such a record. CNI_ERROR_IO. */
int connections_left(const struct objects *objects, unsigned int *count, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * connections.h - the connections that conntrack translates for rules of portmap, which it goes on
 * to do when the rules are gone. They get records by which our programs leave them alone.
 */
#ifndef OPERATOR_MIGRATE_CONNECTIONS_H
#define OPERATOR_MIGRATE_CONNECTIONS_H

#include "datapath/load/objects.h"
#include "operator/migrate/rules.h"

/* Of the rules of one container. */
struct keeping {
	struct portmap_rules *rules;
	size_t container;
	const struct objects *objects;
	int program; /* -1 until it is loaded */
};

/* Makes records of all that are there now, and counts them in the rules. Call it before the ports
 * are claimed, and again afterwards. CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
int connections_keep(struct keeping *keeping, struct cni_error *err);

/* Only counts them. CNI_ERROR_IO. */
int connections_count(struct portmap_rules *rules, struct cni_error *err);

/* Counts those that conntrack still translates and that have such a record. CNI_ERROR_IO. */
int connections_left(const struct objects *objects, unsigned int *count, struct cni_error *err);

#endif

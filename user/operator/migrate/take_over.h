/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * take_over.h - what ADD would do, for a container that runs already and whose ports are in use.
 */
#ifndef OPERATOR_MIGRATE_TAKE_OVER_H
#define OPERATOR_MIGRATE_TAKE_OVER_H

#include "operator/migrate/containers.h"

struct host;

/* Maps the ports of the rules that are RULE_MAP for this container, which become RULE_MAPPED. One
 * that a run which was killed has mapped is completed. After a failure the ports are where they
 * were. Codes as of ADD. */
int take_over(struct portmap_rules *rules, const struct migrating_list *containers, size_t number,
	      struct cni_error *err);

/* Leaves the rules whose ports cannot be mapped: at an address that is not on this host, of another
 * container of ours, or of an earlier rule. The host is open. */
void take_over_judge(struct portmap_rules *rules, const struct migrating_list *containers,
		     const struct host *host);

#endif

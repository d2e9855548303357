/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * keeper.h - a table of nftables that keeps conntrack and its translation at work.
 *
 * The kernel looks packets up in conntrack only while some rule of the network namespace needs
 * that, and translates only while there is a chain of type nat. portmap's rules may have been the
 * last ones. A rule that does nothing, in a table of our own, stays in their place until the
 * connections have ended.
 */
#ifndef OPERATOR_MIGRATE_KEEPER_H
#define OPERATOR_MIGRATE_KEEPER_H

#include <stdbool.h>

#include "lib/error.h"

#define KEEPER_TABLE "bpf_portmap_migrated"

/* Makes the table, or makes it anew. CNI_ERROR_IO. */
int keeper_add(struct cni_error *err);
bool keeper_exists(void);
/* CNI_ERROR_IO. */
int keeper_remove(struct cni_error *err);

#endif

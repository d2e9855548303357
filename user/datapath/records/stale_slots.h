/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stale_slots.h - what damaged records leave behind.
 *
 * A slot is stale if it is in use and no record points to it. Wherever ADD and DEL are killed,
 * they leave no stale slot that is live: that comes of maps that were changed by hand. A stale slot
 * and its ports are free for the next ADD; only room in the maps is lost until the sweep.
 */
#ifndef DATAPATH_RECORDS_STALE_SLOTS_H
#define DATAPATH_RECORDS_STALE_SLOTS_H

#include <stddef.h>

#include "datapath/load/objects.h"
#include "lib/error.h"

/* Empties stale slots, and removes from portmaps, endpoints, policies and interfaces entries of
 * owners that do not exist any more. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int stale_slots_sweep(const struct objects *objects, struct cni_error *err);

/* How many slots and entries that would empty or remove. Call it with the lock.
 * CNI_ERROR_KERNEL_REFUSED. */
int stale_slots_count(const struct objects *objects, size_t *count, struct cni_error *err);

#endif

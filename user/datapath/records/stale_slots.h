/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * stale_slots.h - what damaged records leave behind.
 *
 * A slot is stale if it is in use and no record points to it. Whatever ADD and DEL are killed at,
 * they leave no stale slot that is live: somebody has changed the maps. A stale slot is free for
 * the next ADD, its ports are free for whoever asks for them; only room in the maps is lost until
 * the sweep.
 */
#ifndef DATAPATH_RECORDS_STALE_SLOTS_H
#define DATAPATH_RECORDS_STALE_SLOTS_H

#include "datapath/load/objects.h"
#include "lib/error.h"

/* Empties stale slots, and removes from portmaps, endpoints, policies and interfaces what owners
 * have that are no more. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int stale_slots_sweep(const struct objects *objects, struct cni_error *err);

#endif

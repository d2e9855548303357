/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * policies.h - what an attachment's configuration says about its flows, in the map policies.
 *
 * Entries go by slot number. What a killed run left there is replaced, or deleted, by
 * the next user of the slot, and until then belongs to an owner that does not exist.
 */
#ifndef DATAPATH_RECORDS_POLICIES_H
#define DATAPATH_RECORDS_POLICIES_H

#include <stdbool.h>

#include "lib/error.h"
#include "datapath/load/objects.h"

/* Returns whether it has nothing but defaults: then it needs no entry. */
bool policy_says_nothing(const struct policy *policy);

/* Writes the wanted policy, which names no owner. Where it says nothing but defaults, the slot has
 * no entry afterwards. Call it with the lock, before the slot is live; its `has_policy` must say
 * the same. CNI_ERROR_KERNEL_REFUSED. */
int policy_write(const struct objects *objects, struct owner owner, const struct policy *wanted,
		 struct cni_error *err);

/* Compares it with the map. CNI_ERROR_KERNEL_REFUSED naming the first option that is not in the map
 * as it should be. */
int policy_verify(const struct objects *objects, struct owner owner, const struct policy *wanted,
		  struct cni_error *err);

#endif

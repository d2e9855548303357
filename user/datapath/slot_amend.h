/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * slot_amend.h - changing a slot that is live.
 *
 * Writing the value as a whole would put back `flows`, which the programs count, and might be
 * seen half done. So a few instructions in the kernel write the two fields that may change, each
 * in one store: they are loaded only when there is something to change.
 */
#ifndef DATAPATH_SLOT_AMEND_H
#define DATAPATH_SLOT_AMEND_H

#include "cni/error.h"
#include "datapath/objects.h"

/* The program: a file descriptor to close, or -1 and code 102. */
int slot_amender_open(const struct objects *objects, struct cni_error *err);

/* Gives the slot of this number the gateway_mac and fast_path of *wanted, which is how it was read
 * otherwise; unless another generation has it meanwhile. Call it with the lock. Code 102. */
int slot_amend(int amender, uint32_t number, const struct slot *wanted, struct cni_error *err);

#endif

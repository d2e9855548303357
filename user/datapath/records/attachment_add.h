/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_add.h - what an attachment owns in the maps: made as a whole, removed as a
 * whole, whenever a run is killed.
 *
 * The order of writes is the crash safety. ADD: generation, slot (not live), record (the intent),
 * policy, ports, endpoints, interface, live, record (ready), the network's witness. DEL: not live,
 * ports, endpoints, policy, interface, record, slot. What a killed run leaves is either found by
 * its record, or has no owner and is free for the next run.
 */
#pragma once

#include "datapath/records/attachments.h"

/* Opens the maps that the function below writes. Call it before anything is attached: then neither
 * that function nor what undoes it fails for want of open files. CNI_ERROR_KERNEL_REFUSED. */
int attachment_open_maps(const struct objects *objects, struct cni_error *err);

/* Claims everything, under the lock, in place of whatever this attachment had before. A port whose
 * owner is gone is taken over, with a warning. All or nothing; what it had before is gone also
 * after a failure. CNI_ERROR_PORT_TAKEN naming the owner, CNI_ERROR_INVALID_CONFIGURATION (the veth
 * is gone), CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_add(const struct objects *objects, const struct attachment_claims *claims,
		   struct cni_error *err);

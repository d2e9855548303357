/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment.h - what an attachment owns in the maps: made as a whole, removed as a whole, whenever
 * a run is killed.
 *
 * The order of writes is the crash safety. ADD: generation, slot (not live), record (the intent),
 * policy, ports, endpoints, interface, live, record (ready), the network's witness. DEL: not live,
 * ports, endpoints, policy, interface, record, slot. What a killed run leaves is either found by
 * its record, or has no owner and is free for the next run.
 */
#pragma once

#include "datapath/records/attachments.h"

/* Ports in one system call: most of what thousands cost is entering the kernel. */
#define PORT_BATCH 256U

/* What one command releases; the rest begins as zeros. */
struct release {
	const struct objects *objects;
	/* What the owner probably has, where its configuration is known, or NULL. Looking that up
	 * instead of walking through the maps makes a DEL a fifth shorter, and as long however much
	 * other containers have. */
	const struct attachment_claims *likely;
};

/* Removes all that the attachment has, if there is a record of it. What it owns goes before the
 * record and the slot, which is not live from then on: by these two the next command finds what a
 * killed one left. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err);

/* Removes all that it owns. One that is not there: 0. `likely`: what it probably
 * owns, or NULL. CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err);

/* Removes all it owns. *was_there: false where it was deleted, or added again, since it was
 * listed, so that nothing is removed. CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_remove_stale(const struct objects *objects, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err);

/* Returns whether no container can use it any more: its slot or its veth is gone. Takes the lock,
 * so that an ADD that is making it has finished; false where it cannot take it. */
bool attachment_is_abandoned(const struct objects *objects, const struct attachment_entry *entry);

/* Removes attachments whose veth is gone and for which DEL was not called: engines forget a
 * container that was killed with its namespace, or call DEL of another conflist. The programs see
 * that such an owner is gone and leave its ports alone; only if they have met one since the last
 * time anything is looked for. Warns of each. A failure is a warning, too: callers have done their
 * own job by then. Takes the lock. */
void abandoned_remove(const struct datapath *datapath);

/* Opens the maps that the function below writes. Call it before anything is attached: then neither
 * that function nor what undoes it fails for want of open files. CNI_ERROR_KERNEL_REFUSED. */
int attachment_open_maps(const struct objects *objects, struct cni_error *err);

/* Claims everything, under the lock, in place of whatever this attachment had before. A port whose
 * owner is gone is taken over, with a warning. All or nothing; what it had before is gone also
 * after a failure. CNI_ERROR_PORT_TAKEN naming the owner, CNI_ERROR_INVALID_CONFIGURATION (the veth
 * is gone), CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED. */
int attachment_add(const struct objects *objects, const struct attachment_claims *claims,
		   struct cni_error *err);

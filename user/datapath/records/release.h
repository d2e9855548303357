/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * release.h - removing from the maps what an owner has.
 */
#ifndef DATAPATH_RECORDS_RELEASE_H
#define DATAPATH_RECORDS_RELEASE_H

#include "lib/error.h"
#include "datapath/records/claims.h"
#include "datapath/records/udp_clients.h"

/* Ports in one system call: most of what thousands cost is entering the kernel. */
#define PORT_BATCH 256U

/* What one command releases; the rest begins as zeros. */
struct release {
	const struct objects *objects;
	/* What the owner probably has, where its configuration is known, or NULL. Looking that up
	 * instead of walking through the maps makes a DEL a fifth shorter, and as long however much
	 * other containers have. */
	const struct attachment_claims *likely;
	struct udp_ports udp_ports; /* that were released, or that somebody else has now */
};

/* Releases everything but the record and the slot, which is not live from then on: by these two the
 * next command finds what a killed one left. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int release_owned(struct release *release, const struct attachment *record, struct cni_error *err);

/* Unlocks, and then ends the UDP sockets of host processes that are connected to released ports,
 * which takes milliseconds. */
void release_finish(const struct release *release, int *lock);

#endif

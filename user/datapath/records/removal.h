/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * removal.h - removing from the maps what an owner has.
 */
#ifndef DATAPATH_RECORDS_REMOVAL_H
#define DATAPATH_RECORDS_REMOVAL_H

#include <stdbool.h>

#include "lib/error.h"
#include "datapath/records/claims.h"
#include "datapath/records/udp_clients.h"

/* Ports in one system call: most of what thousands cost is entering the kernel. */
#define PORT_BATCH 256U

/* Begins as {0}. */
struct removed {
	/* What it probably has, from whoever knows its configuration, or NULL: a few look-ups
	 * are a tenth of looking through a map, and cost the same however much others have. */
	const struct attachment_claims *likely;
	struct udp_ports udp_ports; /* to which sockets of the host may be connected */
};

/* Everything but the record and the slot, which is not live from then on: they are what a
 * killed run is found by. Call it with the lock. Code 102. */
int removal_run(const struct objects *objects, const struct attachment *record,
		struct removed *removed, struct cni_error *err);

/* Releases the lock, and lets go on elsewhere who was connected to what was removed. */
void removal_finish(const struct objects *objects, const struct removed *removed, int *lock);

#endif

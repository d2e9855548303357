/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * masquerade_ports.h - keeping the ports of masqueraded flows, in meta, apart from the
 * host's own as they are now.
 */
#ifndef DATAPATH_RECORDS_MASQUERADE_PORTS_H
#define DATAPATH_RECORDS_MASQUERADE_PORTS_H

#include <stdbool.h>

#include "lib/error.h"
#include "datapath/load/objects.h"

/* As the host's settings have them now. */
struct masquerade_ports {
	struct port_range ranges[MASQUERADE_RANGES];
	bool enough;
};

/* Reads files: call it before the lock is taken. */
void masquerade_ports_read(struct masquerade_ports *ports);

/* Fills meta->masquerade_ports. Where they are others than in meta they are read once more, for
 * they were read a little while ago. False: they are the same. Warns where they have changed and
 * the host leaves hardly one. */
bool masquerade_ports_follow(struct meta *meta, const struct masquerade_ports *ports);

/* Writes ports that were read a little while ago to the map if they are others than before. A flow
 * that lives keeps its port. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int masquerade_ports_refresh(const struct objects *objects, const struct masquerade_ports *ports,
			     struct cni_error *err);

#endif

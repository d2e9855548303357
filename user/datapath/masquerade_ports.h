/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * masquerade_ports.h - keeping the ports of masqueraded flows, in meta, apart from the
 * host's own as they are now.
 */
#ifndef DATAPATH_MASQUERADE_PORTS_H
#define DATAPATH_MASQUERADE_PORTS_H

#include <stdbool.h>

#include "cni/error.h"
#include "datapath/objects.h"

/* Fills meta->masquerade_ports. False: they are the same as before. Warns where they are
 * others and the host leaves hardly one. */
bool masquerade_ports_choose(struct meta *meta);

/* Writes them to the map if they are others than before. A flow that lives keeps its port.
 * Call it with the lock. Code 102. */
int masquerade_ports_refresh(const struct objects *objects, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * published_ports.h - the map that says of most ports that they need not be looked for.
 */
#ifndef DATAPATH_PUBLISHED_PORTS_H
#define DATAPATH_PUBLISHED_PORTS_H

#include "datapath/claims.h"

/* Marks the ports of all claims. Before any of them is written to portmaps, with the lock.
 * Code 102. */
int published_ports_mark(const struct objects *objects, const struct attachment_claims *claims,
			 struct cni_error *err);

#endif

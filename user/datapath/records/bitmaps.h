/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bitmaps.h - the maps that tell of most ports and addresses that no mapping or endpoint has them.
 */
#ifndef DATAPATH_RECORDS_BITMAPS_H
#define DATAPATH_RECORDS_BITMAPS_H

#include "datapath/records/claims.h"

/* Marks the ports and addresses of all claims. Call it before any of them is written to portmaps
 * or endpoints, with the lock. Code 102. */
int bitmaps_mark(const struct objects *objects, const struct attachment_claims *claims,
		 struct cni_error *err);

#endif

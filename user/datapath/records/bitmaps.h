/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bitmaps.h - the maps published_ports and endpoint_addresses, which spare packets and sockets a
 * look-up: published_ports has a bit for each port that portmaps or nat_ports may have an entry of,
 * endpoint_addresses one for each hash that the address of an endpoint may have. A bit too many
 * costs a look-up, and a bit that is missing hides an entry. So it is set before the entry is
 * written, and cleared by those alone who read all entries under the same lock.
 */
#pragma once

#include "datapath/records/attachments.h"

/* Sets the bits of all claims. Call it with the lock, before any of the claims is written.
 * CNI_ERROR_KERNEL_REFUSED. */
int bitmaps_mark(const struct objects *objects, const struct attachment_claims *claims,
		 struct cni_error *err);

/* Sets the bit of a port of which nat_ports gets an entry, likewise. */
int bitmaps_mark_nat_port(const struct objects *objects, uint16_t port, struct cni_error *err);

/* Clears the bits that no mapping, nor the host's own NAT, nor an endpoint has any more. Call it
 * with the lock. CNI_ERROR_KERNEL_REFUSED. */
int bitmaps_forget(const struct objects *objects, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims_write.h - getting for an owner what its attachment asks for.
 */
#ifndef DATAPATH_RECORDS_CLAIMS_WRITE_H
#define DATAPATH_RECORDS_CLAIMS_WRITE_H

#include "datapath/records/claims.h"
#include "datapath/records/masquerade_ports.h"
#include "datapath/records/release.h"

struct nl_sock;

/* What ADD works with while it has the lock. */
struct adding {
	struct release release; /* of what the attachment had before, and of dead owners */
	struct nl_sock *socket;
	const struct attachment_claims *claims;
	struct attachment record; /* as it is written */
	struct masquerade_ports masquerade_ports;
};

/* Writes ports, endpoints and the interface for the record's owner. The record then has the number
 * of ports that are its own: those that the same container has by another interface stay there. A
 * port whose owner is dead is taken over with a warning, and that owner is released; an address is
 * taken over in any case. What was written before a failure stays. Call it with the lock.
 * CNI_ERROR_PORT_TAKEN naming the owner, CNI_ERROR_KERNEL_REFUSED. */
int claims_write(struct adding *adding, struct cni_error *err);

#endif

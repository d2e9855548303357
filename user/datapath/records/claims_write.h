/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * claims_write.h - getting for an owner what its attachment asks for.
 */
#ifndef DATAPATH_RECORDS_CLAIMS_WRITE_H
#define DATAPATH_RECORDS_CLAIMS_WRITE_H

#include "datapath/records/claims.h"
#include "datapath/records/removal.h"

struct nl_sock;

/* Writes ports, endpoints and the interface for the record's owner, and how many ports it got
 * into the record: those that the same container has by another interface stay there. Takes
 * over, with a warning, a port whose owner is dead, who loses all he has, and an address whoever
 * has it. What was written before a failure stays. Call it with the lock. Codes 101 naming the
 * owner, 102. */
int claims_write(const struct objects *objects, struct nl_sock *socket,
		 const struct attachment_claims *claims, struct attachment *record,
		 struct removed *removed, struct cni_error *err);

#endif

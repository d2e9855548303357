/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_verify.h - comparing what an attachment owns with what it should.
 */
#ifndef DATAPATH_RECORDS_ATTACHMENT_VERIFY_H
#define DATAPATH_RECORDS_ATTACHMENT_VERIFY_H

#include "datapath/load/datapath.h"
#include "datapath/records/claims.h"

/* Compares what is in the maps with the claims; the ports only if `with_ports`, else that there are
 * as many as were claimed. CNI_ERROR_KERNEL_REFUSED naming the first difference. */
int attachment_verify(const struct datapath *datapath, const struct attachment_claims *claims,
		      bool with_ports, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * excluded.h - the map of addresses that look local but are never mapped.
 */
#ifndef DATAPATH_EXCLUDED_H
#define DATAPATH_EXCLUDED_H

#include "cni/error.h"
#include "datapath/objects.h"
#include "net/address_list.h"

/* Makes the map hold the subnets' broadcast addresses, and the addresses of the interfaces
 * that are marked as excluded in the list, and nothing else. Code 102. */
int excluded_refresh(const struct objects *objects, const struct address_list *addresses,
		     struct cni_error *err);

#endif

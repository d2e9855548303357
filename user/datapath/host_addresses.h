/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_addresses.h - the map of what is local to routing, for programs that cannot ask it.
 */
#ifndef DATAPATH_HOST_ADDRESSES_H
#define DATAPATH_HOST_ADDRESSES_H

#include "cni/error.h"
#include "datapath/objects.h"
#include "net/address_list.h"

/* Makes the map hold the host's addresses as they are in the list, and nothing else. Those
 * of interfaces that are marked as excluded there, and subnets' broadcast addresses, are
 * excluded. Codes 102, 11. */
int host_addresses_refresh(const struct objects *objects, const struct address_list *addresses,
			   struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_addresses.h - the map of what is local to routing, for programs that cannot ask it.
 */
#ifndef DATAPATH_RECORDS_HOST_ADDRESSES_H
#define DATAPATH_RECORDS_HOST_ADDRESSES_H

#include "lib/error.h"
#include "datapath/load/objects.h"
#include "net/address_list.h"

struct nl_sock;

/* Makes the map hold the host's addresses and nothing else. Those of interfaces that the map
 * interfaces has as excluded, and subnets' broadcast addresses, are excluded there. `addresses` is
 * what the host had a moment ago: where the map agrees with it nothing is done.
 * CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN, CNI_ERROR_IO. */
int host_addresses_refresh(const struct objects *objects, struct nl_sock *socket,
			   const struct address_list *addresses, struct cni_error *err);

#endif

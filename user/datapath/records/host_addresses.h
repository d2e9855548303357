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

/* Reads from the map interfaces which interfaces of the list have excluded addresses; in the order
 * of the list, malloc'ed. */
bool *host_addresses_read_excluded(const struct objects *objects,
				   const struct address_list *addresses);

/* Makes the map hold the host's addresses and nothing else. Those of excluded interfaces, and
 * subnets' broadcast addresses, are excluded there. `addresses` and `excluded` are what the host
 * had a moment ago: where the map agrees with them nothing is done. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN, CNI_ERROR_IO. */
int host_addresses_refresh(const struct objects *objects, struct nl_sock *socket,
			   const struct address_list *addresses, const bool *excluded,
			   struct cni_error *err);

#endif

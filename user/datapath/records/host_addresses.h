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

/* Makes the map hold the host's addresses, and nothing else; those of excluded interfaces and
 * subnets' broadcast addresses are excluded there. `addresses`, with its marks, is what the
 * host had a moment ago: where the map agrees with it nothing is done. Codes 102, 11, 5. */
int host_addresses_refresh(const struct objects *objects, struct nl_sock *socket,
			   const struct address_list *addresses, struct cni_error *err);

/* Marks in the list the interfaces that the map interfaces has as excluded. */
void host_addresses_mark_excluded(const struct objects *objects, struct address_list *addresses);

#endif

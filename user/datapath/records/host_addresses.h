/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * host_addresses.h - the map of what is local to routing, for programs that cannot ask it.
 */
#pragma once

#include "lib/error.h"
#include "datapath/load/objects.h"
#include "net/address_list.h"

/* Returns whether the map holds the host's addresses and nothing else. `excluded`: for each
 * interface of the list, whether no port is mapped there; those addresses, and subnets' broadcast
 * addresses, are excluded in the map. */
bool host_addresses_are_written(const struct objects *objects, const struct address_list *addresses,
				const bool *excluded);

/* Makes it so. Call it with the lock. CNI_ERROR_KERNEL_REFUSED. */
int host_addresses_write(const struct objects *objects, const struct address_list *addresses,
			 const bool *excluded, struct cni_error *err);

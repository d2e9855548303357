/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * prepare.h - the cold path: from whatever state to a datapath that is ready.
 */
#ifndef HOST_PREPARE_H
#define HOST_PREPARE_H

#include "datapath/load/datapath.h"
#include "net/address_list.h"

/* Loads, or repairs, or brings up to date, under the lock; an open datapath that is READY
 * already costs nothing. Where pins are missing, the maps of our programs that run at the
 * addressed interfaces are adopted, so that there is never a second set beside the first.
 * assured: of connections, for a new table; 0: as fits the machine. Codes 102, 11. */
int datapath_prepare(struct datapath *datapath, const struct address_list *addresses,
		     uint32_t assured, struct cni_error *err);

/* For DEL and GC, which must find what is there, but load nothing new: as
 * datapath_prepare() where there are maps to be found. Leaves a datapath that is not
 * usable where there are none. */
int datapath_recover(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err);

#endif

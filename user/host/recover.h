/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * recover.h - the cold path: from any state of pins to a datapath that is ready.
 */
#ifndef HOST_RECOVER_H
#define HOST_RECOVER_H

#include "datapath/load/datapath.h"
#include "net/address_list.h"

/* Loads, repairs or updates under the lock; does nothing where the open datapath is READY. Where
 * pins are missing, the maps of our programs that run at the addressed interfaces are adopted, so
 * that there is never a second set beside the first. `assured`: how many assured flows a new table
 * holds; 0: as fits the machine. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int datapath_prepare(struct datapath *datapath, const struct address_list *addresses,
		     uint32_t assured, struct cni_error *err);

/* For commands that must find what is there, but load nothing new: as datapath_prepare() where
 * there are maps to find. Where there are none the datapath is not usable afterwards. */
int datapath_recover(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * ready.h - from any state of the pins to a datapath that is ready: the first load, a newer
 * program, lost pins.
 */
#ifndef HOST_READY_H
#define HOST_READY_H

#include "datapath/load/datapath.h"
#include "net/address_list.h"

/* Loads, updates or repairs under the lock; does nothing where the open datapath is READY. Where
 * pins are lost, it adopts the maps of our programs that run at the addressed interfaces, so that
 * there is never a second set beside the first. `assured` says how many assured connections a new
 * table holds; 0: as fits the machine. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int datapath_make_ready(struct datapath *datapath, const struct address_list *addresses,
			uint32_t assured, struct cni_error *err);

/* Loads the programs of this binary also where others are there, older or newer, and does what the
 * function above does; where nothing is loaded it loads nothing. Fails, when all the rest is done,
 * where a program at a hook could not be replaced. Errors as above. */
int datapath_upgrade(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err);

/* For commands that must find what is there, but load nothing new: makes the datapath ready where
 * there are maps to find. Where there are none it is not usable afterwards. Errors as above. */
int datapath_recover(struct datapath *datapath, const struct address_list *addresses,
		     struct cni_error *err);

/* For uninstall: opens all maps that there are, by our programs that run where pins are lost, and
 * neither loads nor pins anything. Usable afterwards where there are all, of our layout. */
void datapath_find(struct datapath *datapath, const struct address_list *addresses);

#endif

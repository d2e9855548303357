/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach_verify.h - whether our programs are where they must be.
 */
#ifndef DATAPATH_ATTACH_ATTACH_VERIFY_H
#define DATAPATH_ATTACH_ATTACH_VERIFY_H

#include "datapath/load/datapath.h"

#define MISSING_SIZE 256

/* Returns whether the pinned programs are at the role's hooks. A quick look, good enough for an
 * interface that was attached to before. */
bool attach_is_settled(const struct datapath *datapath, uint32_t ifindex,
		       const struct interface *interface);

/* Returns whether the pinned programs, or older ones that use the pinned maps, are at the role's
 * hooks. Where not, `missing` says what is missing, as a phrase. */
bool attach_verify(const struct datapath *datapath, uint32_t ifindex,
		   const struct interface *interface, char missing[MISSING_SIZE]);

/* Returns whether the interface has a program that only a container's veth has, of whichever
 * set. */
bool attach_is_container_veth(uint32_t ifindex);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * shaper.h - the device through which the bandwidth plugin sends what a container sends.
 *
 * A filter of that plugin at the veth's ingress redirects every packet to a device of its own
 * (ifb), which limits them and hands them back behind the veth's filters. That filter has the
 * first priority, so a filter of ours comes after it and never sees a packet; only TCX (Linux 6.6)
 * runs before all filters. So from_container is attached to the egress of that device as well:
 * before the limit, and before the bridge or routing.
 */
#ifndef DATAPATH_ATTACH_SHAPER_H
#define DATAPATH_ATTACH_SHAPER_H

#include "datapath/load/datapath.h"

/* Returns its ifindex where from_container is a filter at this veth and another one ahead of it
 * redirects packets; 0: there is none. */
uint32_t shaper_of(uint32_t ifindex, const struct interface *interface);

/* Returns the id of the program of ours at it, or 0. */
uint32_t shaper_program(uint32_t shaper);

/* Attaches the pinned from_container there. *created: a clsact qdisc was made for it.
 * CNI_ERROR_KERNEL_REFUSED. */
int shaper_attach(const struct datapath *datapath, uint32_t shaper, bool *created,
		  struct cni_error *err);

#endif

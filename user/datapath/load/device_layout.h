/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_layout.h - finds in the kernel's BTF what the programs must know of its types to see what
 * hangs at a network device.
 */
#ifndef DATAPATH_LOAD_DEVICE_LAYOUT_H
#define DATAPATH_LOAD_DEVICE_LAYOUT_H

#include <linux/types.h>

#include "device_members.h"

/* Takes some milliseconds. `known` stays 0 where the kernel has no BTF, or a member is missing in
 * it. Whether programs may read the kernel's memory (not under lockdown) loading them shows. */
void device_layout_find(struct device_layout *layout);

#endif

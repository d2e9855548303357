/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_layout.h - finds in the kernel's BTF the members by which the programs see the qdiscs and
 * filters of a network device, and conntrack's answers; and the kernel's functions that they call.
 */
#pragma once

#include <linux/types.h>
#include <stdbool.h>

#include "device_members.h"

/* Takes some milliseconds. `known` stays 0 where the kernel has no BTF, or a member is missing in
 * it. Only loading the programs shows whether they may read the kernel's memory (not under
 * lockdown). Objects of libbpf that this process opens from now on call the functions that were
 * found. */
void device_layout_find(struct device_layout *layout);

/* Returns whether programs that are loaded now could ask conntrack: its module may come later than
 * they have. */
bool device_layout_has_conntrack(void);

/* Returns whether tc's action `ct` or Open vSwitch, which have conntrack translate without a hook
 * of netfilter, are loaded as modules. */
bool device_layout_has_nat_without_hook(void);

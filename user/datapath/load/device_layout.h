/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * device_layout.h - finds in the kernel's BTF the members by which the programs see the qdiscs and
 * filters of a network device.
 */
#pragma once

#include <linux/types.h>

#include "device_members.h"

struct bpf_program;

/* Takes some milliseconds. `known` stays 0 where the kernel has no BTF, or a member is missing in
 * it. Only loading the programs shows whether they may read the kernel's memory (not under
 * lockdown). */
void device_layout_find(struct device_layout *layout);

/* Before loading: lets the program read the kernel's skb in place, where `cast` is set. -1 with
 * errno set. */
int device_layout_apply(struct bpf_program *program, const struct device_layout *layout);

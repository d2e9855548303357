/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cgroup_root.h - the cgroup that all processes of the host are in.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "lib/error.h"

struct cgroup_root {
	int fd;
	bool is_whole; /* else it is a part of the tree, and there are processes outside of it */
	char path[PATH_MAX];
};

/* Opens the highest cgroup of version 2 that is mounted, wherever that is: beside version 1 it
 * usually is /sys/fs/cgroup/unified. Close the fd. CNI_ERROR_KERNEL_REFUSED: none is mounted. */
int cgroup_root_open(struct cgroup_root *root, struct cni_error *err);

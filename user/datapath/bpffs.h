/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpffs.h - the file system where maps and programs are pinned.
 */
#ifndef DATAPATH_BPFFS_H
#define DATAPATH_BPFFS_H

#include <stdbool.h>

#include "cni/error.h"

#define BPFFS "/sys/fs/bpf"

bool bpffs_is_mounted(void);

/* Mounts it where it is not. Code 102. */
int bpffs_mount(struct cni_error *err);

#endif

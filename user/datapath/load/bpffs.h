/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * bpffs.h - the file system where maps and programs are pinned.
 */
#ifndef DATAPATH_LOAD_BPFFS_H
#define DATAPATH_LOAD_BPFFS_H

#include <stdbool.h>

#include "lib/error.h"

#define BPFFS "/sys/fs/bpf"

bool bpffs_is_mounted(void);

/* Mounts it where it is not. Codes 102, 11. */
int bpffs_mount(struct cni_error *err);

/* Whether only root can take away what root has in it: it is root's, and either others cannot write
 * to it or it is sticky, as mount(8) makes it. Code 102. */
int bpffs_verify(struct cni_error *err);

enum bpffs_owner {
	BPFFS_NOBODYS, /* it does not exist */
	BPFFS_ROOTS,   /* a directory that only root can write to */
	BPFFS_ANOTHERS,
};

/* Whose a directory in it is. -1 and code 102 for one that root has let others write to. */
int bpffs_owner(const char *path, struct cni_error *err);

#endif

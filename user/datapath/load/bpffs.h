/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpffs.h - the file system where maps and programs are pinned. */
#pragma once

#include <stdbool.h>

#include "lib/error.h"

#define BPFFS "/sys/fs/bpf"

bool bpffs_is_mounted(void);

/* Returns whether this is a container into which a directory of the host was mounted in its place.
 * If we mounted a file system over that, it would be this container's alone, and nobody else would
 * see its pins. */
bool bpffs_is_of_host(void);

/* Mounts it where it is not. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int bpffs_mount(struct cni_error *err);

/* Checks whether only root can remove what root has in it: it belongs to root, and either other
 * users cannot write to it or it is sticky, as mount(8) makes it; one that does not exist is as
 * good. CNI_ERROR_KERNEL_REFUSED. */
int bpffs_verify(struct cni_error *err);

enum bpffs_owner {
	OWNER_NONE, /* it does not exist */
	OWNER_ROOT, /* a directory that only root can write to */
	OWNER_OTHER,
};

/* Returns to which of these a directory in it belongs; -1 and CNI_ERROR_KERNEL_REFUSED where it
 * belongs to root, but other users can write to it. */
int bpffs_owner(const char *path, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * own_sysfs.h - the sysfs of the network namespace we run in, whatever is mounted on /sys.
 */
#ifndef DATAPATH_LOAD_OWN_SYSFS_H
#define DATAPATH_LOAD_OWN_SYSFS_H

#include <stdint.h>

#include "lib/error.h"

/* Opens a file of it for writing, which only root may do where its mode says so. NULL-terminated
 * names; the first one that exists in this kernel. -1 and CNI_ERROR_KERNEL_REFUSED; errno is EROFS
 * where the file system itself is read-only, whatever mount it is seen by. */
int own_sysfs_open(const char *const *names, struct cni_error *err);

/* Names a directory that only root can write to, for a note of how our sysfs is recognised. Where
 * there is one, and /sys is ours, that is used, and nothing is mounted: when a mount ends with its
 * process the kernel waits for RCU, which takes 30 us of DEL's 650, and 8 ms on a busy machine. */
void own_sysfs_remember_in(const char *directory, uint64_t netns_cookie);

/* Writes the note. Without it, sysfs is mounted each time. */
void own_sysfs_note(void);

#endif

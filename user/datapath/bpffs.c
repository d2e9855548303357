/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpffs.c - the file system where maps and programs are pinned. */
#include "datapath/bpffs.h"

#include <errno.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/vfs.h>

#include "datapath/lock.h"
#include "datapath/refusal.h"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

bool bpffs_is_mounted(void)
{
	struct statfs status;

	return !statfs(BPFFS, &status) && (unsigned long)status.f_type == BPF_FS_MAGIC;
}

int bpffs_mount(struct cni_error *err)
{
	cleanup_lock int lock = -1;

	if (bpffs_is_mounted())
		return 0;
	/* Two that mount at once would hide one's pins under the other's. */
	lock = lock_take_directory("/sys/fs", "mounting " BPFFS, err);
	if (lock < 0)
		return -1;
	if (bpffs_is_mounted())
		return 0;
	if (mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return refusal_set(err, errno, "cannot mount a BPF file system on " BPFFS);
	return 0;
}

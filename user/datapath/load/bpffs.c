/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpffs.c - the file system where maps and programs are pinned. */
#include "datapath/load/bpffs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "datapath/load/lock.h"
#include "datapath/load/bpf_error.h"

#ifndef BPF_FS_MAGIC
#define BPF_FS_MAGIC 0xcafe4a11
#endif

bool bpffs_is_mounted(void)
{
	struct statfs status;

	return !statfs(BPFFS, &status) && (unsigned long)status.f_type == BPF_FS_MAGIC;
}

bool bpffs_is_of_host(void)
{
	struct statx status;

	return !bpffs_is_mounted() && !statx(AT_FDCWD, BPFFS, 0, STATX_TYPE, &status) &&
	       (status.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

int bpffs_mount(struct cni_error *err)
{
	cleanup_lock int lock = -1;

	if (bpffs_is_mounted())
		return 0;
	/* Two hosts in one mount namespace that mount at once would hide one's pins under the
	 * other's. Where /sys is read-only nothing orders them. */
	lock = open("/sys/bus/platform/uevent", O_WRONLY | O_CLOEXEC);
	if (lock >= 0 && lock_wait(lock, "mounting the BPF file system", err))
		return -1;
	if (bpffs_is_mounted())
		return 0;
	if (bpffs_is_of_host())
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     BPFFS " is a directory of the host, in which this container"
					   " sees no BPF file system: on the host"
					   " `mount -t bpf -o mode=0700 bpf " BPFFS
					   "`, then start the container anew");
	if (!mount("bpf", BPFFS, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700"))
		return 0;
	if (errno == ENODEV)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "this kernel has no BPF file system (CONFIG_BPF_SYSCALL)");
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "cannot mount a BPF file system on " BPFFS
			     ": %s; mount one on the host: `mount -t bpf -o mode=0700 bpf " BPFFS
			     "`",
			     strerror(errno));
}

static bool others_write(const struct stat *status)
{
	return (status->st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

static int refuse_mode(const char *path, const struct stat *status, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "users other than root can replace what is pinned in %s, which belongs"
			     " to user %u and has mode %04o: `chown root %s; chmod 0700 %s`",
			     path, status->st_uid, status->st_mode & 07777, path, path);
}

int bpffs_verify(struct cni_error *err)
{
	struct stat status;

	if (stat(BPFFS, &status))
		return errno == ENOENT ? 0 : bpf_error_set(err, errno, "cannot look at " BPFFS);
	if (status.st_uid || (others_write(&status) && !(status.st_mode & S_ISVTX)))
		return refuse_mode(BPFFS, &status, err);
	return 0;
}

int bpffs_owner(const char *path, struct cni_error *err)
{
	struct stat status;

	/* The path to it is root's alone, so no other user can make lstat() fail. */
	if (lstat(path, &status))
		return OWNER_NONE;
	if (status.st_uid || !S_ISDIR(status.st_mode))
		return OWNER_OTHER;
	return others_write(&status) ? refuse_mode(path, &status, err) : OWNER_ROOT;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_sysfs.c - the sysfs of the network namespace we run in. */
#include "datapath/own_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "datapath/refusal.h"

/* glibc has these calls from 2.36 on. */
static int mount_detached(void)
{
	cleanup_close int context = (int)syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC);

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* Stays mounted until the process ends: the kernel waits for RCU when it goes, so once is enough,
 * and not while anybody waits for us. */
static int own_sysfs(void)
{
	static int mount = -1;

	if (mount < 0)
		mount = mount_detached();
	return mount;
}

#define NOTE_SIZE 128

static char note[NOTE_SIZE];

void own_sysfs_remember_in(const char *directory)
{
	if (snprintf(note, sizeof(note), "%s/sysfs", directory) >= (int)sizeof(note))
		note[0] = '\0';
}

/* The inode of lo's directory: each network namespace has its own lo, from its beginning to its
 * end, and no inode number of sysfs comes again. 0: not to be told. */
static uint64_t inode_of_lo(int sysfs)
{
	struct stat root, lo;

	if (fstat(sysfs, &root) || fstatat(sysfs, "class/net/lo", &lo, 0) ||
	    root.st_dev != lo.st_dev)
		return 0;
	return lo.st_ino;
}

void own_sysfs_note(void)
{
	uint64_t inode = note[0] ? inode_of_lo(own_sysfs()) : 0;
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)inode);
	if (!inode)
		return;
	unlink(note);
	/* What a link leads to can be read by one system call. */
	if (symlink(text, note))
		note[0] = '\0';
}

static uint64_t noted_inode(void)
{
	char text[32];
	ssize_t length = note[0] ? readlink(note, text, sizeof(text) - 1) : -1;

	if (length < 0)
		return 0;
	text[length] = '\0';
	return strtoull(text, NULL, 10);
}

/* The first that exists. -1 and errno. */
static int open_first(int sysfs, const char *const *names)
{
	int fd = -1;

	for (errno = ENOENT; *names && fd < 0 && errno == ENOENT; names++)
		fd = openat(sysfs, *names, O_WRONLY | O_CLOEXEC);
	return fd;
}

/* On what is mounted on /sys, if that is ours. -1: it is not, or it is mounted read-only. */
static int open_mounted(const char *const *names)
{
	uint64_t inode = noted_inode();
	struct statfs file_system;
	cleanup_close int sysfs = -1;

	if (!inode)
		return -1;
	sysfs = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sysfs < 0 || fstatfs(sysfs, &file_system) || file_system.f_type != SYSFS_MAGIC ||
	    inode_of_lo(sysfs) != inode)
		return -1;
	return open_first(sysfs, names);
}

int own_sysfs_open(const char *const *names, struct cni_error *err)
{
	int fd = open_mounted(names), mount;

	if (fd >= 0)
		return fd;
	mount = own_sysfs();
	if (mount < 0)
		return refusal_set(err, errno,
				   "cannot mount the sysfs of this network namespace, which has the"
				   " lock of its port mappings");
	fd = open_first(mount, names);
	if (fd < 0) {
		int saved = errno;

		refusal_set(err, saved,
			    "cannot open %s in sysfs, which is the lock of port mappings",
			    names[0]);
		errno = saved;
	}
	return fd;
}

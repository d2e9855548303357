/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_sysfs.c - the sysfs of the network namespace we run in. */
#include "datapath/own_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/syscall.h>
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

int own_sysfs_open(const char *const *names, struct cni_error *err)
{
	int mount = own_sysfs(), fd = -1;

	if (mount < 0)
		return refusal_set(err, errno,
				   "cannot mount the sysfs of this network namespace, which has the"
				   " lock of its port mappings");
	for (errno = ENOENT; *names && fd < 0 && errno == ENOENT; names++)
		fd = openat(mount, *names, O_WRONLY | O_CLOEXEC);
	if (fd < 0) {
		int saved = errno;

		refusal_set(err, saved,
			    "cannot open %s in sysfs, which is the lock of port mappings",
			    names[-1]);
		errno = saved;
	}
	return fd;
}

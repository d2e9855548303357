/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cgroup_root.c - the cgroup whose processes are all there are. */
#include "datapath/cgroup_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "cni/cleanup.h"

#define MOUNTS "/proc/self/mounts"
/* The inode number of a cgroup is its id, and the root's is the first (kernfs). */
#define REAL_ROOT 1
#define MOUNT_LINE_SIZE (2 * PATH_MAX)

/* Another file system may be mounted over it. 0: not to be had. */
static ino_t open_cgroup(const char *path, int *fd)
{
	struct statfs file_system;
	struct stat status;

	*fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*fd >= 0 && !fstatfs(*fd, &file_system) && file_system.f_type == CGROUP2_SUPER_MAGIC &&
	    !fstat(*fd, &status))
		return status.st_ino;
	cleanup_close_pointer(fd);
	*fd = -1;
	return 0;
}

/* Mounts of parts of the tree have a higher number than the mount of all of it. */
static void keep_higher(struct cgroup_root *root, ino_t *best, const char *path)
{
	int fd;
	ino_t id = open_cgroup(path, &fd);

	if (!id)
		return;
	if (*best && id >= *best) {
		close(fd);
		return;
	}
	cleanup_close_pointer(&root->fd);
	root->fd = fd;
	*best = id;
	snprintf(root->path, sizeof(root->path), "%s", path);
}

int cgroup_root_open(struct cgroup_root *root, struct cni_error *err)
{
	FILE *mounts = setmntent(MOUNTS, "re");
	char line[MOUNT_LINE_SIZE];
	struct mntent mount;
	ino_t best = 0;

	*root = (struct cgroup_root){.fd = -1};
	if (!mounts)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read " MOUNTS ": %s",
				     strerror(errno));
	while (best != REAL_ROOT && getmntent_r(mounts, &mount, line, sizeof(line)))
		if (!strcmp(mount.mnt_type, "cgroup2"))
			keep_higher(root, &best, mount.mnt_dir);
	endmntent(mounts);
	root->is_real = best == REAL_ROOT;
	if (best)
		return 0;
	return cni_error_set(
		err, CNI_ERROR_KERNEL_REFUSED,
		"no cgroup2 is mounted; `mount -t cgroup2 cgroup2 DIRECTORY` mounts it");
}

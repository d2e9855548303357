/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* cgroup_root.c - the cgroup that all processes of the host are in. */
#include "datapath/attach/cgroup_root.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include "lib/cleanup.h"

#define MOUNTS "/proc/self/mountinfo"
/* The inode number of a cgroup is its id, and the root's is the first (kernfs). */
#define REAL_ROOT 1
#define MOUNT_LINE_SIZE (3 * PATH_MAX)

/* A space is \040 there, and so on. */
static void unescape(char *text)
{
	unsigned int character;
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && sscanf(text, "\\%3o", &character) == 1) {
			*to++ = (char)character;
			text += 3;
		} else {
			*to++ = *text;
		}
	}
	*to = '\0';
}

/* The root of a cgroup namespace has all processes, unless process 1 is outside of it: then we are
 * in a container that shares the host's network namespace. */
static bool is_outside_namespace(void)
{
	cleanup_stream FILE *file = fopen("/proc/1/cgroup", "re");
	char line[MOUNT_LINE_SIZE];
	bool outside = false;

	while (file && !outside && fgets(line, sizeof(line), file))
		outside = !strncmp(line, "0::/..", strlen("0::/.."));
	return outside;
}

int cgroup_root_open(struct cgroup_root *root, struct cni_error *err)
{
	char line[MOUNT_LINE_SIZE], tree[PATH_MAX], path[PATH_MAX];
	cleanup_stream FILE *mounts = fopen(MOUNTS, "re");
	struct statfs file_system;
	struct stat status;
	ino_t best = 0;

	*root = (struct cgroup_root){.fd = -1};
	if (!mounts)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read " MOUNTS ": %s",
				     strerror(errno));
	while (best != REAL_ROOT && fgets(line, sizeof(line), mounts)) {
		cleanup_close int fd = -1;

		/* proc_pid_mountinfo(5): ID, parent, device, root, path, options, ..., "-", type */
		if (!strstr(line, " - cgroup2 ") ||
		    sscanf(line, "%*s %*s %*s %4095s %4095s", tree, path) != 2)
			continue;
		unescape(path);
		fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		/* Another file system may be mounted over it. Mounts of parts of the tree have a
		 * higher number than the mount of all of it. */
		if (fd < 0 || fstatfs(fd, &file_system) ||
		    file_system.f_type != CGROUP2_SUPER_MAGIC || fstat(fd, &status) ||
		    (best && status.st_ino >= best))
			continue;
		cleanup_close_pointer(&root->fd);
		root->fd = fd;
		fd = -1;
		best = status.st_ino;
		root->is_whole = best == REAL_ROOT || !strncmp(tree, "/..", strlen("/..")) ||
				 (!strcmp(tree, "/") && !is_outside_namespace());
		memcpy(root->path, path, sizeof(root->path));
	}
	if (best)
		return 0;
	return cni_error_set(
		err, CNI_ERROR_KERNEL_REFUSED,
		"no cgroup2 is mounted; `mount -t cgroup2 cgroup2 DIRECTORY` mounts it");
}

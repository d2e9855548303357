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
#include <unistd.h>

#include "lib/cleanup.h"

#define MOUNTS "/proc/self/mountinfo"
/* The inode number of a cgroup is its id, and the root's is the first (kernfs). */
#define REAL_ROOT 1
#define MOUNT_LINE_SIZE (3 * PATH_MAX)

struct mount {
	char *root; /* of the file system's tree; "/": as the cgroup namespace has it */
	char *path;
};

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

/* proc_pid_mountinfo(5): ID, parent, device, root, path, options, ..., "-", type, ... */
static bool parse_mount(char *line, struct mount *mount)
{
	char *rest = line;

	if (!strstr(line, " - cgroup2 "))
		return false;
	for (int field = 0; field < 3; field++)
		strsep(&rest, " ");
	mount->root = strsep(&rest, " ");
	mount->path = strsep(&rest, " ");
	if (!mount->path)
		return false;
	unescape(mount->path);
	return true;
}

/* The root of a cgroup namespace has all processes, unless process 1 is outside of it: then we are
 * in a container that shares the host's network namespace. */
static bool is_outside_namespace(void)
{
	FILE *file = fopen("/proc/1/cgroup", "re");
	char line[MOUNT_LINE_SIZE];
	bool outside = false;

	while (file && !outside && fgets(line, sizeof(line), file))
		outside = !strncmp(line, "0::/..", strlen("0::/.."));
	if (file)
		fclose(file);
	return outside;
}

static bool is_whole(const char *root)
{
	return !strncmp(root, "/..", strlen("/..")) ||
	       (!strcmp(root, "/") && !is_outside_namespace());
}

/* Another file system may be mounted over it. 0: it does not open. */
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
static void keep_higher(struct cgroup_root *root, ino_t *best, const struct mount *mount)
{
	int fd;
	ino_t id = open_cgroup(mount->path, &fd);

	if (!id)
		return;
	if (*best && id >= *best) {
		close(fd);
		return;
	}
	cleanup_close_pointer(&root->fd);
	root->fd = fd;
	*best = id;
	root->is_whole = id == REAL_ROOT || is_whole(mount->root);
	snprintf(root->path, sizeof(root->path), "%s", mount->path);
}

int cgroup_root_open(struct cgroup_root *root, struct cni_error *err)
{
	FILE *mounts = fopen(MOUNTS, "re");
	char line[MOUNT_LINE_SIZE];
	struct mount mount;
	ino_t best = 0;

	*root = (struct cgroup_root){.fd = -1};
	if (!mounts)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read " MOUNTS ": %s",
				     strerror(errno));
	while (best != REAL_ROOT && fgets(line, sizeof(line), mounts))
		if (parse_mount(line, &mount))
			keep_higher(root, &best, &mount);
	fclose(mounts);
	if (best)
		return 0;
	return cni_error_set(
		err, CNI_ERROR_KERNEL_REFUSED,
		"no cgroup2 is mounted; `mount -t cgroup2 cgroup2 DIRECTORY` mounts it");
}

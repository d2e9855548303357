/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* own_sysfs.c - the sysfs of the network namespace we run in. */
#include "datapath/load/own_sysfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <linux/mount.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/load/bpf_error.h"

/* glibc has these calls from 2.36 on. */
static int mount_detached(void)
{
	cleanup_close int context = (int)syscall(SYS_fsopen, "sysfs", FSOPEN_CLOEXEC);

	if (context < 0 || syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		return -1;
	return (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
			    MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
}

/* It stays mounted until the process ends: the kernel waits for RCU when a mount goes, so there is
 * one for each process, and it goes last. */
static int own_sysfs(void)
{
	static int mount = -1;

	if (mount < 0)
		mount = mount_detached();
	return mount;
}

#define NOTE_SIZE 128
#define NOTE_TEXT_SIZE 48

static char note[NOTE_SIZE];
static uint64_t noted_cookie;

void own_sysfs_remember_in(const char *directory, uint64_t netns_cookie)
{
	noted_cookie = netns_cookie;
	if (snprintf(note, sizeof(note), "%s/sysfs", directory) >= (int)sizeof(note))
		note[0] = '\0';
}

/* The note for this sysfs: the network namespace's cookie, and the inode of lo's directory.
 * Each network namespace has its own lo, from its beginning to its end, and no inode number of
 * sysfs comes again. */
static bool text_of(int sysfs, char text[NOTE_TEXT_SIZE])
{
	struct stat root, lo;

	if (fstat(sysfs, &root) || fstatat(sysfs, "class/net/lo", &lo, 0) ||
	    root.st_dev != lo.st_dev)
		return false;
	snprintf(text, NOTE_TEXT_SIZE, "%" PRIu64 "-%llu", noted_cookie,
		 (unsigned long long)lo.st_ino);
	return true;
}

void own_sysfs_note(void)
{
	char text[NOTE_TEXT_SIZE];

	if (!note[0] || !text_of(own_sysfs(), text))
		return;
	unlink(note);
	/* What a link leads to can be read by one system call. */
	if (symlink(text, note))
		note[0] = '\0';
}

static bool read_note(char text[NOTE_TEXT_SIZE])
{
	ssize_t length = note[0] ? readlink(note, text, NOTE_TEXT_SIZE - 1) : -1;

	if (length < 0)
		return false;
	text[length] = '\0';
	return true;
}

/* The first that exists. -1 and errno. */
static int open_first(int sysfs, const char *const *names)
{
	int fd = -1;

	for (errno = ENOENT; *names && fd < 0 && errno == ENOENT; names++)
		fd = openat(sysfs, *names, O_WRONLY | O_CLOEXEC);
	return fd;
}

/* Whether the file is in this sysfs, and nothing is mounted over it. */
static bool is_in(int sysfs, int fd)
{
	struct stat root, file;

	return !fstat(sysfs, &root) && !fstat(fd, &file) && root.st_dev == file.st_dev;
}

/* Opens it in what is mounted on /sys, if that is ours. -1: it is not, or it is mounted read-only,
 * or has no such file. */
static int open_mounted(const char *name)
{
	char noted[NOTE_TEXT_SIZE], found[NOTE_TEXT_SIZE];
	struct statfs file_system;
	cleanup_close int sysfs = -1;
	int fd;

	if (!read_note(noted))
		return -1;
	sysfs = open("/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (sysfs < 0 || fstatfs(sysfs, &file_system) || file_system.f_type != SYSFS_MAGIC ||
	    !text_of(sysfs, found) || strcmp(noted, found) != 0)
		return -1;
	fd = openat(sysfs, name, O_WRONLY | O_CLOEXEC);
	if (fd < 0 || is_in(sysfs, fd))
		return fd;
	close(fd);
	return -1;
}

int own_sysfs_open(const char *const *names, struct cni_error *err)
{
	int fd = open_mounted(names[0]), mount;

	if (fd >= 0)
		return fd;
	mount = own_sysfs();
	if (mount < 0)
		return bpf_error_set(
			err, errno,
			"cannot mount the sysfs of this network namespace, which has the"
			" lock of its port mappings");
	fd = open_first(mount, names);
	if (fd < 0) {
		int saved = errno;

		bpf_error_set(err, saved,
			      "cannot open %s in sysfs, which is the lock of port mappings",
			      names[0]);
		errno = saved;
	}
	return fd;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pins_lock.c - one loader at a time on each BPF file system. */
#include "datapath/load/pins_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "datapath/load/bpffs.h"
#include "datapath/load/lock.h"
#include "datapath/load/pins.h"
#include "datapath/load/bpf_error.h"
#include "lib/warning.h"

/* A round fails only if another process has succeeded. */
#define ROUNDS 1000

/* Where all users may make directories, another user's directory must not stop us, and we must not
 * use what is pinned in it. */
static int move_aside(const char *path, struct cni_error *err)
{
	uint32_t number = 0;
	char to[128];

	if (getrandom(&number, sizeof(number), 0) < 0)
		number = 0;
	snprintf(to, sizeof(to), BPFFS "/not-of-" PIN_DIRECTORY "-%08x", number);
	if (rename(path, to) && errno != ENOENT)
		return bpf_error_set(err, errno,
				     "cannot move %s, which is not root's, out of the way", path);
	warning("%s did not belong to root, and was moved to %s; `chmod 0700 " BPFFS
		"` keeps other users out",
		path, to);
	return 0;
}

static int refuse_directory(const char *path, struct cni_error *err)
{
	if (errno == EROFS)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     BPFFS " is mounted read-only: `mount -o remount,rw " BPFFS
					   "`");
	return bpf_error_set(err, errno, "cannot make the directory %s", path);
}

static int refuse_rounds(const char *path, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
			     "%s is removed or replaced again and again; try again later", path);
}

/* Where all users may make directories, only root can move or remove root's (the sticky bit), so a
 * directory that is root's stays so. */
static int own_directory(const char *path, struct cni_error *err)
{
	for (int round = 0; round < ROUNDS; round++) {
		int owner;

		if (mkdir(path, 0700) && errno != EEXIST)
			return refuse_directory(path, err);
		owner = bpffs_owner(path, err);
		if (owner < 0)
			return -1;
		if (owner == BPFFS_ROOTS)
			return 0;
		if (owner == BPFFS_ANOTHERS && move_aside(path, err))
			return -1;
	}
	return refuse_rounds(path, err);
}

static bool is_still_there(int fd)
{
	struct stat held, named;

	return !fstat(fd, &held) && !lstat(PINS_LOADING, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* 1: locked; 0: it was removed, or moved to its place, meanwhile; -1. */
static int try_lock(int *directory, struct cni_error *err)
{
	cleanup_close int fd = -1;

	if (own_directory(PINS_LOADING, err))
		return -1;
	fd = open(PINS_LOADING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : bpf_error_set(err, errno, "cannot open " PINS_LOADING);
	if (lock_wait(fd, "loading into " BPFFS, err))
		return -1;
	if (!is_still_there(fd))
		return 0;
	*directory = fd;
	fd = -1;
	return 1;
}

int pins_lock_take(struct pins_lock *lock, struct cni_error *err)
{
	int outcome = 0;

	for (int round = 0; !outcome && round < ROUNDS; round++)
		outcome = try_lock(&lock->directory, err);
	if (!outcome)
		return refuse_rounds(PINS_LOADING, err);
	/* rename() replaces an empty directory. */
	if (outcome < 0 || own_directory(PINS_ROOT, err))
		return -1;
	lock->older = lock_take_older(BPFFS);
	return 0;
}

void pins_lock_release(struct pins_lock *lock)
{
	if (lock->directory >= 0) {
		if (is_still_there(lock->directory))
			rmdir(PINS_LOADING);
		rmdir(PINS_ROOT); /* if nothing was loaded */
	}
	lock_release(&lock->directory);
	lock_release(&lock->older);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pins_lock.c - one loader at a time on each BPF file system. */
#include "datapath/pins_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "datapath/bpffs.h"
#include "datapath/lock.h"
#include "datapath/pins.h"
#include "datapath/refusal.h"
#include "datapath/warning.h"

/* Each round that fails is one in which somebody else got what he wanted. */
#define ROUNDS 1000

/* A directory of another user, where everybody may make some: he must not keep us from working, nor
 * have us use what he pinned. */
static int move_aside(const char *path, struct cni_error *err)
{
	uint32_t number = 0;
	char to[128];
	int owner = bpffs_owner(path, err);

	if (owner != BPFFS_ANOTHERS)
		return owner < 0 ? -1 : 0;
	if (getrandom(&number, sizeof(number), 0) < 0)
		number = 0;
	snprintf(to, sizeof(to), BPFFS "/not-of-" PIN_DIRECTORY "-%08x", number);
	if (rename(path, to) && errno != ENOENT)
		return refusal_set(err, errno,
				   "cannot move %s, which is not root's, out of the way", path);
	warning("%s did not belong to root, and was moved to %s; `chmod 0700 " BPFFS
		"` keeps other users out",
		path, to);
	return 0;
}

static bool is_still_there(int fd)
{
	struct stat held, named;

	return !fstat(fd, &held) && !lstat(PINS_LOADING, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

static int refuse_directory(struct cni_error *err)
{
	if (errno == EROFS)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     BPFFS " is mounted read-only: `mount -o remount,rw " BPFFS
					   "`");
	return refusal_set(err, errno, "cannot make the directory " PINS_LOADING);
}

/* 1: locked; 0: somebody has removed it, or moved it to its place, meanwhile; -1. */
static int try_lock(int *directory, struct cni_error *err)
{
	cleanup_close int fd = -1;

	if (mkdir(PINS_LOADING, 0700) && errno != EEXIST)
		return refuse_directory(err);
	if (move_aside(PINS_LOADING, err))
		return -1;
	fd = open(PINS_LOADING, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : refusal_set(err, errno, "cannot open " PINS_LOADING);
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
		return cni_error_set(err, CNI_ERROR_TRY_AGAIN,
				     PINS_LOADING " is removed again and again; try again later");
	if (outcome < 0 || move_aside(PINS_ROOT, err))
		return -1;
	lock->older = lock_take_older(BPFFS);
	return 0;
}

void pins_lock_release(struct pins_lock *lock)
{
	if (lock->directory >= 0 && is_still_there(lock->directory))
		rmdir(PINS_LOADING);
	lock_release(&lock->directory);
	lock_release(&lock->older);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lock.c - flock on files beside the cache.
 *
 * An attachment's file is removed with its lock, so that files do not pile up; who
 * gets the lock of a file that is no longer in the directory tries again. Network names
 * and container IDs have no comma, so commas keep the parts of a file's name apart.
 */
#define _GNU_SOURCE
#include "cnirun/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cni/cleanup.h"
#include "cnirun/directory.h"

#define FOLDER "locks"

static int fail(const char *path, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path, strerror(errno));
}

static bool is_still_there(int fd, const char *path)
{
	struct stat held;
	struct stat named;

	return !fstat(fd, &held) && !stat(path, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

static int wait_for_lock(int fd, int operation)
{
	int failed;

	do
		failed = flock(fd, operation);
	while (failed && errno == EINTR);
	return failed;
}

/* 1: locked; 0: the file was removed meanwhile; -1. */
static int try_lock(int *lock, const char *path, int operation, struct cni_error *err)
{
	cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	if (fd < 0 || wait_for_lock(fd, operation))
		return fail(path, err);
	if (!is_still_there(fd, path))
		return 0;
	*lock = fd;
	fd = -1;
	return 1;
}

static int lock_file(int *lock, const char *path, int operation, struct cni_error *err)
{
	int outcome;

	do
		outcome = try_lock(lock, path, operation, err);
	while (!outcome);
	return outcome > 0 ? 0 : -1;
}

static int lock_network_file(struct lock *lock, const char *directory, const char *network,
			     int operation, struct cni_error *err)
{
	cleanup_free char *folder = NULL;
	cleanup_free char *path = NULL;

	if (asprintf(&folder, "%s/" FOLDER, directory) < 0) {
		folder = NULL;
		return cni_error_no_memory(err);
	}
	if (asprintf(&path, "%s/%s", folder, network) < 0) {
		path = NULL;
		return cni_error_no_memory(err);
	}
	if (directory_create(folder, err))
		return -1;
	return lock_file(&lock->network, path, operation, err);
}

int lock_network(struct lock *lock, const char *directory, const char *network,
		 struct cni_error *err)
{
	return lock_network_file(lock, directory, network, LOCK_EX, err);
}

int lock_attachment(struct lock *lock, const char *directory, const char *network,
		    const char *container_id, const char *ifname, struct cni_error *err)
{
	if (lock_network_file(lock, directory, network, LOCK_SH, err))
		return -1;
	if (asprintf(&lock->attachment_path, "%s/" FOLDER "/%s,%s,%s", directory, network,
		     container_id, ifname) < 0) {
		lock->attachment_path = NULL;
		return cni_error_no_memory(err);
	}
	return lock_file(&lock->attachment, lock->attachment_path, LOCK_EX, err);
}

void lock_release(struct lock *lock)
{
	if (lock->attachment >= 0) {
		unlink(lock->attachment_path);
		close(lock->attachment);
	}
	if (lock->network >= 0)
		close(lock->network);
	free(lock->attachment_path);
	*lock = (struct lock)LOCK_NONE;
}

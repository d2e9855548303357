/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache_lock.c - flock() on files in CACHE/locks.
 *
 * An attachment's file is removed with its lock, so that files do not pile up. A process that gets
 * the lock of a file that is no longer in the directory tries again. Network names and container
 * IDs have no comma, so commas separate the parts of a file's name.
 */
#include "cnirun/cache_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "cnirun/directory.h"

#define FOLDER "/locks"

static bool is_still_there(int fd, const char *path)
{
	struct stat held;
	struct stat named;

	return !fstat(fd, &held) && !stat(path, &named) && held.st_ino == named.st_ino &&
	       held.st_dev == named.st_dev;
}

/* The descriptor that holds the lock, or -1. */
static int lock_file(const char *path, int operation, struct cni_error *err)
{
	for (;;) {
		cleanup_close int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
		int failed = fd < 0 ? -1 : flock(fd, operation);
		int held = fd;

		if (failed && errno != EINTR)
			return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path,
					     strerror(errno));
		if (!failed && is_still_there(fd, path)) {
			fd = -1;
			return held;
		}
	}
}

static int lock_network(struct cache_lock *lock, const char *network, const char *cache_directory,
			int operation, struct cni_error *err)
{
	cleanup_free char *folder = cni_format("%s" FOLDER, cache_directory);
	cleanup_free char *path = cni_format("%s" FOLDER "/%s", cache_directory, network);

	if (!folder || !path)
		return cni_error_no_memory(err);
	if (directory_create(folder, err))
		return -1;
	lock->network = lock_file(path, operation, err);
	return lock->network < 0 ? -1 : 0;
}

int cache_lock_network(struct cache_lock *lock, const char *network, const char *cache_directory,
		       struct cni_error *err)
{
	return lock_network(lock, network, cache_directory, LOCK_EX, err);
}

int cache_lock_attachment(struct cache_lock *lock, const char *network,
			  const struct runtime_conf *conf, struct cni_error *err)
{
	if (lock_network(lock, network, conf->cache_directory, LOCK_SH, err))
		return -1;
	lock->attachment_path = cni_format("%s" FOLDER "/%s,%s,%s", conf->cache_directory, network,
					   conf->container_id, conf->ifname);
	if (!lock->attachment_path)
		return cni_error_no_memory(err);
	lock->attachment = lock_file(lock->attachment_path, LOCK_EX, err);
	return lock->attachment < 0 ? -1 : 0;
}

void cache_lock_release(struct cache_lock *lock)
{
	if (lock->attachment >= 0) {
		unlink(lock->attachment_path);
		close(lock->attachment);
	}
	if (lock->network >= 0)
		close(lock->network);
	free(lock->attachment_path);
	*lock = (struct cache_lock)CACHE_LOCK_NONE;
}

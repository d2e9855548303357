/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file_lock.c - waits for the lock of a file, and finds out who has it. */
#include "cnirun/file_lock.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"

#define TRIES_PER_SECOND 100
#define TEXT_SIZE 128

/* The kernel tells of each descriptor which locks it has: "lock:	1: FLOCK  ADVISORY ...". In
 * /proc/locks a lock stands with the process that took it, and not at all when that has ended. */
static bool has_lock(const char *process, const char *descriptor)
{
	cleanup_free char *path = cni_format("/proc/%s/fdinfo/%s", process, descriptor);
	FILE *file = fopen(path, "re");
	char line[TEXT_SIZE];
	bool found = false;

	while (file && !found && fgets(line, sizeof(line), file))
		found = !strncmp(line, "lock:", strlen("lock:")) && strstr(line, "FLOCK");
	if (file)
		fclose(file);
	return found;
}

static bool is_holder(const char *process, const struct stat *locked)
{
	cleanup_free char *path = cni_format("/proc/%s/fd", process);
	DIR *descriptors = opendir(path);
	const struct dirent *entry;
	struct stat status;
	bool found = false;

	while (descriptors && !found && (entry = readdir(descriptors)))
		found = !fstatat(dirfd(descriptors), entry->d_name, &status, 0) &&
			status.st_ino == locked->st_ino && status.st_dev == locked->st_dev &&
			has_lock(process, entry->d_name);
	if (descriptors)
		closedir(descriptors);
	return found;
}

static char *describe(const char *process)
{
	cleanup_free char *path = cni_format("/proc/%s/comm", process);
	FILE *file = fopen(path, "re");
	char name[TEXT_SIZE] = "";

	if (file && fgets(name, sizeof(name), file))
		name[strcspn(name, "\n")] = '\0';
	if (file)
		fclose(file);
	cni_printable(name, "");
	return cni_format("process %s (%s)", process, name);
}

/* malloc'ed */
static char *find_holder(int fd)
{
	DIR *processes = opendir("/proc");
	const struct dirent *entry;
	char *holder = NULL;
	struct stat locked;

	while (processes && !fstat(fd, &locked) && !holder && (entry = readdir(processes)))
		if (atoi(entry->d_name) > 0 && is_holder(entry->d_name, &locked))
			holder = describe(entry->d_name);
	if (processes)
		closedir(processes);
	return holder ? holder : need(strdup("a process that cannot be seen from here"));
}

int file_lock_wait(int fd, int operation, unsigned int seconds, const char *path,
		   struct cni_error *err)
{
	cleanup_free char *holder = NULL;

	for (unsigned int i = 0; flock(fd, operation | (seconds ? LOCK_NB : 0)); i++) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return cni_error_set(err, CNI_ERROR_IO, "cannot lock %s: %s", path,
					     strerror(errno));
		if (seconds && i >= seconds * TRIES_PER_SECOND) {
			holder = find_holder(fd);
			return cni_error_set(
				err, CNI_ERROR_TRY_AGAIN,
				"%s has been locked by %s for over %u second%s: end that "
				"process if it hangs, and try again",
				path, holder, seconds, seconds == 1 ? "" : "s");
		}
		if (seconds)
			usleep(1000000 / TRIES_PER_SECOND);
	}
	return 0;
}

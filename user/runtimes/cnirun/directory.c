/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* directory.c - files of a directory in order, and whole files. */
#include "runtimes/cnirun/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/memory.h"
#include "lib/text.h"

bool has_suffix(const char *name, const char *const *suffixes)
{
	for (; suffixes && *suffixes; suffixes++)
		if (text_ends_with(name, *suffixes))
			return true;
	return !suffixes;
}

int directory_list(struct directory *found, const char *path, const char *const *suffixes,
		   struct cni_error *err)
{
	struct dirent **entries;
	struct stat status;
	int count = scandir(path, &entries, NULL, alphasort);

	if (count < 0 && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (count < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the directory %s: %s", path,
				     strerror(errno));
	found->paths = or_exit(calloc((size_t)count + 1, sizeof(*found->paths)));
	for (int i = 0; i < count; i++) {
		cleanup_free char *file = cni_format("%s/%s", path, entries[i]->d_name);

		if (has_suffix(file, suffixes) && !lstat(file, &status) && !S_ISDIR(status.st_mode))
			found->paths[found->count++] = TAKE(file);
		free(entries[i]);
	}
	free(entries);
	return 0;
}

void directory_release(struct directory *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->paths[i]);
	free(found->paths);
	*found = (struct directory){0};
}

static char *read_opened(int fd, const char *path, size_t *length, struct cni_error *err)
{
	if (fd >= 0)
		return cni_read_all(fd, CNI_INPUT_LIMIT, path, length, err);
	return cni_error_null(err, CNI_ERROR_IO, "cannot open %s: %s", path, strerror(errno));
}

char *directory_read_any(const char *path, size_t *length, struct cni_error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	return read_opened(fd, path, length, err);
}

char *directory_read_file(const char *path, size_t *length, struct cni_error *err)
{
	/* O_NONBLOCK because opening a pipe waits for its writer; it has no effect on a regular
	 * file. */
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;

	if (fd >= 0 && !fstat(fd, &status) && !S_ISREG(status.st_mode))
		return cni_error_null(err, CNI_ERROR_IO, "%s is no regular file", path);
	return read_opened(fd, path, length, err);
}

int directory_create(const char *path, struct cni_error *err)
{
	cleanup_free char *prefix = or_exit(strdup(path));

	for (char *slash = prefix; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		if (mkdir(prefix, 0700) && errno != EEXIST)
			return cni_error_set(err, CNI_ERROR_IO, "cannot make the directory %s: %s",
					     prefix, strerror(errno));
		if (slash)
			*slash = '/';
	}
	return 0;
}

/* A name that was renamed may be lost with the power, too. */
static int synchronise_directory_of(const char *path)
{
	cleanup_free char *directory = cni_format("%.*s", (int)(strrchr(path, '/') - path), path);
	cleanup_close int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) ? -1 : 0;
}

static int remove_file(const char *path)
{
	return unlink(path) && errno != ENOENT ? -1 : 0;
}

int directory_replace_file(const char *path, const char *temporary, const char *text, mode_t mode,
			   bool durable)
{
	cleanup_close int fd = -1;
	int failure;

	if (text)
		fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
	if (text ? fd >= 0 && !cni_write_all(fd, text, strlen(text)) && !(durable && fsync(fd)) &&
			    !rename(temporary, path)
		 : !remove_file(temporary) && !remove_file(path))
		return durable ? synchronise_directory_of(path) : 0;
	failure = errno;
	unlink(temporary);
	errno = failure;
	return -1;
}

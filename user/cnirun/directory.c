/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * directory.c - files of a directory in order, and whole files.
 */
#define _GNU_SOURCE
#include "cnirun/directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cni/cleanup.h"
#include "cni/input.h"

static bool has_suffix(const char *name, const char *const *suffixes)
{
	size_t length = strlen(name);

	if (!suffixes)
		return true;
	for (; *suffixes; suffixes++) {
		size_t wanted = strlen(*suffixes);

		if (length >= wanted && !strcmp(name + length - wanted, *suffixes))
			return true;
	}
	return false;
}

static int append_path(struct directory *found, const char *directory, const char *name,
		       struct cni_error *err)
{
	char **paths = realloc(found->paths, (found->count + 1) * sizeof(*paths));

	if (!paths)
		return cni_error_no_memory(err);
	found->paths = paths;
	if (asprintf(&paths[found->count], "%s/%s", directory, name) < 0)
		return cni_error_no_memory(err);
	found->count++;
	return 0;
}

static int append_entries(struct directory *found, DIR *stream, const char *path,
			  const char *const *suffixes, struct cni_error *err)
{
	const struct dirent *entry;
	struct stat status;

	while ((entry = readdir(stream))) {
		if (!has_suffix(entry->d_name, suffixes) ||
		    fstatat(dirfd(stream), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) ||
		    S_ISDIR(status.st_mode))
			continue;
		if (append_path(found, path, entry->d_name, err))
			return -1;
	}
	return 0;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int directory_list(struct directory *found, const char *directory, const char *folder,
		   const char *const *suffixes, struct cni_error *err)
{
	cleanup_free char *path = NULL;
	DIR *stream;
	int failed;

	if (asprintf(&path, "%s%s%s", directory, folder ? "/" : "", folder ? folder : "") < 0) {
		path = NULL;
		return cni_error_no_memory(err);
	}
	stream = opendir(path);
	if (!stream && (errno == ENOENT || errno == ENOTDIR))
		return 0;
	if (!stream)
		return cni_error_set(err, CNI_ERROR_IO, "cannot list the directory %s: %s", path,
				     strerror(errno));
	failed = append_entries(found, stream, path, suffixes, err);
	closedir(stream);
	if (found->count)
		qsort(found->paths, found->count, sizeof(*found->paths), compare_paths);
	return failed;
}

void directory_release(struct directory *found)
{
	for (size_t i = 0; i < found->count; i++)
		free(found->paths[i]);
	free(found->paths);
	*found = (struct directory){0};
}

int directory_read_any(const char *path, char **text, size_t *length, struct cni_error *err)
{
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);

	if (fd < 0)
		return cni_error_set(err, CNI_ERROR_IO, "cannot open %s: %s", path,
				     strerror(errno));
	return cni_input_read(fd, CNI_INPUT_LIMIT, path, text, length, err);
}

int directory_read_file(const char *path, char **text, size_t *length, struct cni_error *err)
{
	/* Not blocking: opening a pipe waits for its writer. A regular file does not care. */
	cleanup_close int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat status;

	if (fd < 0 || fstat(fd, &status))
		return cni_error_set(err, CNI_ERROR_IO, "cannot open %s: %s", path,
				     strerror(errno));
	if (!S_ISREG(status.st_mode))
		return cni_error_set(err, CNI_ERROR_IO, "%s is no regular file", path);
	return cni_input_read(fd, CNI_INPUT_LIMIT, path, text, length, err);
}

static int create_one(const char *path, struct cni_error *err)
{
	if (!mkdir(path, 0700) || errno == EEXIST)
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot make the directory %s: %s", path,
			     strerror(errno));
}

int directory_create(const char *path, struct cni_error *err)
{
	cleanup_free char *prefix = strdup(path);

	if (!prefix)
		return cni_error_no_memory(err);
	for (char *slash = strchr(prefix + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (create_one(prefix, err))
			return -1;
		*slash = '/';
	}
	return create_one(path, err);
}

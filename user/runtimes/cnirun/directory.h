/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* directory.h - files of a directory in order, and whole files. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "lib/error.h"

/* Begins as {0}. */
struct directory {
	char **paths;
	size_t count;
};

/* Lists the files whose names end with one of the suffixes (a list that ends with NULL; NULL: all),
 * sorted by name, bytewise. A directory that does not exist is empty. CNI_ERROR_IO. */
int directory_list(struct directory *found, const char *path, const char *const *suffixes,
		   struct cni_error *err);
void directory_release(struct directory *found);

#define cleanup_directory __attribute__((cleanup(directory_release)))

bool has_suffix(const char *name, const char *const *suffixes);

/* Reads a file that was found in a directory, which must be a regular file or a symbolic link to
 * one: another kind could block the reader. The text is malloc'ed and has a NUL after its *length
 * bytes. NULL and CNI_ERROR_IO. */
char *directory_read_file(const char *path, size_t *length, struct cni_error *err);
/* Does the same for a path that a person gave, which may be a pipe of the shell (/dev/fd/63). */
char *directory_read_any(const char *path, size_t *length, struct cni_error *err);

/* Creates it like mkdir -p, with mode 0700 for new directories. CNI_ERROR_IO. */
int directory_create(const char *path, struct cni_error *err);

/* Replaces a file, so that readers see the old one or the new one, never a part; NULL in place of
 * the text: removes it, if it is there. `temporary` is another name in the same file system, which
 * nobody else writes meanwhile; a run that was killed may have left it. `durable`: also if the
 * power fails. 0, or -1 and errno. */
int directory_replace_file(const char *path, const char *temporary, const char *text, mode_t mode,
			   bool durable);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * directory.h - files of a directory in order, and whole files.
 */
#ifndef CNIRUN_DIRECTORY_H
#define CNIRUN_DIRECTORY_H

#include <stddef.h>

#include "cni/error.h"

/* Begins as {0}. Sorted by name, bytewise. */
struct directory {
	char **paths;
	size_t count;
};

/* What is no directory in DIRECTORY[/FOLDER] and ends in one of the suffixes (NULL: in
 * anything). `folder` may be NULL. A directory that does not exist is an empty one. Code 5. */
int directory_list(struct directory *found, const char *directory, const char *folder,
		   const char *const *suffixes, struct cni_error *err);
void directory_release(struct directory *found);

#define cleanup_directory __attribute__((cleanup(directory_release)))

/* A regular file, or a link to one: others could hold the reader up, and nobody named
 * what was found in a directory. *text is malloc'ed, with a NUL after its *length bytes.
 * Code 5. */
int directory_read_file(const char *path, char **text, size_t *length, struct cni_error *err);
/* The same, of whatever has a path: a pipe of the shell (/dev/fd/63), too. */
int directory_read_any(const char *path, char **text, size_t *length, struct cni_error *err);

/* mkdir -p, with mode 0700 for what is new. Code 5. */
int directory_create(const char *path, struct cni_error *err);

#endif

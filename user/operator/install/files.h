/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * files.h - files of a directory that other programs read at any instant: they are replaced as a
 * whole, and are on the disk before they have their name.
 *
 * A new file first has another name in the same directory, which no runtime reads. It must be the
 * same directory: containerd ignores that a file appears in its directory, and looks again where
 * one is renamed within it.
 *
 * An agent that writes a file in the very instant of the rename loses what it wrote, and has to
 * write it again. Earlier writing is noticed (file_replace()).
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

#include "lib/error.h"

/* Begins as DIRECTORY_CLOSED. */
struct directory {
	int fd;
	char path[PATH_MAX]; /* for messages */
	bool of_network;     /* the folder of one network, each file of which is one plugin */
};

#define DIRECTORY_CLOSED \
	{ \
		.fd = -1 \
	}

/* Opens it. CNI_ERROR_IO. */
int directory_open(struct directory *directory, const char *path, struct cni_error *err);
/* Prints a line about a file of the directory. */
void directory_say(const struct directory *directory, const char *name, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void directory_close(struct directory *directory);

/* Writes "DIRECTORY/NAME" */
void directory_path(const struct directory *directory, const char *name, char path[PATH_MAX]);

/* Lets one run at a time change files that belong together. *lock begins as -1; it ends with its
 * process. CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN as of lock_wait(). */
int directory_lock(const struct directory *directory, int *lock, struct cni_error *err);
void directory_unlock(const struct directory *directory, int *lock);

/* Removes the new file that a killed run left. Call it with the lock. */
void directory_sweep(const struct directory *directory);

/* A file as it was read. Begins as FILE_NONE. */
struct file {
	int fd; /* -1: it does not exist */
	struct stat status;
	char *text; /* with a NUL behind it */
	size_t length;
};

#define FILE_NONE \
	{ \
		.fd = -1 \
	}

/* Reads a regular file, and no symbolic link. One that does not exist is no error: fd is -1 then.
 * CNI_ERROR_IO. */
int file_read(const struct directory *directory, const char *name, struct file *file,
	      struct cni_error *err);
void file_release(struct file *file);

/* Writes the content under this name, in the place of a file that has it, with owner, mode, ACL
 * and label of `like`; NULL: as a program that everybody may run. Call it with the lock.
 * CNI_ERROR_IO. */
int file_put(const struct directory *directory, const char *name, const struct file *content,
	     const struct file *like, struct cni_error *err);
/* Writes the text in the place of a file that was read, with that file's rights. A file that was
 * replaced or changed since stays as it is: CNI_ERROR_TRY_AGAIN. CNI_ERROR_IO. */
int file_replace(const struct directory *directory, const char *name, const struct file *seen,
		 const char *text, struct cni_error *err);

/* Moves within the directory, over what has the name. CNI_ERROR_IO. */
int file_move(const struct directory *directory, const char *from, const char *to,
	      struct cni_error *err);
/* Removes it; one that does not exist is no error. CNI_ERROR_IO. */
int file_remove(const struct directory *directory, const char *name, struct cni_error *err);

#define cleanup_file __attribute__((cleanup(file_release)))

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * io.h - reads and writes whole texts and small files, waits for locks of files; makes closed
 * standard streams harmless.
 */
#pragma once

#include <stddef.h>

#include "lib/error.h"

/* Far above any configuration: 10,000 port mappings are about a megabyte. */
#define CNI_INPUT_LIMIT ((size_t)16 << 20)

/* Reads a file, pipe or socket to its end; `what` names it in messages. The text is malloc'ed and
 * has a NUL after its *length bytes. NULL and CNI_ERROR_IO when reading fails or there are more
 * than `limit` bytes. */
char *cni_read_all(int fd, size_t limit, const char *what, size_t *length, struct cni_error *err);

/* Writes the whole text. 0, or -1 and errno; a part may have been written then. */
int cni_write_all(int fd, const char *text, size_t length);

/* Opens /dev/null in place of closed standard streams, so that no file opened later gets their
 * numbers; a program calls it first. Writing to a standard output that was closed remains an
 * error. A reader that has gone is an error of write(2), too, and does not end the process. How
 * children end can be waited for, even if the caller has left SIGCHLD ignored. */
void standard_streams_guard(void);

/* Reads what fits into the buffer with a NUL behind it. Returns the length; "" where it cannot be
 * read. A parameter of the kernel comes whole by one read. */
size_t text_file_read(const char *path, char *text, size_t size);

/* --- locks ---------------------------------------------------------------------------------- */

struct flock;

#define LOCK_WITHOUT_LIMIT (-1)

struct lock_wanted {
	int fd;
	int operation;             /* of flock(2): LOCK_EX, LOCK_SH */
	const struct flock *bytes; /* where it is a lock of fcntl(2) instead: those of its bytes */
	int seconds;               /* until the wait ends in vain; 0: does not wait */
	const char *written;       /* when this file is replaced they begin anew; NULL: never */
};

/* Takes it, in the kernel's queue. 0, or -1 and errno: EWOULDBLOCK where another process has it. */
int lock_file_take(const struct lock_wanted *wanted);

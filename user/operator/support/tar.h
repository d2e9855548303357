/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tar.h - writes a tar file (POSIX ustar) of files that are in memory.
 */
#ifndef OPERATOR_SUPPORT_TAR_H
#define OPERATOR_SUPPORT_TAR_H

#include <stddef.h>

/* Appends a file of mode 0600; the name has at most 99 bytes. 0, or -1 and errno. */
int tar_add(int fd, const char *name, const char *content, size_t size);
/* Writes the end. 0, or -1 and errno. */
int tar_end(int fd);

#endif

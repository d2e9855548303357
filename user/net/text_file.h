/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text_file.h - small files as texts, as those in /proc.
 */
#pragma once

#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>

/* Reads what fits into the buffer with a NUL behind it. Returns the length; "" where it cannot be
 * read. */
static inline size_t text_file_read(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got;

	while (fd >= 0 && length < size - 1 &&
	       (got = read(fd, text + length, size - 1 - length)) > 0)
		length += (size_t)got;
	if (fd >= 0)
		close(fd);
	text[length] = '\0';
	return length;
}

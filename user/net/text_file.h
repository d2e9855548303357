/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * text_file.h - small files as texts, as those in /proc.
 */
#pragma once

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* Reads what fits into the buffer with a NUL behind it. Returns the length; "" where it cannot be
 * read. A parameter of the kernel comes whole by one read. */
static inline size_t text_file_read(const char *path, char *text, size_t size)
{
	bool is_parameter = !strncmp(path, "/proc/sys/", strlen("/proc/sys/"));
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t length = 0;
	ssize_t got = fd;

	while (got >= 0 && length < size - 1 && !(is_parameter && length)) {
		got = read(fd, text + length, size - 1 - length);
		if (got <= 0)
			break;
		length += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	text[length] = '\0';
	return length;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * write_all.c - write(2) until everything is written.
 */
#include "cni/write_all.h"

#include <errno.h>
#include <unistd.h>

int cni_write_all(int fd, const char *text, size_t length)
{
	while (length) {
		ssize_t written = write(fd, text, length);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -1;
		text += written;
		length -= (size_t)written;
	}
	return 0;
}

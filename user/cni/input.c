/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * input.c - reading a whole file, pipe or stdin, with a limit.
 */
#include "cni/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cni/cleanup.h"

#define FIRST_SIZE 4096

/* Makes room for more than `length` bytes and a NUL. */
static int input_grow(char **buffer, size_t *size, size_t length)
{
	size_t wanted = *size ? *size : FIRST_SIZE;
	char *grown;

	while (wanted < length + 2)
		wanted *= 2;
	if (wanted == *size)
		return 0;
	grown = realloc(*buffer, wanted);
	if (!grown)
		return -1;
	*buffer = grown;
	*size = wanted;
	return 0;
}

int cni_input_read(int fd, size_t limit, const char *what, char **text, size_t *length,
		   struct cni_error *err)
{
	cleanup_free char *buffer = NULL;
	size_t size = 0;
	size_t used = 0;
	ssize_t got;

	for (;;) {
		if (input_grow(&buffer, &size, used))
			return cni_error_no_memory(err);
		got = read(fd, buffer + used, size - used - 1);
		if (!got)
			break;
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return cni_error_set(err, CNI_ERROR_IO, "cannot read %s: %s", what,
					     strerror(errno));
		used += (size_t)got;
		if (used > limit)
			return cni_error_set(err, CNI_ERROR_IO,
					     "%s is longer than %zu bytes, which is the limit",
					     what, limit);
	}
	buffer[used] = '\0';
	*text = TAKE(buffer);
	*length = used;
	return 0;
}

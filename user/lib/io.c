/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * io.c - reads and writes whole texts; makes closed standard streams harmless.
 */
#include "lib/io.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* 1: there may be more; 0: that was the end; -1. */
static int read_some(FILE *text, int fd)
{
	char chunk[16384];
	ssize_t got = read(fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EINTR ? 1 : -1;
	return fwrite(chunk, 1, (size_t)got, text) < (size_t)got ? -1 : got > 0;
}

char *cni_read_all(int fd, size_t limit, const char *what, size_t *length, struct cni_error *err)
{
	char *text = NULL;
	FILE *stream = open_memstream(&text, length);
	int more;

	if (!stream) {
		cni_error_no_memory(err);
		return NULL;
	}
	do
		more = read_some(stream, fd);
	while (more > 0 && ftell(stream) <= (long)limit);
	if (more < 0)
		cni_error_set(err, CNI_ERROR_IO, "cannot read %s: %s", what, strerror(errno));
	else if (more > 0)
		cni_error_set(err, CNI_ERROR_IO, "%s is longer than %zu bytes, which is the limit",
			      what, limit);
	if (fclose(stream))
		more = cni_error_no_memory(err);
	if (!more)
		return text;
	free(text);
	return NULL;
}

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

void standard_streams_guard(void)
{
	/* open() takes the lowest free number, which is that of the closed stream. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
	signal(SIGPIPE, SIG_IGN);
}

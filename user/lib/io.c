/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* io.c - reads and writes whole texts and small files; makes closed standard streams harmless. */
#include "lib/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lib/memory.h"

char *cni_read_all(int fd, size_t limit, const char *what, size_t *length, struct cni_error *err)
{
	char *text = NULL, chunk[16384];
	FILE *stream = or_exit(open_memstream(&text, length));
	ssize_t got;

	do {
		got = read(fd, chunk, sizeof(chunk));
		if (got > 0)
			or_exit(fwrite(chunk, 1, (size_t)got, stream) < (size_t)got ? NULL
										    : stream);
	} while ((got > 0 && ftell(stream) <= (long)limit) || (got < 0 && errno == EINTR));
	if (got < 0)
		cni_error_set(err, CNI_ERROR_IO, "cannot read %s: %s", what, strerror(errno));
	else if (got > 0)
		cni_error_set(err, CNI_ERROR_IO, "%s is longer than %zu bytes, which is the limit",
			      what, limit);
	or_exit(fclose(stream) ? NULL : text);
	if (!got)
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

size_t text_file_read(const char *path, char *text, size_t size)
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

void standard_streams_guard(void)
{
	struct pollfd streams[STDERR_FILENO + 1] = {{0}};

	for (int fd = 0; fd <= STDERR_FILENO; fd++)
		streams[fd].fd = fd;
	poll(streams, STDERR_FILENO + 1, 0);
	/* open() takes the lowest free number, which is that of the closed stream. */
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (streams[fd].revents & POLLNVAL)
			open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
}

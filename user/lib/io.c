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
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/clock.h"
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

/* --- locks ------------------------------------------------------------------------------------ */

static int take(const struct lock_wanted *wanted, bool waits)
{
	struct flock bytes;

	if (!wanted->bytes)
		return flock(wanted->fd, wanted->operation | (waits ? 0 : LOCK_NB));
	bytes = *wanted->bytes;
	return fcntl(wanted->fd, waits ? F_OFD_SETLKW : F_OFD_SETLK, &bytes);
}

/* Whether whoever has the lock has done something since the last look. */
static bool is_replaced(const char *path, struct stat *last)
{
	struct stat now = {0};
	bool same;

	if (stat(path, &now))
		now.st_ino = 0;
	same = now.st_ino == last->st_ino && now.st_mtim.tv_sec == last->st_mtim.tv_sec &&
	       now.st_mtim.tv_nsec == last->st_mtim.tv_nsec;
	*last = now;
	return !same;
}

static void interrupt(int signal)
{
}

static int wait_until(const struct lock_wanted *wanted)
{
	const int64_t time = wanted->seconds * MS_PER_SECOND;
	int64_t end = clock_ms() + time;
	struct stat last = {0};

	for (;;) {
		if (!take(wanted, true))
			return 0;
		if (errno != EINTR)
			return -1;
		if (wanted->written && is_replaced(wanted->written, &last))
			end = clock_ms() + time;
		if (wanted->seconds != LOCK_WITHOUT_LIMIT && clock_ms() >= end) {
			errno = EWOULDBLOCK;
			return -1;
		}
	}
}

/* A timer ends each call that waits. It fires again and again, because once could be just before
 * the call is entered. The caller may have blocked its signal. */
int lock_file_take(const struct lock_wanted *wanted)
{
	const struct sigaction action = {.sa_handler = interrupt};
	const struct itimerval tick = {{0, 100000}, {0, 100000}};
	struct sigaction old_action;
	struct itimerval old_timer;
	sigset_t alarm, old_mask;
	int result = take(wanted, false), saved;

	if (!result || (errno != EWOULDBLOCK && errno != EACCES) || !wanted->seconds)
		return result;
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	sigaction(SIGALRM, &action, &old_action);
	sigprocmask(SIG_UNBLOCK, &alarm, &old_mask);
	setitimer(ITIMER_REAL, &tick, &old_timer);
	result = wait_until(wanted);
	saved = errno;
	setitimer(ITIMER_REAL, &old_timer, NULL);
	sigprocmask(SIG_SETMASK, &old_mask, NULL);
	sigaction(SIGALRM, &old_action, NULL);
	errno = saved;
	return result;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock_file.c - the lock of a file, for which a process waits for a limited time. */
#include "lib/lock_file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>

#include "lib/clock.h"

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

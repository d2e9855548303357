/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* lock_file.h - the lock of a file, for which a process waits for a limited time. */
#pragma once

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

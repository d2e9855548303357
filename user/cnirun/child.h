/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * child.h - a plugin's process: its stdin and stdout until it has ended, or its end by force.
 */
#ifndef CNIRUN_CHILD_H
#define CNIRUN_CHILD_H

#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

#include "lib/error.h"

struct child {
	const char *file; /* for messages */
	pid_t pid;
	/* Our ends of its stdin and stdout, which do not block; -1: closed. */
	int input;
	int output;
	const char *unsent; /* of its stdin */
	FILE *received;     /* its stdout */
	bool ended;         /* and waited for */
	int status;         /* as of waitpid() */
};

/* Waits until the child has ended and its stdout is at the end. CNI_ERROR_IO, after which it may
 * still run: it did not end within `timeout` seconds (0: no limit), or wrote more than a result can
 * be. If a process that it left behind keeps its stdout open, waits only a moment for that. */
int child_wait(struct child *child, unsigned int timeout, struct cni_error *err);

/* Returns whether this process has a child, ended or not. A process that called exec() may have
 * some that it does not know. */
bool child_exists(void);

/* Kills the child and all that descends from it, and waits for their end, for some seconds at most.
 * A daemon, whose parent has ended before, stays. `others`: this process has more children, from
 * which the child's descendants cannot be told; then only the child is killed. */
void child_kill(pid_t child, bool others);

#endif

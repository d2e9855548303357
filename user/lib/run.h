/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* run.h - runs a program of the host, for a limited time, and keeps what it prints. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct command_run {
	/* What to do. */
	const char *const *arguments; /* the program and its arguments, NULL at the end */
	int seconds;                  /* until it is killed, with the processes that it started */
	bool discards;                /* keeps nothing: what it leaves running may print, too */
	/* What came of it. */
	char *output; /* malloc'ed, with a NUL behind it; who prints more than 64 MiB is killed */
	size_t length;
	char errors[256]; /* the last line of standard error, printable */
	bool missing;     /* there is no such program, or it cannot be run */
	bool timed_out;   /* it was killed */
	int status;       /* its exit status; -1: it was killed, or took too long */
};

/* Runs it. Its environment has PATH, with the directories of administrators' programs, and LC_ALL,
 * and nothing else; it inherits no file. Returns whether its exit status is 0. */
bool command_run(struct command_run *run);
void command_run_release(struct command_run *run);

#define cleanup_command __attribute__((cleanup(command_run_release)))

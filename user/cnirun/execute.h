/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.h - runs one plugin: its environment, its stdin, its stdout.
 */
#ifndef CNIRUN_EXECUTE_H
#define CNIRUN_EXECUTE_H

#include <stddef.h>

#include "cni/error.h"

/* How plugins are run, whatever they are asked. */
struct execution {
	const char *path;     /* where they are, directories separated by colons */
	unsigned int timeout; /* seconds for each; 0: as long as it takes */
};

/* The CNI_ variables; "" where the operation has none. */
struct execute_environment {
	const char *command;
	const char *container_id;
	const char *netns;
	const char *ifname;
	const char *args;
	const char *path;
};

/* Begins as {0}. */
struct execute_output {
	char *text; /* what it wrote to stdout, with a NUL after it */
	size_t length;
	int status; /* as of waitpid() */
};

/* The first regular file of that name along the colon-separated path; one that cannot
 * be executed is chosen too, and fails. malloc'ed, or NULL and code 7. */
char *execute_find(const char *type, const char *path, struct cni_error *err);

/* Waits for its end, at most `timeout` seconds unless that is 0; stderr is ours. A file
 * that is busy (being written) is tried again for some seconds. Code 5 when it cannot be
 * run, takes too long or writes more than a result can be: then it is killed, with what
 * it has started. */
int execute_run(const char *file, const struct execute_environment *environment,
		unsigned int timeout, const char *input, size_t length,
		struct execute_output *output, struct cni_error *err);

void execute_release(struct execute_output *output);

#endif

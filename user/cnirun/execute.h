/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * execute.h - runs a plugin once: its environment, its stdin, its stdout.
 */
#ifndef CNIRUN_EXECUTE_H
#define CNIRUN_EXECUTE_H

#include <stddef.h>

#include "lib/error.h"
#include "cnirun/runtime_conf.h"

/* Debian has its plugins in /usr/lib/cni, Fedora in /usr/libexec/cni, others, after the plugins'
 * own releases, in /opt/cni/bin. */
#define EXECUTE_DEFAULT_PATH "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni"

/* What a plugin is run with. */
struct execution {
	const char *command;             /* CNI_COMMAND */
	const struct runtime_conf *conf; /* the other variables of CNI, and the time limit */
	const char *input;               /* stdin */
};

/* Begins as {0}. */
struct execute_output {
	char *text; /* its stdout, with a NUL after it */
	size_t length;
	int status; /* as of waitpid() */
};

/* Finds the first regular file of that name along the colon-separated path, even if it is not
 * executable: running it fails then. malloc'ed, or NULL and CNI_ERROR_INVALID_CONFIGURATION. */
char *execute_find(const char *type, const char *path, struct cni_error *err);

/* Runs the plugin and waits for its end; its stderr is ours. Tries again for some seconds while the
 * file is being written. CNI_ERROR_IO when it cannot be run, takes too long or writes more than a
 * result can be: then it is killed, with the processes that it has started. */
int execute_run(const char *file, const struct execution *execution, struct execute_output *output,
		struct cni_error *err);

void execute_release(struct execute_output *output);

#define cleanup_execute_output __attribute__((cleanup(execute_release)))

#endif

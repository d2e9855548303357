/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* execute.h - runs a CNI plugin once: its environment, its stdin, its stdout. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

/* Debian has its plugins in /usr/lib/cni, Fedora in /usr/libexec/cni, others, after the plugins'
 * own releases, in /opt/cni/bin. */
#define EXECUTE_DEFAULT_PATH "/opt/cni/bin:/usr/lib/cni:/usr/libexec/cni"
/* k3s has its own plugins, and its lists, below its data directory. */
#define K3S_DATA "/var/lib/rancher/k3s"
#define K3S_PLUGINS K3S_DATA "/data/cni"
#define K3S_CONFLISTS K3S_DATA "/agent/etc/cni/net.d"

/* What a plugin is run with. */
struct execution {
	const char *const (*variables)[2]; /* names and values, up to a NULL, beside our own */
	const char *input;                 /* stdin */
	unsigned int timeout;              /* seconds; 0: no limit */
	const char *longer;                /* how the user gives it more; NULL: cannot */
};

/* Begins as {0}. */
struct execute_output {
	char *text; /* its stdout, with a NUL after it */
	size_t length;
	int status;        /* as of waitpid() */
	bool is_held_open; /* by a process that the plugin has left, which was not waited for */
};

/* Finds the first regular file of that name along the colon-separated path, even if it is not
 * executable: running it fails then. malloc'ed, or NULL and CNI_ERROR_INVALID_CONFIGURATION. */
char *execute_find(const char *type, const char *path, struct cni_error *err);

/* Runs the plugin and waits for its end; its stderr is ours. Tries again for some seconds while the
 * file is being written. CNI_ERROR_IO when it cannot be run, takes too long or writes more than a
 * result can be: then it is killed, with the processes that it has started. */
int execute_run(const char *file, const struct execution *execution, struct execute_output *output,
		struct cni_error *err);

/* Fails unless the plugin has ended with success: with the error that it printed, with CNI_ERROR_IO
 * if it printed nothing, and with CNI_ERROR_DECODE, which quotes it, if that is no error of CNI. */
int execute_check(const struct execute_output *output, struct cni_error *err);

void execute_release(struct execute_output *output);

#define cleanup_execute_output __attribute__((cleanup(execute_release)))

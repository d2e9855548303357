/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * older_binary.h - another version of bpf-portmap: whether it may be run, and what it is.
 */
#ifndef OPERATOR_DOWNGRADE_OLDER_BINARY_H
#define OPERATOR_DOWNGRADE_OLDER_BINARY_H

#include <limits.h>
#include <stdbool.h>

#include "lib/error.h"

struct older_binary {
	char path[PATH_MAX]; /* without symbolic links */
	char version[32];
	bool has_our_layout; /* its own `upgrade` puts its programs over our maps */
};

/* Only a file of root's that nobody else can change is run. CNI_ERROR_INVALID_CONFIGURATION,
 * CNI_ERROR_IO. */
int older_binary_examine(struct older_binary *binary, const char *path, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* netns.h - network namespaces: opening, telling apart, entering for a moment. */
#pragma once

#include <stdbool.h>

#include "lib/error.h"

/* Opens it. Returns a file descriptor, or -1 and CNI_ERROR_INVALID_NETNS when the path does not
 * open or is no network namespace. */
int netns_open(const char *path, struct cni_error *err);

/* Returns whether the path leads to the one this process runs in: by device and inode, as paths to
 * one namespace differ. False also where it cannot be looked at. */
bool netns_is_own(const char *path);

/* Calls the function inside the namespace, comes back, and returns what it returned; -1 and
 * CNI_ERROR_INVALID_NETNS or CNI_ERROR_IO where it was not called. A process that cannot come back
 * aborts: nothing that follows may run in a container's namespace. */
int netns_call(int netns, int (*function)(void *context, struct cni_error *err), void *context,
	       struct cni_error *err);

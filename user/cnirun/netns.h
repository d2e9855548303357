/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * netns.h - network namespaces by path or by name.
 */
#ifndef CNIRUN_NETNS_H
#define CNIRUN_NETNS_H

#include <stdbool.h>

#include "cni/error.h"

/* A path, made absolute, or the name of an `ip netns`. It need not exist; "" stays "".
 * malloc'ed, or NULL and code 4 or 5. */
char *netns_resolve(const char *path_or_name, struct cni_error *err);

/* Whether a path is certain not to exist. One that exists but is no namespace is not
 * gone: another mount namespace may see it. */
bool netns_is_gone(const char *path);

/* The container ID that cnitool makes of the netns' path, for those who give none.
 * malloc'ed, or NULL. */
char *netns_default_container_id(const char *path);

#endif

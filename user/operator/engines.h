/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engines.h - what /proc and the files of container engines say about a container. No engine is
 * asked.
 */
#ifndef OPERATOR_ENGINES_H
#define OPERATOR_ENGINES_H

#include <stdbool.h>

/* Whether a process is in a cgroup of this container, or of its sandbox. False also where the ID is
 * too short to be told from other words. */
bool engines_run(const char *container_id);

#endif

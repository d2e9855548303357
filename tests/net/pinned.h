/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pinned.h - the maps that the plugin has pinned, for tools that read or write them. */
#pragma once

#include <bpf/bpf.h>

#include "tool.h"

/* Ends the program if there is none. */
static inline int open_map(const char *directory, const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	fd = bpf_obj_get(path);
	if (fd < 0)
		die(path);
	return fd;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container_file.h - files of containers, as their processes have them.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#define CONTAINER_FILE_SIZE 4096

/* Calls `take` with the number of each network namespace of which a process has the file, and with
 * its text, which ends at CONTAINER_FILE_SIZE. A container chooses what stands there: a child reads
 * it, within the container's root, and is waited for no longer than a moment. */
void container_files_read(const ino_t *netns, size_t count, const char *path,
			  void (*take)(void *context, size_t number, const char *text),
			  void *context);

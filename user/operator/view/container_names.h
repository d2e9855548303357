/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * container_names.h - the names that Podman and nerdctl have given to containers, and kubelet to
 * sandboxes, as files have them: no engine is asked. Records of containers that were adopted have
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define CONTAINER_NAME_SIZE 256

struct container_name {
	char id[CONTAINER_NAME_SIZE]; /* as CNI_CONTAINERID */
	char name[CONTAINER_NAME_SIZE];
	char namespace[CONTAINER_NAME_SIZE]; /* of a pod; "": it is none */
};

/* Begins as {0}. */
struct container_names {
	bool read;
	struct container_name *list;
	size_t count;
};

/* Returns the names of a container, as printable texts; NULL: no file has it. Reads the files at
 * the first call. */
const struct container_name *container_name_of(struct container_names *names,
					       const char *container_id);
#define ENGINE_TEXT_SIZE ((2 * CONTAINER_NAME_SIZE) + 2)
/* Writes "default/web-0" or "web", or without a name what engines show of the ID. Returns text. */
const char *container_name_write(struct container_names *names, const char *container_id,
				 char text[ENGINE_TEXT_SIZE]);

/* Returns the digits of an engine's ID (lib/text.h), or the whole ID of another. */
const char *engine_id(const char *container_id);

void container_names_release(struct container_names *names);

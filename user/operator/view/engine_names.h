/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine_names.h - the names that Podman and nerdctl have given to containers, and kubelet to
 * sandboxes, as files have them: no engine is asked. Records of containers that were adopted have
 * none.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define ENGINE_NAME_SIZE 256

struct engine_name {
	char id[ENGINE_NAME_SIZE]; /* as CNI_CONTAINERID */
	char name[ENGINE_NAME_SIZE];
	char namespace[ENGINE_NAME_SIZE]; /* of a pod; "": it is none */
};

/* Begins as {0}. */
struct engine_names {
	bool read;
	struct engine_name *list;
	size_t count;
};

/* Returns the names of a container, as printable texts; NULL: no file has it. Reads the files at
 * the first call. */
const struct engine_name *engine_name_of(struct engine_names *names, const char *container_id);
#define ENGINE_TEXT_SIZE ((2 * ENGINE_NAME_SIZE) + 2)
/* Writes "default/web-0" or "web", or without a name what engines show of the ID. Returns text. */
const char *engine_name_write(struct engine_names *names, const char *container_id,
			      char text[ENGINE_TEXT_SIZE]);

/* Returns the digits of an engine's ID (lib/text.h), or the whole ID of another. */
const char *engine_id(const char *container_id);

void engine_names_release(struct engine_names *names);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine_names.h - the names that Podman and nerdctl have given to containers, as their files have
 * them: no engine is asked.
 */
#ifndef OPERATOR_VIEW_ENGINE_NAMES_H
#define OPERATOR_VIEW_ENGINE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define ENGINE_NAME_SIZE 256

struct engine_name {
	char id[ENGINE_NAME_SIZE]; /* as CNI_CONTAINERID */
	char name[ENGINE_NAME_SIZE];
};

/* Begins as {0}. */
struct engine_names {
	bool read;
	struct engine_name *list;
	size_t count;
};

/* Reads the files when it is called first. A printable text; NULL: no engine's file has it. */
const char *engine_name_of(struct engine_names *names, const char *container_id);
void engine_names_release(struct engine_names *names);

#endif

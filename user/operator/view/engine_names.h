/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * engine_names.h - the names that Podman and nerdctl have given to containers, and kubelet to
 * sandboxes, as files have them: no engine is asked. Records of containers that were adopted have
 * none.
 */
#ifndef OPERATOR_VIEW_ENGINE_NAMES_H
#define OPERATOR_VIEW_ENGINE_NAMES_H

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

/* Reads the files when it is called first. Printable texts; NULL: no file has it. */
const struct engine_name *engine_name_of(struct engine_names *names, const char *container_id);
void engine_names_release(struct engine_names *names);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflists.h - the files that runtimes take for conflists. */
#pragma once

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>

#include "cni/conflist.h"

struct conflist_file {
	const char *path;
	const char *name;   /* the last part of it; of a folder's file with that of the folder */
	const char *engine; /* whose directory it is: "", "-k3s", "-rke2", "-microk8s" */
	bool is_first;      /* of its directory: containerd, CRI-O and kubelet take it alone */
	bool of_folder;     /* one plugin, in the folder of the list before (CNI 1.3) */
};

typedef void conflist_take(void *context, const struct conflist_file *file);

/* Calls `take` for each, directory by directory, in the order in which runtimes read them; after a
 * list for the files of its folder. */
void conflists_visit(conflist_take *take, void *context);

/* Returns the file's JSON; NULL: it cannot be read, or is none. */
json_t *conflist_load_alone(const char *path);
/* The same, with Multus' delegates among its "plugins". */
json_t *conflist_load_delegates(const char *path);
/* The same, and with those of its folder. */
json_t *conflist_load(const char *path);

/* Returns the path of the file that has the list's plugin of this type: its own, or one of its
 * folder. malloc'ed; NULL: none has it as a plugin of its own. */
char *conflist_file_of(const char *path, const char *type);

/* Returns the path of the folder with more plugins of the list, which need not be there: malloc'ed;
 * NULL: the list wants none. */
char *conflist_folder(const json_t *list, const char *path);

/* Selects, for scandir(), the files of a directory that runtimes read. containerd, CRI-O and
 * kubelet take the first of them by the bytes of its name. */
int conflist_is_read(const struct dirent *entry);
/* The same of those of a list's folder. */
int conflist_is_of_folder(const struct dirent *entry);

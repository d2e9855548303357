/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflists.h - the files that runtimes take for conflists.
 */
#pragma once

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>

struct conflist_file {
	const char *path;
	const char *name;   /* the last part of it */
	const char *engine; /* whose directory it is: "", "-k3s", "-rke2", "-microk8s" */
	bool is_first;      /* of its directory: containerd, CRI-O and kubelet take it alone */
};

typedef void conflist_take(void *context, const struct conflist_file *file);

/* In the order in which runtimes read them, directory by directory. */
void conflists_visit(conflist_take *take, void *context);

/* Those of one directory, for scandir(): the first by the bytes of its name is what containerd,
 * CRI-O and kubelet take. */
int conflist_is_read(const struct dirent *entry);

/* "" where it has none. As libcni, without regard to the case of the key. */
const char *plugin_type(const json_t *plugin);
/* The plugin of this type; NULL: the list has none. */
json_t *conflist_plugin(const json_t *list, const char *type);

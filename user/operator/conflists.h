/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflists.h - the files that runtimes take for conflists.
 */
#ifndef OPERATOR_CONFLISTS_H
#define OPERATOR_CONFLISTS_H

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

#endif

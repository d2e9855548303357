/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * lists.h - the conflists of a directory: which one runtimes take, and one with our plugin in the
 * place of the reference's.
 *
 * Nothing but this word of its text changes: unknown keys, their order, numbers and blanks stay as
 * the agent that owns the list wrote them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"
#include "operator/install/files.h"

/* --- its text (list_text.c) ----------------------------------------------------------------- */

#define OUR_TYPE "bpf-portmap"
#define REFERENCE_TYPE "portmap"

enum list_verdict {
	LIST_HAS_REFERENCE, /* one plugin `portmap`, and not ours */
	LIST_HAS_OURS,      /* one plugin of ours, and no `portmap` */
	LIST_HAS_NEITHER,
	LIST_IS_NO_JSON, /* half written, perhaps */
	LIST_IS_REFUSED,
};

/* Judges a list; `path` names it in messages. All verdicts but the first two set *err:
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
enum list_verdict list_text_judge(const char *text, size_t length, const char *path,
				  struct cni_error *err);

/* Judges a file of a network's folder, which is one plugin. The same codes. */
enum list_verdict list_text_judge_plugin(const char *text, size_t length, const char *path,
					 struct cni_error *err);

/* Returns whether runtimes tell `portmap` the ports, as its capabilities want. */
bool list_text_has_ports(const char *text);

/* Returns the malloc'ed text in which the plugin of type `from` is of type `to`, with a NUL behind
 * it. The text was judged to have one. NULL and CNI_ERROR_INVALID_CONFIGURATION where the word is
 * written in a way that cannot be changed without the rest. */
char *list_text_change(const char *text, const char *from, const char *to, const char *path,
		       struct cni_error *err);

/* --- its file ------------------------------------------------------------------------------- */

/* The end of the name under which the first text that was changed is kept. No runtime reads such a
 * name, and nobody else uses it. */
#define KEPT_END ".bpf-portmap.bak"

/* Returns the name of the list that containerd, CRI-O and kubelet take: the first by the bytes of
 * its name that ends with .conf, .conflist or .json. malloc'ed; NULL: there is none. */
char *lists_first(const struct directory *directory);

/* Reads and judges a list. One that does not exist is LIST_HAS_NEITHER. All verdicts but
 * LIST_HAS_REFERENCE and LIST_HAS_OURS set *err: CNI_ERROR_IO, CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. */
enum list_verdict list_look(const struct directory *directory, const char *name, struct file *file,
			    struct cni_error *err);

/* Opens the folder with more plugins of this list (CNI 1.3). Returns false where it has none. */
bool lists_open_folder(const struct directory *directory, const char *name,
		       struct directory *folder);
/* Reads the first plugin of the folder that is `portmap` or ours. Returns its file's name,
 * malloc'ed; NULL: there is none, and *file and *verdict stay as they were. */
char *lists_find_in_folder(const struct directory *folder, struct file *file,
			   enum list_verdict *verdict);

/* Writes the list that was read with our type, and keeps what it was; or with the reference's type
 * again, so that it is what it was, or what an agent has made of it since. CNI_ERROR_IO,
 * CNI_ERROR_INVALID_CONFIGURATION; CNI_ERROR_TRY_AGAIN where somebody has changed it meanwhile. */
int list_change(const struct directory *directory, const char *name, const struct file *file,
		bool to_ours, struct cni_error *err);
/* Removes what was kept. CNI_ERROR_IO. */
int list_forget(const struct directory *directory, const char *name, struct cni_error *err);

/* Is called for each list of ours. */
typedef int list_visit(const struct directory *directory, const char *name, void *context,
		       struct cni_error *err);

/* Visits every conflist, and, by its name, one that is gone and of which a text was kept. Stops
 * where a visit fails. CNI_ERROR_IO, and what the visit sets. */
int lists_visit(const struct directory *directory, list_visit *visit, void *context,
		struct cni_error *err);

/* Returns whether install has changed this list. */
bool list_was_changed(const struct directory *directory, const char *name);

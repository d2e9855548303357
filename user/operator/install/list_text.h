/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list_text.h - the text of a conflist: which of the plugins `portmap` and `bpf-portmap` it names,
 * and the same text with the one in the place of the other. Nothing but this word changes: unknown
 * keys, their order, numbers and blanks stay as the agent that owns the list wrote them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "lib/error.h"

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

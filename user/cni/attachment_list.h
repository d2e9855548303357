/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment_list.h - the attachments that GC is told to keep.
 */
#ifndef CNI_ATTACHMENT_LIST_H
#define CNI_ATTACHMENT_LIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/error.h"

struct cni_attachment {
	const char *container_id;
	const char *ifname;
};

/* Begins as {0}. The strings are borrowed from the configuration. */
struct cni_attachment_list {
	/* False: the configuration has neither key, so nothing is said about what is
	 * valid. True with count 0: nothing is valid (libcni sends null for that). */
	bool given;
	struct cni_attachment *attachments; /* sorted */
	size_t count;
};

/* From cni.dev/valid-attachments, else cni.dev/attachments (libcni sends both). Codes
 * 6 and 7; release the list also then. */
int cni_attachment_list_read(struct cni_attachment_list *list, const json_t *config,
			     struct cni_error *err);
void cni_attachment_list_release(struct cni_attachment_list *list);

bool cni_attachment_list_has(const struct cni_attachment_list *list, const char *container_id,
			     const char *ifname);

#endif

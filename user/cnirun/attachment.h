/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment.h - a container's interface on a network: added, deleted, checked, by all
 * plugins of the list in turn.
 *
 * The caller holds the lock.
 */
#ifndef CNIRUN_ATTACHMENT_H
#define CNIRUN_ATTACHMENT_H

#include <jansson.h>

#include "cni/error.h"
#include "cnirun/conflist.h"
#include "cnirun/execute.h"

struct attachment {
	const struct conflist *list;
	const char *container_id;
	const char *ifname;
	const char *netns;       /* absolute path; DEL takes that of the cache for "" */
	json_t *args;            /* pairs; NULL: not given, DEL and CHECK look into the cache */
	json_t *capability_args; /* an object; NULL: as args */
	struct execution execution;
	const char *cache_directory;
};

/* What CNI says about the names; code 4. */
int attachment_validate(const struct attachment *attachment, struct cni_error *err);

/* *result: what the last plugin answered, a new reference. When a plugin fails, the whole
 * list gets a DEL, unless the cache has an earlier ADD of this attachment: that one, and
 * what it set up, stays as it is. */
int attachment_add(const struct attachment *attachment, json_t **result, struct cni_error *err);

/* In reverse order, stops at the first error; the cache's file goes last. */
int attachment_del(const struct attachment *attachment, struct cni_error *err);

/* With the cached result, which must be there. */
int attachment_check(const struct attachment *attachment, struct cni_error *err);

#endif

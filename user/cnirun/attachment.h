/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attachment.h - add, del, check: a container's interface on a network, by all plugins of the
 * conflist in turn.
 */
#ifndef CNIRUN_ATTACHMENT_H
#define CNIRUN_ATTACHMENT_H

#include "lib/error.h"
#include "cnirun/conflist.h"
#include "cnirun/options.h"
#include "cnirun/runtime_conf.h"

/* Prints the last plugin's result. When a plugin fails, all plugins get a DEL, unless the cache has
 * an earlier ADD of this attachment, which then stays as it is. */
int verb_add(const struct options *options, struct cni_error *err);

int verb_del(const struct options *options, struct cni_error *err);

/* Checks with the cached result; without one, where this was never added, as libcni does. */
int verb_check(const struct options *options, struct cni_error *err);

/* Runs DEL in reverse order, until the first error; removes the cache's file last. What `conf`
 * lacks is taken from the cache. The caller holds the lock. */
int attachment_del(const struct conflist *list, const struct runtime_conf *conf,
		   struct cni_error *err);

#endif

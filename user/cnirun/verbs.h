/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - the verbs; their table is in main.c.
 */
#pragma once

#include "lib/error.h"
#include "cnirun/conflist.h"
#include "cnirun/options.h"

/* `list`: the conflist that the options name. */
typedef int verb_function(const struct options *options, const struct conflist *list,
			  struct cni_error *err);

/*
 *   add      prints the last plugin's result. When a plugin fails, all plugins get a DEL, unless
 *            the cache has an earlier ADD of this attachment, which then stays as it is
 *   check    with the cached result; without one, where this was never added, as libcni does
 *   gc       a DEL for each cached attachment whose network namespace is gone, then the plugins'
 *            own GC with the others; goes on after errors
 *   version  prints a table; goes on after errors
 *   list     prints what the cache has for the network
 */
verb_function verb_add, verb_del, verb_check, verb_gc, verb_status, verb_version, verb_list;

/* Runs DEL in reverse order, until the first error; removes the cache's file last. What `conf`
 * lacks is taken from the cache. The caller holds the lock. */
int attachment_del(const struct conflist *list, const struct runtime_conf *conf,
		   struct cni_error *err);

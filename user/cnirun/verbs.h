/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - what cnirun can be told to do.
 */
#ifndef CNIRUN_VERBS_H
#define CNIRUN_VERBS_H

#include "cni/error.h"
#include "cnirun/options.h"

int verb_add(const struct options *options, struct cni_error *err);
int verb_del(const struct options *options, struct cni_error *err);
int verb_check(const struct options *options, struct cni_error *err);
int verb_gc(const struct options *options, struct cni_error *err);
int verb_status(const struct options *options, struct cni_error *err);
int verb_version(const struct options *options, struct cni_error *err);
int verb_list(const struct options *options, struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * network.h - gc, status, version: what concerns a network and not one container.
 */
#ifndef CNIRUN_NETWORK_H
#define CNIRUN_NETWORK_H

#include "lib/error.h"
#include "cnirun/options.h"

/* Runs a DEL for each cached attachment whose network namespace is gone, then the plugins' own GC
 * with the others. Goes on after errors. */
int verb_gc(const struct options *options, struct cni_error *err);

int verb_status(const struct options *options, struct cni_error *err);

/* Prints a table. Goes on after errors. */
int verb_version(const struct options *options, struct cni_error *err);

#endif

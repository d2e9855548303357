/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list.h - list: what the cache has for a network.
 */
#ifndef CNIRUN_LIST_H
#define CNIRUN_LIST_H

#include "lib/error.h"
#include "cnirun/options.h"

int verb_list(const struct options *options, struct cni_error *err);

#endif

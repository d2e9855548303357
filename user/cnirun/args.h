/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * args.h - CNI_ARGS, as text ("K=V;K=V") and as the cache keeps it ([["K","V"],...]).
 */
#ifndef CNIRUN_ARGS_H
#define CNIRUN_ARGS_H

#include <jansson.h>

#include "cni/error.h"

/* A new array, or NULL and code 4. "" is an empty array. */
json_t *args_parse(const char *text, struct cni_error *err);

/* malloc'ed, or NULL without memory. `pairs` may be NULL; elements are pairs of strings. */
char *args_format(const json_t *pairs);

#endif

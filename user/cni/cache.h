/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.h - the files in which libcni keeps what was added: the parts that need decoding.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#define CNI_CACHE_DIRECTORY "/var/lib/cni"
#define CNI_CACHE_RESULTS "/results" /* below it */

/* Decodes the conflist that is kept as `config`: a Go []byte, which is base64 in JSON. malloc'ed;
 * NULL: it is no base64. */
char *cni_cache_decode_list(const char *config, size_t *length);

/* Formats the pairs that are kept as `cniArgs` as CNI_ARGS: [["K", "V"], ...] becomes "K=V;...".
 * malloc'ed, "" where there are none. */
char *cni_cache_format_args(const json_t *pairs);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cache.h - the files in which libcni keeps what was added: the parts that need decoding, and what
 * other runtimes than cnirun have there.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address.h"

#define CNI_CACHE_DIRECTORY "/var/lib/cni"
#define CNI_CACHE_RESULTS "/results" /* below it */

/* Decodes the conflist that is kept as `config`: a Go []byte, which is base64 in JSON. malloc'ed;
 * NULL: it is no base64. */
char *cni_cache_decode_list(const char *config, size_t *length);

/* Formats the pairs that are kept as `cniArgs` as CNI_ARGS: [["K", "V"], ...] becomes "K=V;...".
 * malloc'ed, "" where there are none. */
char *cni_cache_format_args(const json_t *pairs);

#define ADD_CACHE CNI_CACHE_DIRECTORY CNI_CACHE_RESULTS

/* Returns a new array of all objects that are there. *incomplete is set where something cannot be
 * read; what is no JSON tells nothing, and is left out. */
json_t *add_cache_read(bool *incomplete);

/* Returns the text of this key, or "". */
const char *add_cache_text(const json_t *cached, const char *key);

bool add_cache_has_address(const json_t *cached, const uint8_t address[CNI_ADDRESS_SIZE]);
/* Returns whether its namespace is gone; false also where the runtime has not kept where that
 * was. */
bool add_cache_is_gone(const json_t *cached);

/* Returns where its namespace is, also by its result, for older versions of libcni; "": not
 * known. */
const char *add_cache_netns(const json_t *cached);

/* Returns what the runtime would write to our plugin, or to portmap: a new object. Of the result a
 * plugin that comes later in the list may have added something, which does not matter. NULL: the
 * list has no such plugin. */
json_t *add_cache_config(const json_t *cached);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* conflist.h - a network's plugins in order, as its configuration lists them. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/conflist.h"
#include "lib/error.h"

/* Begins as {0}, or with the text. */
struct conflist {
	char *text; /* for the cache: as it was read, malloc'ed */
	size_t length;
	char *name;    /* valid */
	char *version; /* what the plugins are sent; "" where the conflist has none */
	bool disable_check;
	bool disable_gc;
	json_t *plugins; /* at least one; objects, each with a string `type` */
};

/* Returns NETCONFPATH, or CNI's usual directory. */
const char *conflist_directory(void);

/* Finds and reads one. A path contains a slash or ends with .conflist, .conf or .json. A name is
 * looked up in NETCONFPATH: first in *.conflist, then in *.conf and *.json together, in the order
 * of the files' names. An invalid file before the right one is an error. CNI_ERROR_IO,
 * CNI_ERROR_DECODE, CNI_ERROR_INVALID_CONFIGURATION. */
int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err);

/* Reads a conflist's JSON. `directory` holds the folder of further plugins, named as the network;
 * NULL: there is none. `what` names the text in messages. CNI_ERROR_IO, CNI_ERROR_DECODE,
 * CNI_ERROR_INVALID_CONFIGURATION. */
int conflist_read(struct conflist *list, const json_t *root, const char *directory,
		  const char *what, struct cni_error *err);

/* Wraps the configuration of a single plugin, which it replaces as the list's text. The same
 * errors. */
int conflist_wrap(struct conflist *list, json_t *plugin, const char *what, struct cni_error *err);

/* Returns whether the conflist's version is this one or newer. */
bool conflist_version_reaches(const struct conflist *list, const char *version);

/* Returns whether one of the plugins declares the capability. */
bool conflist_has_capability(const struct conflist *list, const char *capability);

void conflist_release(struct conflist *list);

#define cleanup_conflist __attribute__((cleanup(conflist_release)))

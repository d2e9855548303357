/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conflist.h - a network's list of plugins: reading, validating, finding it.
 */
#ifndef CNIRUN_CONFLIST_H
#define CNIRUN_CONFLIST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cni/error.h"

#define CONFLIST_DEFAULT_DIRECTORY "/etc/cni/net.d"

/* Begins as {0}. */
struct conflist {
	char *name;    /* valid */
	char *version; /* what the plugins are sent; "" where the list has none */
	bool disable_check;
	bool disable_gc;
	json_t *plugins; /* at least one; objects, each with a string `type` */
	char *text;      /* the list as it was read, for the cache */
	size_t length;
};

/* A path (with a slash, or ending in .conflist, .conf or .json), or the name of a
 * network that is looked up in NETCONFPATH. Codes 5, 6, 7. */
int conflist_find(struct conflist *list, const char *path_or_name, struct cni_error *err);

/* The first list of that name in the directory: *.conflist in the order of their names,
 * then *.conf and *.json together. A broken file before it is an error. */
int conflist_find_in_directory(struct conflist *list, const char *directory, const char *name,
			       struct cni_error *err);

int conflist_read_file(struct conflist *list, const char *path, struct cni_error *err);

/* Takes a list's text. `directory` holds the folder of further plugins, named as the
 * network; NULL: there is none. `what` names the text in messages. */
int conflist_parse(struct conflist *list, const char *text, size_t length, const char *directory,
		   const char *what, struct cni_error *err);

/* The configuration of a single plugin, wrapped as a list of one. */
int conflist_parse_single(struct conflist *list, const char *text, size_t length, const char *what,
			  struct cni_error *err);

/* Whether the list's version is this one or newer. */
bool conflist_version_reaches(const struct conflist *list, const char *version);

/* Whether one of the list's plugins declares the capability. */
bool conflist_has_capability(const struct conflist *list, const char *capability);

void conflist_release(struct conflist *list);

/* Never NULL for a plugin of a conflist. */
const char *plugin_type(const json_t *plugin);
bool plugin_has_capability(const json_t *plugin, const char *capability);
/* What conflist_parse() asks of each plugin: an object, a type, capabilities of
 * booleans. Code 7. */
int plugin_validate(const json_t *plugin, const char *what, struct cni_error *err);
/* The same of a file of its own, which may be a list in the wrong place. */
int plugin_validate_single(const json_t *plugin, const char *what, struct cni_error *err);

#endif

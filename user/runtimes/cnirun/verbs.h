/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * verbs.h - the verbs, whose table is in main.c, and their options: the command line of a verb,
 * completed from the environment.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/runtime_conf.h"

/* Which options a verb has. */
enum option_set {
	OPTIONS_ATTACHMENT = 1 << 0, /* and the operand NETNS */
	OPTIONS_RUN = 1 << 1,        /* it runs plugins */
	OPTIONS_CACHE = 1 << 2,
};

/* Begins as {0}. */
struct options {
	bool help;
	const char *conflist;
	struct runtime_conf conf; /* owns its netns, container ID and JSON values */
	json_t *demanded;         /* the capability arguments that the command line names */
	json_t *port_mappings;    /* those of -p */
};

/* Reads them; argv[0] is the verb. CNI_ERROR_INVALID_ENVIRONMENT, and CNI_ERROR_DECODE for JSON in
 * an option. */
int options_parse(struct options *options, int argc, char **argv, unsigned int set,
		  struct cni_error *err);
void options_release(struct options *options);

/* Prints the options of the set with their help to stdout. */
void options_print_help(unsigned int set);

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

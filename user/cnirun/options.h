/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * options.h - the command line of a verb, completed from the environment.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "cnirun/runtime_conf.h"

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

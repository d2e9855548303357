/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* verbs.h - the commands for people: their table, and running one. */
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "lib/error.h"
#include "operator/options.h"

#define ANY_NUMBER 1000000

/* Runs a verb; `operands` ends with NULL. Returns the exit status; -1 and an error: it becomes 1,
 * or EX_USAGE for CNI_ERROR_INVALID_ENVIRONMENT. */
typedef int verb_run(const struct options *options, char *const *operands, struct cni_error *err);

struct verb {
	const char *name;
	const char *operands; /* "": it takes none */
	int min_operands, max_operands;
	unsigned int options; /* a set of enum option_set */
	verb_run *run;
	const char *group;   /* of the first of a group; NULL: as the one before */
	const char *summary; /* one line */
	const char *help;    /* sentences, the last one without a full stop */
};

extern const struct verb verbs[];
extern const size_t verb_count;

verb_run verb_list, verb_flows, verb_stats, verb_doctor, verb_trace, verb_who, verb_repair,
	verb_migrate, verb_upgrade, verb_drop_offload, verb_support, verb_install, verb_uninstall;

/* Runs the verb words[0]; the words end with NULL. Prints the error. Returns the exit status:
 * EX_USAGE for a verb, option or operand that does not exist. */
int operator_run(int count, char **words);
void operator_print_help(FILE *file);

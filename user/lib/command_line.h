/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* command_line.h - the options of a command line, by a table of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/error.h"

#define COMMAND_LINE_OPTIONS 64

struct command_option {
	unsigned int set; /* bits: of which verbs; 0: of every one */
	char letter;      /* 0: none; 'h' is the only one without an argument */
	const char *name;
	const char *argument; /* NULL: none; "[=S]": may be left out */
	const char *help;     /* without a line feed at its end */
	/* `value` is NULL where there is no argument. CNI_ERROR_INVALID_ENVIRONMENT, and others. */
	int (*set_value)(void *options, const char *value, struct cni_error *err);
	/* Without set_value(): the member for the argument, or the bool that becomes true. Of an
	 * argument "a|b|c" it is an int, and becomes 1 for "a"; of "SECONDS" an unsigned int, 0 to
	 * 999999 (eleven days). */
	size_t member;
	/* Not 0: the member is a uint32_t, a number from 1 to this; without an argument that may be
	 * left out it becomes `otherwise`. */
	uint32_t most, otherwise;
};

struct command_line {
	const char *program; /* argv[0] is its verb */
	const struct command_option *table;
	int count;        /* at most COMMAND_LINE_OPTIONS */
	unsigned int set; /* only the options of this set exist */
};

/* Reads the options behind argv[0] into *options, and moves the operands behind them. Returns the
 * index of the first operand, or -1 and what set_value() sets, or CNI_ERROR_INVALID_ENVIRONMENT for
 * an option that does not exist or lacks its argument. */
int command_line_read(const struct command_line *line, int argc, char **argv, void *options,
		      struct cni_error *err);

/* Digits and nothing else, from 1 to `most`. */
bool command_line_parse_number(const char *text, uint32_t most, uint32_t *number);

/* Prints the options of the set with their help. */
void command_line_print_help(const struct command_line *line, FILE *file);
/* Prints the text behind that many blanks, in lines of up to 95 characters. */
void command_line_print_indented(const char *text, int blanks, FILE *file);

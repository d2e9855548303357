/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.h - rows by one description of their columns: a table for people, or with --json an item a
 * row.
 */
#ifndef OPERATOR_PRINT_OUTPUT_H
#define OPERATOR_PRINT_OUTPUT_H

#include "operator/options.h"
#include "operator/print/items.h"
#include "operator/print/table.h"

/* Begins as {.options}. */
struct output {
	const struct options *options;
	struct table table;
	struct items items;
	json_t *item;             /* the row that is being made */
	size_t cell_count;        /* of that */
	struct cni_error failure; /* the first */
};

/* What follows has these columns: another table behind an empty line, or items of the same list. */
void output_begin(struct output *output, const struct table_column *columns, size_t column_count);

/* The next cell. Steals the JSON, which is for a column with a key. Texts are printable. */
void output_cell(struct output *output, const char *text, json_t *json);
/* NULL: "" and null */
void output_text(struct output *output, const char *text);
/* "! full" and "full"; NULL: "" and null */
void output_remark(struct output *output, const char *remark);
/* "48,113" and 48113 */
void output_number(struct output *output, uint64_t number);

/* Prints the rest. Steals the summary of items, which may be NULL. CNI_ERROR_IO. */
int output_end(struct output *output, json_t *summary, struct cni_error *err);
void output_release(struct output *output);

#define cleanup_output __attribute__((cleanup(output_release)))

#endif

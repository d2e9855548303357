/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * output.h - rows by one description of their columns: a table for people, or with --json an item a
 * row.
 */
#pragma once

#include "operator/options.h"
#include "operator/items.h"
#include "operator/print/table.h"

/* Begins as {.options}. */
struct output {
	const struct options *options;
	struct table table;
	struct items items;
	size_t cell_count; /* with --json: in the row that is being made */
	struct cni_error failure;
};

/* What follows has these columns: another table behind an empty line, or items of the same list. */
void output_begin(struct output *output, const struct table_column *columns, size_t column_count);

/* Adds the next cell: to a table the text, which is printable, to an item the JSON; NULL: null. The
 * functions below add one cell, too. */
void output_cell(struct output *output, const char *text, const char *json);
/* Steals the JSON; NULL: a text of it was not UTF-8. */
void output_json(struct output *output, const char *text, json_t *json);
/* NULL: "" and null */
void output_text(struct output *output, const char *text);
/* "! full" and "full"; NULL: "" and null */
void output_remark(struct output *output, const char *remark);
/* "48,113" and 48113 */
void output_number(struct output *output, uint64_t number);
/* "192.0.2.1:80", unless there is another text, and {"address":"192.0.2.1","port":80}; port 0, of a
 * protocol without ports: "192.0.2.1" */
void output_endpoint(struct output *output, const char *text,
		     const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

/* Prints the rest. Steals the summary of items, which may be NULL. CNI_ERROR_IO. */
int output_end(struct output *output, json_t *summary, struct cni_error *err);
void output_release(struct output *output);

#define cleanup_output __attribute__((cleanup(output_release)))

/* {"address":"192.0.2.1","port":80} */
json_t *json_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port);

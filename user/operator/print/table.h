/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * table.h - rows in aligned columns, for people.
 *
 * The first TABLE_SAMPLE rows say how wide the columns are. Those behind them are printed one by
 * one, so that memory does not grow with the table; a cell that is wider moves the rest of its row.
 *
 * Where lines are limited nothing is lost unseen: a text that is shortened ends with '>', a remark
 * without room has a line of its own, and columns without room are named below the table.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "lib/error.h"

#define TABLE_SAMPLE 1000
#define TABLE_COLUMNS 16

enum table_style {
	TABLE_LEFT,
	TABLE_RIGHT,
	TABLE_REMARK,         /* in the colour of a warning */
	TABLE_HIDDEN,         /* its cells are not printed */
	TABLE_EXTRA = 1 << 3, /* and one of the others: only where the table has_extra */
	TABLE_SPARE = 1 << 4, /* ... the first to be left out for want of room */
};

struct table_column {
	const char *title;
	enum table_style style;
	const char *key; /* of an item of JSON (output.h); NULL: not in it; the first is */
};

/* Begins with table_begin(). */
struct table {
	FILE *file;
	const struct table_column *columns;
	size_t column_count;
	size_t limit; /* characters in a line; 0: as many as there are */
	bool colors;
	bool has_extra;
	size_t widths[TABLE_COLUMNS];
	bool left_out[TABLE_COLUMNS]; /* for want of room */
	char *cells; /* texts with their NULs, of the rows that are not printed yet */
	size_t length, capacity;
	size_t cell_count; /* in the row that is being made */
	size_t rows;
};

void table_begin(struct table *table, FILE *file, const struct table_column *columns,
		 size_t column_count);
/* Adds the next cell. After the last one of a row the next row begins. Untrusted text must have
 * been made printable. */
void table_cell(struct table *table, const char *text);
/* Writes the rest, and the titles also where there is no row. */
void table_end(struct table *table);
void table_release(struct table *table);

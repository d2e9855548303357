/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table.c - rows in aligned columns, for people. */
#include "operator/print/table.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

#define FIRST_CAPACITY 4096
#define GAP 2 /* blanks between columns */
#define BOLD "\033[1m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* Of UTF-8: bytes that do not continue a character. */
static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += ((unsigned char)*text & 0xc0) != 0x80;
	return count;
}

void table_begin(struct table *table, FILE *file, const struct table_column *columns,
		 size_t column_count)
{
	*table = (struct table){.file = file, .columns = columns, .column_count = column_count};
	for (size_t i = 0; i < column_count; i++)
		table->widths[i] = count_characters(columns[i].title);
}

/* Writes at most `limit` characters, and shows by the last one that there are more. Returns how
 * many it wrote. */
static size_t write_text(FILE *file, const char *text, size_t limit)
{
	size_t length = count_characters(text), count = 0, bytes = 0;

	if (length <= limit) {
		fputs_unlocked(text, file);
		return length;
	}
	for (; text[bytes]; bytes++) {
		bool begins = ((unsigned char)text[bytes] & 0xc0) != 0x80;

		if (begins && count + 1 >= limit)
			break;
		count += begins;
	}
	fwrite_unlocked(text, 1, bytes, file);
	putc_unlocked('>', file);
	return limit;
}

static size_t write_blanks(FILE *file, size_t count)
{
	for (size_t i = 0; i < count; i++)
		putc_unlocked(' ', file);
	return count;
}

/* `style`: an escape sequence, or "". Blanks are written in front of the next text only, so that no
 * line ends with them. */
static const char *write_row(struct table *table, const char *cells, const char *style)
{
	size_t left = table->limit ? table->limit : SIZE_MAX, blanks = 0;

	for (size_t i = 0; i < table->column_count; i++, cells += strlen(cells) + 1) {
		enum table_style alignment = table->columns[i].style;
		size_t width = count_characters(cells);
		size_t padding = table->widths[i] > width ? table->widths[i] - width : 0;
		const char *escape = alignment == TABLE_REMARK && table->colors ? YELLOW : style;

		if (alignment == TABLE_HIDDEN)
			continue;
		if (alignment == TABLE_RIGHT)
			blanks += padding;
		if (*cells && blanks < left) {
			left -= write_blanks(table->file, blanks);
			fputs_unlocked(escape, table->file);
			left -= write_text(table->file, cells, left);
			fputs_unlocked(*escape ? PLAIN : "", table->file);
			blanks = GAP;
		} else {
			blanks += width + GAP;
		}
		if (alignment != TABLE_RIGHT)
			blanks += padding;
	}
	putc_unlocked('\n', table->file);
	return cells;
}

static void write_titles(struct table *table)
{
	char titles[TABLE_COLUMNS * 32], *end = titles;

	for (size_t i = 0; i < table->column_count; i++)
		end += snprintf(end, 32, "%s", table->columns[i].title) + 1;
	write_row(table, titles, table->colors ? BOLD : "");
}

/* All rows that are kept. */
static void write_rows(struct table *table)
{
	const char *cells = table->cells, *end = table->cells + table->length;

	while (cells < end)
		cells = write_row(table, cells, "");
	table->length = 0;
}

static void end_row(struct table *table)
{
	table->cell_count = 0;
	table->rows++;
	if (table->rows < TABLE_SAMPLE)
		return;
	if (table->rows == TABLE_SAMPLE)
		write_titles(table);
	write_rows(table);
}

static void make_room(struct table *table, size_t size)
{
	size_t capacity = table->capacity ? table->capacity : FIRST_CAPACITY;

	while (capacity < table->length + size)
		capacity *= 2;
	if (capacity == table->capacity)
		return;
	table->cells = need(realloc(table->cells, capacity));
	table->capacity = capacity;
}

void table_cell(struct table *table, const char *text)
{
	size_t size = strlen(text) + 1, *width = &table->widths[table->cell_count];

	make_room(table, size);
	memcpy(table->cells + table->length, text, size);
	table->length += size;
	if (table->rows < TABLE_SAMPLE && *width < count_characters(text))
		*width = count_characters(text);
	if (++table->cell_count == table->column_count)
		end_row(table);
}

void table_printf(struct table *table, const char *format, ...)
{
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	table_cell(table, text);
}

int table_end(struct table *table, struct cni_error *err)
{
	if (table->rows < TABLE_SAMPLE) {
		write_titles(table);
		write_rows(table);
	}
	if (!fflush(table->file) && !ferror(table->file))
		return 0;
	return cni_error_set(err, CNI_ERROR_IO, "cannot write to standard output: %s",
			     strerror(errno));
}

void table_release(struct table *table)
{
	free(table->cells);
	table->cells = NULL;
}

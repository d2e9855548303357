/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table.c - rows in aligned columns, for people. */
#include "operator/print/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

#define FIRST_CAPACITY 4096
#define GAP 2    /* blanks between columns */
#define INDENT 2 /* of a remark on a line of its own */
/* What is left of a text, with the mark that there is more, before a column gives way. */
#define SHORTEST 14
#define BOLD "\033[1m"
#define YELLOW "\033[33m"
#define PLAIN "\033[0m"

/* In UTF-8 such a byte does not continue a character. */
static bool begins_character(char byte)
{
	return ((unsigned char)byte & 0xc0) != 0x80;
}

/* How many bytes so many characters take, or the whole text where it has no more. */
static size_t bytes_of(const char *text, size_t characters)
{
	size_t bytes = 0;

	for (; text[bytes]; bytes++)
		if (begins_character(text[bytes]) && !characters--)
			break;
	return bytes;
}

static size_t count_characters(const char *text)
{
	size_t count = 0;

	for (; *text; text++)
		count += begins_character(*text);
	return count;
}

void table_begin(struct table *table, FILE *file, const struct table_column *columns,
		 size_t column_count)
{
	*table = (struct table){.file = file, .columns = columns, .column_count = column_count};
	for (size_t i = 0; i < column_count; i++)
		table->widths[i] = count_characters(columns[i].title);
}

/* Writes at most `limit` characters, of which the last one shows that there are more. Returns how
 * many it wrote. */
static size_t write_text(FILE *file, const char *text, size_t limit)
{
	size_t length = count_characters(text);

	if (length <= limit) {
		fputs_unlocked(text, file);
		return length;
	}
	fwrite_unlocked(text, 1, bytes_of(text, limit - 1), file);
	putc_unlocked('>', file);
	return limit;
}

static size_t write_blanks(FILE *file, size_t count)
{
	for (size_t i = 0; i < count; i++)
		putc_unlocked(' ', file);
	return count;
}

/* How many bytes of the text fit, whole words where one does. */
static size_t count_fitting(const char *text, size_t room)
{
	size_t bytes = bytes_of(text, room), end = text[bytes] ? bytes : 0;

	while (end && text[end] != ' ')
		end--;
	return end ? end : bytes;
}

static void write_wrapped(const struct table *table, const char *text, size_t indent,
			  const char *style)
{
	size_t room = table->limit > indent ? table->limit - indent : 1;

	while (*text) {
		size_t bytes = count_fitting(text, room);

		write_blanks(table->file, indent);
		fputs_unlocked(style, table->file);
		fwrite_unlocked(text, 1, bytes, table->file);
		fputs_unlocked(*style ? PLAIN : "", table->file);
		putc_unlocked('\n', table->file);
		text += bytes;
		text += strspn(text, " ");
	}
}

static bool is_shown(const struct table *table, size_t column)
{
	unsigned int style = table->columns[column].style;

	return style != TABLE_HIDDEN && !table->left_out[column] &&
	       (table->has_extra || !(style & TABLE_EXTRA));
}

static enum table_style alignment_of(const struct table *table, size_t column)
{
	return table->columns[column].style & ~(unsigned int)(TABLE_EXTRA | TABLE_SPARE);
}

/* What remarks are written behind. */
static bool has_width(const struct table *table, size_t column)
{
	return is_shown(table, column) && alignment_of(table, column) != TABLE_REMARK;
}

static size_t count_needed(const struct table *table, const size_t widths[TABLE_COLUMNS])
{
	size_t needed = 0;

	for (size_t i = 0; i < table->column_count; i++)
		if (has_width(table, i))
			needed += widths[i] + (needed ? GAP : 0);
	return needed;
}

/* Of those with all these bits, from the last one on, until the others have room. */
static void leave_out(struct table *table, unsigned int style)
{
	for (size_t i = table->column_count - 1;
	     i && count_needed(table, table->widths) > table->limit; i--)
		if (has_width(table, i) && (table->columns[i].style & style) == style)
			table->left_out[i] = true;
}

/* Texts give way first, and then whole columns, from the last one on. Texts get back what these
 * leave. */
static void fit(struct table *table)
{
	size_t whole[TABLE_COLUMNS], left;
	bool any = true;

	memcpy(whole, table->widths, sizeof(whole));
	if (!table->limit || count_needed(table, whole) <= table->limit)
		return;
	for (size_t i = 0; i < table->column_count; i++)
		if (alignment_of(table, i) == TABLE_LEFT && table->widths[i] > SHORTEST)
			table->widths[i] = SHORTEST;
	leave_out(table, TABLE_SPARE);
	leave_out(table, 0);
	left = count_needed(table, table->widths);
	for (left = table->limit > left ? table->limit - left : 0; left && any;) {
		any = false;
		for (size_t i = 0; i < table->column_count && left; i++) {
			if (!has_width(table, i) || table->widths[i] >= whole[i])
				continue;
			table->widths[i]++;
			left--;
			any = true;
		}
	}
}

/* `style`: an escape sequence, or "". Blanks are written in front of the next text only, so that no
 * line ends with them. */
static const char *write_row(struct table *table, const char *cells, const char *style)
{
	size_t left = table->limit ? table->limit : SIZE_MAX, blanks = 0;
	const char *remark = NULL;

	for (size_t i = 0; i < table->column_count; i++, cells += strlen(cells) + 1) {
		enum table_style alignment = alignment_of(table, i);
		size_t width = count_characters(cells),
		       most = table->limit && alignment != TABLE_REMARK ? table->widths[i] : width;
		size_t padding = table->widths[i] > width ? table->widths[i] - width : 0;
		const char *escape = alignment == TABLE_REMARK && table->colors ? YELLOW : style;

		if (!is_shown(table, i))
			continue;
		if (alignment == TABLE_REMARK && blanks + width > left) {
			remark = cells;
			continue;
		}
		if (alignment == TABLE_RIGHT)
			blanks += padding;
		if (*cells && blanks < left) {
			left -= write_blanks(table->file, blanks);
			fputs_unlocked(escape, table->file);
			left -= write_text(table->file, cells, most < left ? most : left);
			fputs_unlocked(*escape ? PLAIN : "", table->file);
			blanks = GAP;
		} else {
			blanks += width + GAP;
		}
		if (alignment != TABLE_RIGHT)
			blanks += padding;
	}
	putc_unlocked('\n', table->file);
	if (remark)
		write_wrapped(table, remark, INDENT, table->colors ? YELLOW : "");
	return cells;
}

static void write_titles(struct table *table)
{
	char titles[TABLE_COLUMNS * 32], *end = titles;

	fit(table);
	for (size_t i = 0; i < table->column_count; i++)
		end += snprintf(end, 32, "%s", table->columns[i].title) + 1;
	write_row(table, titles, table->colors ? BOLD : "");
}

/* Names the columns for which there was no room. */
static void write_left_out(const struct table *table)
{
	char names[TABLE_COLUMNS * 32 + 64] = "", *end = names;

	for (size_t i = 0; i < table->column_count; i++)
		if (table->left_out[i])
			end += snprintf(end, 32, "%s%s", end == names ? "" : ", ",
					table->columns[i].title);
	if (end == names)
		return;
	snprintf(end, 64, ": no room in this terminal for these columns");
	write_wrapped(table, names, 0, "");
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
	table->cells = or_exit(realloc(table->cells, capacity));
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

void table_end(struct table *table)
{
	if (table->rows < TABLE_SAMPLE) {
		write_titles(table);
		write_rows(table);
	}
	write_left_out(table);
}

void table_release(struct table *table)
{
	free(table->cells);
	table->cells = NULL;
}

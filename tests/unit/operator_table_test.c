/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* operator_table_test.c - tables for people, and JSON item by item. */
#include "cni_testing.h"

#include <stdio.h>

#include "operator/items.h"
#include "operator/print/table.h"

static const struct table_column columns[] = {{"NAME", TABLE_LEFT, NULL},
					      {"N", TABLE_RIGHT, NULL},
					      {"SECRET", TABLE_HIDDEN, NULL},
					      {"", TABLE_REMARK, NULL}};

static char *text;
static size_t length;

static void begin(struct table *table)
{
	FILE *file = open_memstream(&text, &length);

	assert_non_null(file);
	table_begin(table, file, columns, 4);
}

static void add(struct table *table, const char *name, int number, const char *remark)
{
	char digits[16];

	snprintf(digits, sizeof(digits), "%d", number);
	table_cell(table, name);
	table_cell(table, digits);
	table_cell(table, "not shown");
	table_cell(table, remark);
}

static const char *finish(struct table *table)
{
	table_end(table);
	assert_int_equal(fclose(table->file), 0);
	table_release(table);
	return text;
}

TEST(test_alignment, "alignment")
{
	struct table table;

	begin(&table);
	add(&table, "a", 1, "");
	add(&table, "\xc3\xa4\xc3\xb6 long", 12345, "! odd");
	add(&table, "", 7, "x");
	assert_string_equal(finish(&table), "NAME         N\n"
					    "a            1\n"
					    "\xc3\xa4\xc3\xb6 long  12345  ! odd\n"
					    "             7  x\n");
	free(text);
}

TEST(test_titles_alone, "titles alone")
{
	struct table table;

	begin(&table);
	assert_string_equal(finish(&table), "NAME  N\n");
	free(text);
}

TEST(test_limit, "limit")
{
	struct table table;

	begin(&table);
	table.limit = 10;
	add(&table, "\xc3\xa4\xc3\xb6\xc3\xbc", 12345, "! odd");
	/* A number is never cut: it would look like another number. */
	assert_string_equal(finish(&table), "NAME\n\xc3\xa4\xc3\xb6\xc3\xbc\n  ! odd\n"
					    "N: no room\nin this\nterminal\nfor these\ncolumns\n");
	free(text);
}

/* Texts are shortened as far as it is needed, and by turns. */
TEST(test_shortened, "shortened")
{
	struct table table;

	begin(&table);
	table.limit = 24;
	add(&table, "2001:db8:1234:5678::1/64", 12345, "");
	assert_string_equal(finish(&table), "NAME                   N\n2001:db8:1234:56>  12345\n");
	free(text);
}

TEST(test_colors, "colors")
{
	struct table table;

	begin(&table);
	table.colors = true;
	add(&table, "a", 1, "odd");
	assert_string_equal(finish(&table), "\033[1mNAME\033[0m  \033[1mN\033[0m\n"
					    "a     1  \033[33modd\033[0m\n");
	free(text);
}

/* Rows behind the sample are printed at once, and may be wider. */
TEST(test_sample, "sample")
{
	struct table table;
	size_t most = 0;

	begin(&table);
	for (int i = 0; i < 3 * TABLE_SAMPLE; i++) {
		add(&table, i < TABLE_SAMPLE ? "a" : "wider than the others", i, "");
		if (table.capacity > most)
			most = table.capacity;
		assert_true(i < TABLE_SAMPLE || !table.length);
	}
	assert_true(most < 64 * TABLE_SAMPLE);
	finish(&table);
	assert_non_null(strstr(text, "NAME    N\na       0\n"));
	assert_non_null(strstr(text, "\na     999\nwider than the others  1000\n"));
	free(text);
}

TEST(test_items, "items")
{
	struct items items = {0};
	json_t *whole;

	items.file = open_memstream(&text, &length);
	for (int i = 1; i <= 3; i++) {
		assert_int_equal(items_next(&items, &fault), 0);
		fprintf(items.file, "{\"n\":%d}", i);
	}
	assert_int_equal(items_end(&items, json_pack("{s:s}", "name", "\xc3\xa4\x1b"), &fault), 0);
	fclose(items.file);
	assert_null(strchr(text, '\x1b'));
	whole = json_loads(text, 0, NULL);
	assert_non_null(whole);
	assert_int_equal(json_integer_value(json_object_get(whole, "version")), 1);
	assert_int_equal(json_array_size(json_object_get(whole, "items")), 3);
	assert_non_null(json_object_get(whole, "summary"));
	json_decref(whole);
	free(text);
}

TEST(test_no_items, "no items")
{
	struct items items = {0};

	items.file = open_memstream(&text, &length);
	assert_int_equal(items_end(&items, NULL, &fault), 0);
	fclose(items.file);
	assert_non_null(strstr(text, "\"items\":[]}\n"));
	free(text);
}

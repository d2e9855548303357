/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* output.c - rows by one description of their columns. */
#include "operator/print/output.h"

#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/print/format.h"

void output_begin(struct output *output, const struct table_column *columns, size_t column_count)
{
	struct table *table = &output->table;
	cleanup_error struct cni_error seen_at_the_end = {0};

	if (table->file && !output->options->json) {
		table_end(table, &seen_at_the_end);
		putchar('\n');
	}
	table_release(table);
	table_begin(table, stdout, columns, column_count);
	table->limit = terminal_width();
	table->colors = terminal_has_color(output->options->color);
	output->items.file = stdout;
}

void output_cell(struct output *output, const char *text, json_t *json)
{
	const struct table *table = &output->table;
	const char *key = table->columns[output->cell_count].key;

	if (!output->options->json) {
		json_decref(json);
		table_cell(&output->table, text);
		return;
	}
	if (!output->cell_count)
		output->item = or_exit(json_object());
	if (!key)
		json_decref(json);
	else if (json_object_set_new(output->item, key, json))
		items_add(&output->items, NULL, &output->failure);
	if (++output->cell_count < table->column_count)
		return;
	output->cell_count = 0;
	if (!cni_error_is_set(&output->failure))
		items_add(&output->items, TAKE(output->item), &output->failure);
}

void output_text(struct output *output, const char *text)
{
	output_cell(output, text ? text : "", text ? json_string(text) : json_null());
}

void output_remark(struct output *output, const char *remark)
{
	cleanup_free char *text = remark ? cni_format("! %s", remark) : NULL;

	output_cell(output, text ? text : "", remark ? json_string(remark) : json_null());
}

void output_number(struct output *output, uint64_t number)
{
	char text[NUMBER_TEXT_SIZE];

	output_cell(output, format_number(number, text), json_integer((json_int_t)number));
}

int output_end(struct output *output, json_t *summary, struct cni_error *err)
{
	output->items.file = stdout;
	if (output->options->json && !cni_error_is_set(&output->failure))
		return items_end(&output->items, summary, err);
	json_decref(summary);
	if (output->options->json) {
		*err = output->failure;
		output->failure = (struct cni_error){0};
		return -1;
	}
	return output->table.file ? table_end(&output->table, err) : 0;
}

void output_release(struct output *output)
{
	table_release(&output->table);
	json_decref(output->item);
	cni_error_release(&output->failure);
}

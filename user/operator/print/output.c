/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* output.c - rows by one description of their columns. */
#include "operator/print/output.h"

#include <jansson.h>
#include <string.h>

#include "lib/address.h"
#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "operator/print/format.h"

#define JSON_ENDPOINT_SIZE (ENDPOINT_TEXT_SIZE + 32)

json_t *json_endpoint(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	return json_pack("{s:s, s:i}", "address", cni_address_format(address, text), "port",
			 (int)port);
}

void output_begin(struct output *output, const struct table_column *columns, size_t column_count)
{
	struct table *table = &output->table;

	if (table->file && !output->options->json) {
		table_end(table);
		putchar('\n');
	}
	table_release(table);
	table_begin(table, stdout, columns, column_count);
	table->limit = terminal_width();
	table->colors = terminal_has_color(output->options->color);
	output->items.file = stdout;
}

/* False: the column is in no item. Written as it comes, and not by jansson, with which 500,000
 * items take five times as long. */
static bool begin_value(struct output *output)
{
	const char *key = output->table.columns[output->cell_count].key;
	FILE *file = output->items.file;

	if (!output->cell_count)
		items_next(&output->items, &output->failure);
	if (!key)
		return false;
	fputs_unlocked(output->cell_count ? ",\"" : "{\"", file);
	fputs_unlocked(key, file);
	fputs_unlocked("\":", file);
	return true;
}

static void end_value(struct output *output)
{
	if (++output->cell_count < output->table.column_count)
		return;
	output->cell_count = 0;
	putc_unlocked('}', output->items.file);
}

void output_cell(struct output *output, const char *text, const char *json)
{
	if (!output->options->json) {
		table_cell(&output->table, text);
		return;
	}
	if (begin_value(output))
		fputs_unlocked(json ? json : "null", output->items.file);
	end_value(output);
}

void output_json(struct output *output, const char *text, json_t *json)
{
	cleanup_json json_t *owned = json;
	cleanup_free char *dumped = NULL;

	if (owned)
		dumped = json_dumps(owned, JSON_COMPACT | JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
	else
		cni_error_set(&output->failure, CNI_ERROR_IO,
			      "cannot print as JSON what is not UTF-8: leave out --json");
	output_cell(output, text, dumped);
}

/* Whether it stands in JSON as it is. */
static bool is_plain(const char *text)
{
	while (*text >= ' ' && *text < 0x7f && *text != '"' && *text != '\\')
		text++;
	return !*text;
}

void output_text(struct output *output, const char *text)
{
	FILE *file = output->items.file;

	if (!output->options->json || !text) {
		output_cell(output, text ? text : "", NULL);
	} else if (!is_plain(text)) {
		output_json(output, text, json_string(text));
	} else {
		if (begin_value(output)) {
			putc_unlocked('"', file);
			fputs_unlocked(text, file);
			putc_unlocked('"', file);
		}
		end_value(output);
	}
}

void output_remark(struct output *output, const char *remark)
{
	bool is_marked = remark && !output->options->json;
	cleanup_free char *text = is_marked ? cni_format("! %s", remark) : NULL;

	output_text(output, is_marked ? text : remark);
}

void output_number(struct output *output, uint64_t number)
{
	char text[NUMBER_TEXT_SIZE], json[NUMBER_TEXT_SIZE];

	snprintf(json, sizeof(json), "%llu", (unsigned long long)number);
	output_cell(output, format_number(number, text), json);
}

void output_endpoint(struct output *output, const char *text,
		     const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port)
{
	char bare[CNI_ADDRESS_TEXT_SIZE], made[JSON_ENDPOINT_SIZE] = "";

	if (output->options->json)
		snprintf(made, sizeof(made), "{\"address\":\"%s\",\"port\":%u}",
			 cni_address_format(address, bare), port);
	else if (!text && port)
		format_endpoint(address, port, made);
	else if (!text) /* of a protocol without ports */
		cni_address_format(address, made);
	output_cell(output, text ? text : made, made);
}

int output_end(struct output *output, json_t *summary, struct cni_error *err)
{
	output->items.file = stdout;
	if (output->options->json && !cni_error_is_set(&output->failure))
		return items_end(&output->items, summary, err);
	json_decref(summary);
	if (output->options->json)
		return cni_error_move(err, &output->failure);
	if (output->table.file)
		table_end(&output->table);
	return items_flush(stdout, err);
}

void output_release(struct output *output)
{
	table_release(&output->table);
	cni_error_release(&output->failure);
}

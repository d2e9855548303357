/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list.c - list: what the cache has for a network. */
#include "cnirun/verbs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/json.h"
#include "lib/text.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"

/* "" for what is no string, as anyone may have written the cache's files. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(cni_json_get(object, key));

	return text ? text : "";
}

enum column { CONTAINER, INTERFACE, NETNS, ADDRESSES, PORTS, COLUMNS };

static void write_address(FILE *cell, const json_t *object, const char *key)
{
	const char *address = text_of(object, key);

	if (*address)
		fprintf(cell, "%s%s", ftell(cell) > 0 ? "," : "", address);
}

/* "192.0.2.1:8080->80/tcp" */
static void write_ports(FILE *cell, const json_t *capability_args)
{
	const json_t *mapping;
	size_t index;

	json_array_foreach (cni_json_get(capability_args, "portMappings"), index, mapping) {
		const char *address = text_of(mapping, "hostIP");
		bool ipv6 = strchr(address, ':');

		fprintf(cell, "%s%s%s%s%s", index ? "," : "", ipv6 ? "[" : "", address,
			ipv6 ? "]" : "", *address ? ":" : "");
		fprintf(cell, "%" JSON_INTEGER_FORMAT "->%" JSON_INTEGER_FORMAT "/%s",
			json_integer_value(cni_json_get(mapping, "hostPort")),
			json_integer_value(cni_json_get(mapping, "containerPort")),
			text_of(mapping, "protocol"));
	}
}

static void write_cell(FILE *cell, const struct cache_entry *entry, enum column column)
{
	const json_t *address, *result = entry->result;
	size_t index;

	switch (column) {
	case CONTAINER:
		fputs(entry->container_id, cell);
		break;
	case INTERFACE:
		fputs(entry->ifname, cell);
		break;
	case NETNS:
		if (entry->netns && *entry->netns)
			fprintf(cell, "%s%s", entry->netns,
				netns_is_gone(entry->netns) ? "(gone)" : "");
		break;
	case ADDRESSES:
		write_address(cell, cni_json_get(result, "ip4"), "ip");
		write_address(cell, cni_json_get(result, "ip6"), "ip");
		json_array_foreach (cni_json_get(result, "ips"), index, address)
			write_address(cell, address, "address");
		break;
	default:
		write_ports(cell, entry->capability_args);
	}
	/* Every line has as many words as the title line. */
	if (!ftell(cell))
		fputc('-', cell);
}

/* The titles and a row for each entry. */
static json_t *make_rows(const struct cache_entries *entries)
{
	json_t *rows =
		json_pack("[[sssss]]", "CONTAINER", "INTERFACE", "NETNS", "ADDRESSES", "PORTS");

	for (size_t i = 0; i < entries->count; i++) {
		json_t *row = json_array();

		json_array_append_new(rows, row);
		for (int column = 0; column < COLUMNS; column++) {
			cleanup_free char *text = NULL;
			size_t size;
			FILE *cell = or_exit(open_memstream(&text, &size));

			write_cell(cell, &entries->entries[i], column);
			or_exit(fclose(cell) ? NULL : text);
			/* Line feeds, too, which would begin another row. */
			cni_printable(text, "");
			json_array_append_new(row, json_string(text));
		}
	}
	return rows;
}

static int print_table(const struct cache_entries *entries, struct cni_error *err)
{
	cleanup_json json_t *rows = make_rows(entries);
	size_t widths[COLUMNS] = {0};
	const json_t *row, *cell;
	size_t index, column;

	json_array_foreach (rows, index, row) {
		json_array_foreach (row, column, cell) {
			if (json_string_length(cell) > widths[column])
				widths[column] = json_string_length(cell);
		}
	}
	widths[PORTS] = 0; /* the last column needs no padding */
	json_array_foreach (rows, index, row) {
		json_array_foreach (row, column, cell)
			output_text("%-*s%s", (int)widths[column], json_string_value(cell),
				    column == PORTS ? "\n" : " ");
	}
	return output_flush(err);
}

int verb_list(const struct options *options, const struct conflist *list, struct cni_error *err)
{
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_json json_t *all = json_array();

	if (cache_read_all(&entries, list->name, options->conf.cache_directory, err))
		return -1;
	if (!options->json)
		return print_table(&entries, err);
	/* The cache's own objects, without the conflist that each of them has. */
	for (size_t i = 0; i < entries.count; i++) {
		json_object_del(entries.entries[i].root, "config");
		json_array_append(all, entries.entries[i].root);
	}
	return output_json(all, err);
}

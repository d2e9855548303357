/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list.c - `bpf-portmap list`: the mapped ports, and who is only masqueraded. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "net/address_list.h"
#include "operator/print/describe_json.h"
#include "operator/print/format.h"
#include "operator/print/items.h"
#include "operator/view/mappings.h"
#include "operator/print/table.h"
#include "operator/print/terminal.h"
#include "operator/verbs.h"

enum column {
	COLUMN_HOST,
	COLUMN_PROTOCOL,
	COLUMN_CONTAINER,
	COLUMN_TO,
	COLUMN_FLOWS,
	COLUMN_NEW,
	COLUMN_TOTAL,
	COLUMN_SINCE,
	COLUMN_NETWORK,
	COLUMN_INTERFACE,
	COLUMN_ID,
	COLUMN_REMARK,
	COLUMN_COUNT,
};

static const struct table_column all_columns[COLUMN_COUNT] = {
	[COLUMN_HOST] = {"HOST", TABLE_LEFT},
	[COLUMN_PROTOCOL] = {"PROTO", TABLE_LEFT},
	[COLUMN_CONTAINER] = {"CONTAINER", TABLE_LEFT},
	[COLUMN_TO] = {"TO", TABLE_LEFT},
	[COLUMN_FLOWS] = {"FLOWS", TABLE_RIGHT},
	[COLUMN_NEW] = {"NEW", TABLE_RIGHT},
	[COLUMN_TOTAL] = {"TOTAL", TABLE_RIGHT},
	[COLUMN_SINCE] = {"SINCE", TABLE_RIGHT},
	[COLUMN_NETWORK] = {"NETWORK", TABLE_LEFT},
	[COLUMN_INTERFACE] = {"INTERFACE", TABLE_LEFT},
	[COLUMN_ID] = {"ID", TABLE_LEFT},
	[COLUMN_REMARK] = {"", TABLE_REMARK},
};

struct row {
	const struct mapping *mapping;
	const struct container_info *container; /* NULL: it has gone */
	const char *remark;                     /* NULL: nothing is unusual */
	char interface[IF_NAMESIZE];
};

/* What a person should know who sees that the port does not answer. */
static const char *remark_on(const struct view *view, const struct row *row)
{
	const uint8_t *address = row->mapping->key.host_address;

	if (row->mapping->key.host_port == 0)
		return NULL;
	if (!row->container || !row->container->has_record)
		return "its container is gone: `bpf-portmap repair` tidies up";
	if (row->container->record.state != ATTACHMENT_READY || !row->container->live)
		return "ADD or DEL of its container did not finish";
	if (!*row->interface)
		return "its container's interface is gone: `bpf-portmap repair` tidies up";
	if (cni_address_is_loopback(address))
		return "hostIP is reached only from this host";
	if (!cni_address_is_any(address) && !local_address_exists(view->socket, address))
		return "hostIP is no address of this host";
	return NULL;
}

static void add_row(struct table *table, const struct row *row, uint64_t now)
{
	const struct mapping *mapping = row->mapping;
	const struct container_info *container = row->container;
	uint64_t since = container ? container->record.since : 0;
	char host[ENDPOINT_TEXT_SIZE], to[ENDPOINT_TEXT_SIZE], total[NUMBER_TEXT_SIZE];
	char age[DURATION_TEXT_SIZE] = "-", flows[NUMBER_TEXT_SIZE], half_open[NUMBER_TEXT_SIZE];
	char protocol[PROTOCOL_WORD_SIZE];
	bool has_port = mapping->key.host_port;

	if (since && since <= now)
		format_duration(now - since, age);
	format_host_port(mapping->key.host_address, mapping->key.host_port, host);
	table_cell(table, has_port ? host : "(masquerade)");
	table_cell(table, has_port ? protocol_word(mapping->key.protocol, protocol) : "-");
	table_cell(table, container ? container->text : "-");
	if (has_port)
		format_endpoint(mapping->portmap.container_address, mapping->portmap.container_port,
				to);
	else
		cni_address_format(mapping->portmap.container_address, to);
	table_cell(table, to);
	table_cell(table, format_number(mapping->flows, flows));
	table_cell(table, format_number(mapping->half_open, half_open));
	table_cell(table, has_port ? format_number(mapping->portmap.flows, total) : "-");
	table_cell(table, age);
	table_cell(table, container ? container->name.network : "");
	table_cell(table, row->interface);
	table_cell(table, container ? container->name.container_id : "");
	if (row->remark)
		table_printf(table, "! %s", row->remark);
	else
		table_cell(table, "");
}

static json_t *make_item(const struct view *view, const struct row *row)
{
	const struct mapping *mapping = row->mapping;
	const struct container_info *container = row->container;
	char since[TIME_TEXT_SIZE] = "", protocol[PROTOCOL_WORD_SIZE];
	bool has_port = mapping->key.host_port;

	if (container && container->record.since)
		format_time(container->record.since, since);
	return json_pack(
		"{s:s, s:o, s:s?, s:o, s:o, s:I, s:I, s:I, s:s?, s:s?}", "kind",
		has_port ? "mapping" : "masquerade", "host",
		has_port ? json_endpoint(mapping->key.host_address, mapping->key.host_port)
			 : json_null(),
		"protocol", has_port ? protocol_word(mapping->key.protocol, protocol) : NULL,
		"container", json_container(view, container), "to",
		json_endpoint(mapping->portmap.container_address, mapping->portmap.container_port),
		"flows", (json_int_t)mapping->flows, "flows_half_open",
		(json_int_t)mapping->half_open, "flows_total", (json_int_t)mapping->portmap.flows,
		"since", *since ? since : NULL, "remark", row->remark);
}

static struct row make_row(struct view *view, const struct mapping *mapping)
{
	struct row row = {.mapping = mapping,
			  .container = view_container(view, mapping->portmap.owner)};

	if (row.container)
		view_interface(view, row.container->record.ifindex, row.interface);
	row.remark = remark_on(view, &row);
	return row;
}

static int print_json(struct view *view, const struct mappings *mappings,
		      const struct options *options, struct cni_error *err)
{
	struct items items = {.file = stdout};

	for (size_t i = 0; i < mappings->count; i++) {
		struct row row = make_row(view, &mappings->list[i]);

		if (mapping_matches(row.mapping, row.container, options) &&
		    items_add(&items, make_item(view, &row), err))
			return -1;
	}
	return items_end(&items, NULL, err);
}

static int print_table(struct view *view, const struct mappings *mappings,
		       const struct options *options, struct cni_error *err)
{
	struct table_column columns[COLUMN_COUNT];
	uint64_t now = (uint64_t)time(NULL);
	cleanup_table struct table table;

	memcpy(columns, all_columns, sizeof(columns));
	for (int i = COLUMN_NETWORK; i <= COLUMN_ID && !options->wide; i++)
		columns[i].style = TABLE_HIDDEN;
	terminal_begin_table(&table, options->color, columns, COLUMN_COUNT);
	for (size_t i = 0; i < mappings->count; i++) {
		struct row row = make_row(view, &mappings->list[i]);

		if (mapping_matches(row.mapping, row.container, options))
			add_row(&table, &row, now);
	}
	return table_end(&table, err);
}

int verb_list(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_mappings struct mappings mappings = {0};
	cleanup_view struct view view = {0};

	if (view_open(&view, err))
		return -1;
	if (!view.is_empty && (mappings_read(&mappings, &view, err) ||
			       mappings_add_masqueraded(&mappings, &view, err) ||
			       mappings_count_flows(&mappings, &view, err)))
		return -1;
	return options->json ? print_json(&view, &mappings, options, err)
			     : print_table(&view, &mappings, options, err);
}

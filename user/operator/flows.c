/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flows.c - `bpf-portmap flows`: the connections. */
#include <linux/types.h>
#include <stdio.h>
#include <string.h>

#include "lifetime.h"

#include "datapath/load/maps.h"
#include "operator/print/describe_json.h"
#include "operator/view/flow_counts.h"
#include "operator/view/flow_filter.h"
#include "operator/view/flow_groups.h"
#include "operator/view/flow_top.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/verbs.h"

#define DEFAULT_TOP 10 /* --by without --top */

/* Texts of JSON. Of a container each byte may be six: \uNNNN. */
#define END_TEXT_SIZE (CNI_ADDRESS_TEXT_SIZE + 32)
#define SUMS_TEXT_SIZE 64
#define WORD_TEXT_SIZE 80
#define ITEM_SIZE (2048 + 6 * (CONTAINER_TEXT_SIZE + ATTACHMENT_KEY_SIZE))

/* Items are written by add_item(). */
static const struct table_column columns[] = {
	{"PROTO", TABLE_LEFT, NULL},    {"STATE", TABLE_LEFT, NULL},
	{"KIND", TABLE_LEFT, NULL},     {"PEER", TABLE_LEFT, NULL},
	{"HOST", TABLE_LEFT, NULL},     {"CONTAINER", TABLE_LEFT, NULL},
	{"ADDRESS", TABLE_LEFT, NULL},  {"PATH in/out", TABLE_LEFT, NULL},
	{"PACKETS", TABLE_RIGHT, NULL}, {"BYTES", TABLE_RIGHT | TABLE_EXTRA, NULL},
	{"IDLE", TABLE_RIGHT, NULL},    {"", TABLE_REMARK, NULL},
};

struct listing {
	const struct options *options;
	struct view view;
	struct flow_counts counts; /* of all */
	uint64_t shown;
	struct flow_top top;
	struct flow_groups groups;
	struct output output;
};

struct flow {
	const struct connection_key *key;
	const struct connection *connection;
	struct container_info *container; /* NULL: it is the host's */
	bool half_open;
	bool translated;
	uint32_t idle;
	const char *remark;
};

static const char *remark_on(const struct flow *flow)
{
	__u32 state = flow->connection->state;

	if (state & STATE_UNCONFIRMED)
		return "the IP stack has not let it through: its firewall?";
	if (state & STATE_REPLIED || !flow->idle)
		return NULL;
	return flow->connection->begun_inside ? "no answer from the peer"
					      : "no answer from the container or its firewall";
}

static struct flow describe(struct view *view, const struct connection_key *key,
			    const struct connection *connection)
{
	struct flow flow = {
		.key = key,
		.connection = connection,
		.container = view_container(view, connection->owner),
		.half_open = !(connection->state & STATE_ASSURED),
		.translated = connection->kind != FLOW_DIRECT,
		.idle = idle_seconds(view->now, connection->last_seen),
	};

	flow.remark = remark_on(&flow);
	return flow;
}

/* Packets are counted from the moment when a connection is assured. */
static void add_sums(struct table *table, const struct flow *flow)
{
	const struct connection *connection = flow->connection;

	if (flow->half_open) {
		table_cell(table, "-");
		table_cell(table, "-");
		return;
	}
	table_printf(table, "%u/%u", connection->packets[INWARDS], connection->packets[OUTWARDS]);
	if (!table->has_extra)
		table_cell(table, "");
	else
		table_printf(table, "%llu/%llu", (unsigned long long)connection->bytes[INWARDS],
			     (unsigned long long)connection->bytes[OUTWARDS]);
}

static void add_row(struct table *table, const struct flow *flow)
{
	const struct connection *connection = flow->connection;
	const struct connection_key *key = flow->key;
	char endpoint[ENDPOINT_TEXT_SIZE], word[PROTOCOL_WORD_SIZE], idle[DURATION_TEXT_SIZE];

	table_cell(table, protocol_word(key->protocol, word));
	table_cell(table, flow_state_word(flow_state_of(key->protocol, connection->state)));
	table_cell(table, flow_kind_word(connection->kind));
	table_cell(table, format_endpoint(key->outside, connection->peer_port, endpoint));
	table_cell(table, !flow->translated ? "-"
					    : format_endpoint(connection->external_address,
							      connection->external_port, endpoint));
	table_cell(table, flow->container ? flow->container->text : "-");
	table_cell(table, format_endpoint(key->inside, key->inside_port, endpoint));
	table_printf(table, "%s/%s", flow_way_path_word(flow_way_path_of(connection, INWARDS)),
		     flow_way_path_word(flow_way_path_of(connection, OUTWARDS)));
	add_sums(table, flow);
	table_cell(table, format_duration(flow->idle, idle));
	table_cell(table, flow->remark ? flow->remark : "");
}

/* "{"in":812,"out":790}"; null where nothing is counted yet. */
static const char *format_sums(const struct flow *flow, uint64_t in, uint64_t out,
			       char text[SUMS_TEXT_SIZE])
{
	if (flow->half_open)
		return "null";
	snprintf(text, SUMS_TEXT_SIZE, "{\"in\":%llu,\"out\":%llu}", (unsigned long long)in,
		 (unsigned long long)out);
	return text;
}

static const char *format_end(const uint8_t address[CNI_ADDRESS_SIZE], uint16_t port,
			      char text[END_TEXT_SIZE])
{
	char bare[CNI_ADDRESS_TEXT_SIZE];

	snprintf(text, END_TEXT_SIZE, "{\"address\":\"%s\",\"port\":%u}",
		 cni_address_format(address, bare), port);
	return text;
}

/* A word of ours, which has nothing to escape, as a string; "-" and NULL as null. */
static const char *quote(const char *word, char text[WORD_TEXT_SIZE])
{
	if (!word || !strcmp(word, "-"))
		return "null";
	snprintf(text, WORD_TEXT_SIZE, "\"%s\"", word);
	return text;
}

/* Not by jansson, with which 500,000 items take five times as long. Texts that others have written
 * are in the container's, which is jansson's. */
static int add_item(struct listing *listing, const struct flow *flow, struct cni_error *err)
{
	const struct connection *connection = flow->connection;
	const struct connection_key *key = flow->key;
	const char *container = json_container_text(&listing->view, flow->container);
	char protocol[PROTOCOL_WORD_SIZE], ends[3][END_TEXT_SIZE], sums[2][SUMS_TEXT_SIZE];
	char words[3][WORD_TEXT_SIZE], item[ITEM_SIZE];

	snprintf(
		item, sizeof(item),
		"{\"protocol\":\"%s\",\"state\":\"%s\",\"half_open\":%s,\"kind\":\"%s\","
		"\"begun_by\":\"%s\",\"peer\":%s,\"host\":%s,\"container\":%s,\"inside\":%s,"
		"\"path\":{\"in\":%s,\"out\":%s},\"packets\":%s,\"bytes\":%s,"
		"\"idle_seconds\":%u,\"remark\":%s}",
		protocol_word(key->protocol, protocol),
		flow_state_word(flow_state_of(key->protocol, connection->state)),
		flow->half_open ? "true" : "false", flow_kind_word(connection->kind),
		connection->begun_inside ? "inside" : "peer",
		format_end(key->outside, connection->peer_port, ends[0]),
		flow->translated ? format_end(connection->external_address,
					      connection->external_port, ends[1])
				 : "null",
		container, format_end(key->inside, key->inside_port, ends[2]),
		quote(flow_way_path_word(flow_way_path_of(connection, INWARDS)), words[0]),
		quote(flow_way_path_word(flow_way_path_of(connection, OUTWARDS)), words[1]),
		format_sums(flow, connection->packets[INWARDS], connection->packets[OUTWARDS],
			    sums[0]),
		format_sums(flow, connection->bytes[INWARDS], connection->bytes[OUTWARDS], sums[1]),
		flow->idle, quote(flow->remark, words[2]));
	return items_add_text(&listing->output.items, item, err);
}

static int show(struct listing *listing, const struct connection_key *key,
		const struct connection *connection, struct cni_error *err)
{
	struct flow flow = describe(&listing->view, key, connection);

	if (listing->options->json)
		return add_item(listing, &flow, err);
	add_row(&listing->output.table, &flow);
	return 0;
}

static bool is_wanted(struct listing *listing, const struct connection_key *key,
		      const struct connection *connection)
{
	const char *wanted = listing->options->container;
	const struct container_info *container;

	if (!flow_filter_matches(listing->options, key, connection))
		return false;
	if (!wanted)
		return true;
	container = view_container(&listing->view, connection->owner);
	return container && container_matches(container, wanted);
}

static enum walk visit(const void *key, const void *value, void *context, struct cni_error *err)
{
	struct listing *listing = context;
	const struct connection *connection = value;

	if (!view_is_alive(&listing->view, key, connection))
		return WALK_ON;
	flow_counts_add(&listing->counts, connection);
	if (!is_wanted(listing, key, connection))
		return WALK_ON;
	listing->shown++;
	if (listing->groups.by)
		flow_groups_add(&listing->groups, key, connection);
	else if (listing->top.limit)
		flow_top_add(&listing->top, key, connection);
	else if (!listing->options->count && show(listing, key, connection, err))
		return WALK_FAILED;
	return WALK_ON;
}

static const struct table_column client_columns[] = {
	{"CLIENT", TABLE_LEFT, "client"},    {"", TABLE_HIDDEN, "container"},
	{"FLOWS", TABLE_RIGHT, "flows"},     {"NEW", TABLE_RIGHT, "half_open"},
	{"PACKETS", TABLE_RIGHT, "packets"}, {"BYTES", TABLE_RIGHT, "bytes"},
};

static const struct table_column container_columns[] = {
	{"", TABLE_HIDDEN, "client"},        {"CONTAINER", TABLE_LEFT, "container"},
	{"FLOWS", TABLE_RIGHT, "flows"},     {"NEW", TABLE_RIGHT, "half_open"},
	{"PACKETS", TABLE_RIGHT, "packets"}, {"BYTES", TABLE_RIGHT, "bytes"},
};

static void show_group(struct listing *listing, const struct flow_group *group)
{
	bool is_client = listing->groups.by == SORT_CLIENT;
	struct container_info *container =
		is_client ? NULL : view_container(&listing->view, group->owner);
	struct output *output = &listing->output;
	char address[CNI_ADDRESS_TEXT_SIZE];

	output_text(output, is_client ? cni_address_format(group->client, address) : NULL);
	output_cell(output, container ? container->text : "-",
		    json_container(&listing->view, container));
	output_number(output, group->flows);
	output_number(output, group->half_open);
	output_number(output, group->packets);
	output_number(output, group->bytes);
}

static void show_groups(struct listing *listing)
{
	flow_groups_sort(&listing->groups);
	for (size_t i = 0; i < listing->groups.count && i < listing->top.limit; i++)
		show_group(listing, listing->groups.list[i]);
}

static void begin_output(struct listing *listing)
{
	struct output *output = &listing->output;

	if (listing->options->count)
		return;
	if (listing->groups.by == SORT_CLIENT)
		output_begin(output, client_columns, 6);
	else if (listing->groups.by)
		output_begin(output, container_columns, 6);
	else
		output_begin(output, columns, sizeof(columns) / sizeof(columns[0]));
	output->table.has_extra = listing->top.sort_by == SORT_BYTES;
}

static int end(struct listing *listing, struct cni_error *err)
{
	const struct flow_counts *counts = &listing->counts;
	char table[FLOW_COUNTS_TEXT_SIZE], shown[NUMBER_TEXT_SIZE];
	json_t *summary = flow_counts_json(counts);

	json_object_set_new(summary, "flows", json_integer((json_int_t)listing->shown));
	if (output_end(&listing->output, summary, err))
		return -1;
	if (!listing->options->json)
		printf("%s flow%s; %s\n", format_number(listing->shown, shown),
		       listing->shown == 1 ? "" : "s", flow_counts_format(counts, table));
	return 0;
}

static int list(struct listing *listing, struct cni_error *err)
{
	const struct objects *objects = &listing->view.datapath.objects;

	begin_output(listing);
	flow_counts_read_limits(&listing->counts, &listing->view);
	if (!listing->view.is_empty && map_walk(objects, MAP_CONNECTIONS, visit, listing, err))
		return -1;
	if (listing->groups.by)
		show_groups(listing);
	flow_top_sort(&listing->top);
	for (size_t i = 0; i < listing->top.count; i++)
		if (show(listing, &listing->top.list[i].key, &listing->top.list[i].connection, err))
			return -1;
	return end(listing, err);
}

int verb_flows(const struct options *options, char *const *operands, struct cni_error *err)
{
	uint32_t top = options->sort_by && !options->top ? DEFAULT_TOP : options->top;
	enum sort_by sort_by = top && !options->sort_by ? SORT_BYTES : options->sort_by;
	struct listing listing = {
		.options = options,
		.top = {.limit = options->count ? 0 : top, .sort_by = sort_by},
		.output = {.options = options},
	};
	int result;

	if (options->sort_by == SORT_CLIENT || options->sort_by == SORT_CONTAINER)
		listing.groups.by = options->sort_by;

	result = view_open(&listing.view, err) ? -1 : list(&listing, err);
	flow_top_release(&listing.top);
	flow_groups_release(&listing.groups);
	output_release(&listing.output);
	view_close(&listing.view);
	return result;
}

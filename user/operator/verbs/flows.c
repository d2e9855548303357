/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flows.c - `bpf-portmap flows`: the connections; and `drop-offload`: every flow goes through the
 * IP stack, with its firewall as it is now, before it may skip the stack again.
 */
#include <stdio.h>
#include <string.h>

#include "lib/clock.h"
#include "lib/ports.h"
#include "host/host.h"
#include "lifetime.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "operator/view/flow_select.h"
#include "operator/view/statistics.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/verbs.h"

#define DEFAULT_TOP 10 /* --by without --top */
#define WORD_TEXT_SIZE 16

/* Under the lock, for ADD writes meta too. Only one aligned word changes, so that no program reads
 * a value that is half written. */
static int drop(const struct objects *objects, struct cni_error *err)
{
	cleanup_lock int lock = lock_take_claims(err);
	struct meta meta;

	if (lock < 0)
		return -1;
	if (!meta_read(objects, &meta))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot read the map meta; `bpf-portmap doctor` says what is"
				     " damaged");
	meta.offload_dropped = clock_of_programs();
	return meta_write(objects, &meta, err);
}

int verb_drop_offload(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_host struct host host = {0};

	if (host_open(&host, DATAPATH_WORK, err) || host_recover(&host, err))
		return -1;
	if (!datapath_is_usable(&host.datapath)) {
		puts("no container was ever added: there is nothing to drop");
		return 0;
	}
	if (drop(&host.datapath.objects, err))
		return -1;
	puts("no flow skips the IP stack until its firewall has let it through again");
	return 0;
}

static const struct table_column columns[] = {
	{"PROTO", TABLE_LEFT, "protocol"},
	{"STATE", TABLE_LEFT, "state"},
	{"", TABLE_HIDDEN, "half_open"},
	{"KIND", TABLE_LEFT | TABLE_SPARE, "kind"},
	{"", TABLE_HIDDEN, "begun_by"},
	{"PEER", TABLE_LEFT, "peer"},
	{"HOST", TABLE_LEFT | TABLE_SPARE, "host"},
	{"CONTAINER", TABLE_LEFT, "container"},
	{"ADDRESS", TABLE_LEFT | TABLE_SPARE, "inside"},
	{"PATH in/out", TABLE_LEFT, "path"},
	{"PACKETS", TABLE_RIGHT, "packets"},
	{"BYTES", TABLE_RIGHT | TABLE_EXTRA, "bytes"},
	{"IDLE", TABLE_RIGHT, "idle_seconds"},
	{"STACK", TABLE_LEFT | TABLE_SPARE, "stack_reason"},
	{"", TABLE_REMARK, "remark"},
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

static const char *remark_on(const struct connection *connection, uint32_t idle)
{
	if (connection->state & STATE_UNCONFIRMED)
		return "the IP stack has not let it through: its firewall?";
	if (connection->state & STATE_REPLIED || !idle)
		return NULL;
	return connection->begun_inside ? "no answer from the peer"
					: "no answer from the container or its firewall";
}

/* A word of ours, which has nothing to escape; "-" as null. */
static const char *quote(const char *word, char text[WORD_TEXT_SIZE])
{
	if (!strcmp(word, "-"))
		return "null";
	snprintf(text, WORD_TEXT_SIZE, "\"%s\"", word);
	return text;
}

static void add_path(struct output *output, const struct connection *connection)
{
	const char *in = flow_way_path_word(flow_way_path_of(connection, INWARDS));
	const char *out = flow_way_path_word(flow_way_path_of(connection, OUTWARDS));
	char text[3 * WORD_TEXT_SIZE], words[2][WORD_TEXT_SIZE];

	if (output->options->json)
		snprintf(text, sizeof(text), "{\"in\":%s,\"out\":%s}", quote(in, words[0]),
			 quote(out, words[1]));
	else
		snprintf(text, sizeof(text), "%s/%s", in, out);
	output_cell(output, text, text);
}

/* They are counted from the moment when a connection is assured. */
static void add_sums(struct output *output, bool half_open, uint64_t in, uint64_t out)
{
	const char *format = output->options->json ? "{\"in\":%llu,\"out\":%llu}" : "%llu/%llu";
	char text[64];

	if (half_open) {
		output_cell(output, "-", NULL);
		return;
	}
	snprintf(text, sizeof(text), format, (unsigned long long)in, (unsigned long long)out);
	output_cell(output, text, text);
}

static void show(struct listing *listing, const struct connection_key *key,
		 const struct connection *connection)
{
	bool half_open = !(connection->state & STATE_ASSURED);
	uint32_t idle = idle_seconds(listing->view.now, connection->last_seen);
	struct output *output = &listing->output;
	char word[WORD_TEXT_SIZE], text[DURATION_TEXT_SIZE];
	const char *stack;

	output_text(output, protocol_word(key->protocol));
	output_text(output, flow_state_word(flow_state_of(key->protocol, connection->state)));
	output_cell(output, "", half_open ? "true" : "false");
	output_text(output, flow_kind_word(connection->kind));
	output_text(output, connection->begun_inside ? "inside" : "peer");
	output_endpoint(output, NULL, key->outside, connection->peer_port);
	if (connection->kind == FLOW_DIRECT)
		output_cell(output, "-", NULL);
	else
		output_endpoint(output, NULL, connection->external_address,
				connection->external_port);
	output_container(output, NULL, &listing->view,
			 view_container(&listing->view, connection->owner));
	output_endpoint(output, NULL, key->inside, key->inside_port);
	add_path(output, connection);
	add_sums(output, half_open, connection->packets[INWARDS], connection->packets[OUTWARDS]);
	add_sums(output, half_open, connection->bytes[INWARDS], connection->bytes[OUTWARDS]);
	if (output->options->json)
		snprintf(text, sizeof(text), "%u", idle);
	else
		format_duration(idle, text);
	output_cell(output, text, text);
	stack = flow_stack_word(key->protocol, connection);
	output_cell(output, stack, quote(stack, word));
	output_text(output, remark_on(connection, idle));
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

static void take(struct listing *listing, const struct connection_key *key,
		 const struct connection *connection)
{
	if (!view_is_alive(&listing->view, key, connection))
		return;
	flow_counts_add(&listing->counts, connection);
	if (!is_wanted(listing, key, connection))
		return;
	listing->shown++;
	if (listing->groups.by)
		flow_groups_add(&listing->groups, key, connection);
	else if (listing->top.limit)
		flow_top_add(&listing->top, key, connection);
	else if (!listing->options->count)
		show(listing, key, connection);
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
	output_container(output, NULL, &listing->view, container);
	output_number(output, group->flows);
	output_number(output, group->half_open);
	output_number(output, group->packets);
	output_number(output, group->bytes);
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
	cleanup_walk struct map_walk walk = {.objects = &listing->view.datapath.objects,
					     .map = MAP_CONNECTIONS};

	begin_output(listing);
	flow_counts_read_limits(&listing->counts, &listing->view);
	while (!listing->view.is_empty && map_next(&walk, err))
		take(listing, walk.key, walk.value);
	if (walk.failed)
		return -1;
	if (listing->groups.by)
		flow_groups_sort(&listing->groups);
	for (size_t i = 0; i < listing->groups.count && i < listing->top.limit; i++)
		show_group(listing, listing->groups.list[i]);
	flow_top_sort(&listing->top);
	for (size_t i = 0; i < listing->top.count; i++)
		show(listing, &listing->top.list[i].key, &listing->top.list[i].connection);
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

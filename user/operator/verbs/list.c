/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* list.c - `bpf-portmap list`: the mapped ports, and who is only masqueraded. */
#include <time.h>

#include "net/address_list.h"
#include "lib/ports.h"
#include "operator/print/format.h"
#include "operator/print/output.h"
#include "operator/view/mappings.h"
#include "operator/verbs.h"

static const struct table_column columns[] = {
	{"", TABLE_HIDDEN, "kind"},
	{"HOST", TABLE_LEFT, "host"},
	{"PROTO", TABLE_LEFT, "protocol"},
	{"CONTAINER", TABLE_LEFT, "container"},
	{"TO", TABLE_LEFT, "to"},
	{"FLOWS", TABLE_RIGHT, "flows"},
	{"NEW", TABLE_RIGHT, "flows_half_open"},
	{"TOTAL", TABLE_RIGHT, "flows_total"},
	{"SINCE", TABLE_RIGHT, "since"},
	{"NETWORK", TABLE_LEFT | TABLE_EXTRA, NULL},
	{"INTERFACE", TABLE_LEFT | TABLE_EXTRA, NULL},
	{"ID", TABLE_LEFT | TABLE_EXTRA, NULL},
	{"", TABLE_REMARK, "remark"},
};

struct row {
	const struct mapping *mapping;
	struct container_info *container; /* NULL: it has gone */
	const char *remark;               /* NULL: nothing is unusual */
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
	if (mapping_turn_text(row->mapping))
		return mapping_turn_text(row->mapping);
	if (cni_address_is_loopback(address))
		return "hostIP is reached only from this host";
	if (!cni_address_is_any(address) && !local_address_exists(view->socket, address))
		return "hostIP is no address of this host";
	if (row->container->network)
		return "from outside only by the \"uplinks\" of its network";
	return NULL;
}

static void add_since(struct output *output, uint64_t since)
{
	uint64_t now = (uint64_t)time(NULL);
	char age[DURATION_TEXT_SIZE] = "-", begin[TIME_TEXT_SIZE] = "";

	if (since && since <= now)
		format_duration(now - since, age);
	if (since)
		format_time(since, begin);
	if (output->options->json)
		output_text(output, *begin ? begin : NULL);
	else
		output_text(output, age);
}

/* A container that has no port and is masqueraded has a row, too. */
static void add_row(struct output *output, const struct view *view, const struct row *row)
{
	const struct portmap_key *key = &row->mapping->key;
	const struct portmap *portmap = &row->mapping->portmap;
	struct container_info *container = row->container;
	char text[RANGE_TEXT_SIZE];
	bool has_port = key->host_port;

	output_text(output, has_port ? "mapping" : "masquerade");
	if (has_port) {
		output_endpoint(output, mapping_format_host(row->mapping, text), key->host_address,
				key->host_port);
		output_text(output, protocol_word(key->protocol));
	} else {
		output_cell(output, "(masquerade)", NULL);
		output_cell(output, "-", NULL);
	}
	output_container(output, NULL, view, container);
	output_endpoint(output, mapping_format_target(row->mapping, text),
			portmap->container_address, portmap->container_port);
	output_number(output, row->mapping->flows);
	output_number(output, row->mapping->half_open);
	if (has_port)
		output_number(output, portmap->flows);
	else
		output_cell(output, "-", "0");
	add_since(output, container ? container->record.since : 0);
	output_text(output, container ? container->name.network : NULL);
	output_text(output, row->interface);
	output_text(output, container ? container->name.container_id : NULL);
	output_remark(output, row->remark);
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

int verb_list(const struct options *options, char *const *operands, struct cni_error *err)
{
	cleanup_output struct output output = {.options = options};
	cleanup_mappings struct mappings mappings = {0};
	cleanup_view struct view view = {0};
	size_t shown = 0;

	if (view_open(&view, err))
		return -1;
	if (!view.is_empty &&
	    (mappings_read(&mappings, &view, err) || mappings_add_replaced(&mappings, &view, err) ||
	     mappings_add_masqueraded(&mappings, &view, err) ||
	     mappings_count_flows(&mappings, &view, err)))
		return -1;
	/* Programs get each port, and so does who asks for one. */
	if (!options->json && !options->port.port)
		mappings_join_ranges(&mappings);
	output_begin(&output, columns, sizeof(columns) / sizeof(columns[0]));
	output.table.has_extra = options->wide;
	for (size_t i = 0; i < mappings.count; i++) {
		struct row row = make_row(&view, &mappings.list[i]);

		if (!mapping_matches(row.mapping, row.container, options))
			continue;
		add_row(&output, &view, &row);
		shown++;
	}
	if (shown || options->json)
		return output_end(&output, NULL, err);
	if (!view.is_empty)
		fprintf(stderr, "bpf-portmap: %s\n",
			mappings.count ? "no mapped port is like that" : "no port is mapped");
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mappings.c - the mapped ports, with the connections that each has now. */
#include "operator/view/mappings.h"

#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lifetime.h"

#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "lib/array.h"
#include "lib/cleanup.h"

static enum walk add_mapping(const void *key, const void *value, void *context,
			     struct cni_error *err)
{
	struct mappings *mappings = context;
	struct mapping *mapping;

	if (((const struct portmap_key *)key)->waiter)
		return WALK_ON;
	mapping = ARRAY_ADD(mappings->list, mappings->count);
	*mapping = (struct mapping){0};
	memcpy(&mapping->key, key, sizeof(mapping->key));
	memcpy(&mapping->portmap, value, sizeof(mapping->portmap));
	mapping->last_port = mapping->key.host_port;
	return WALK_ON;
}

/* Without a port last; IPv4 before IPv6. */
static int compare(const void *one, const void *other)
{
	const struct portmap_key *a = one, *b = other;
	bool ipv4 = cni_address_is_ipv4(a->host_address);

	if (!a->host_port != !b->host_port)
		return a->host_port ? -1 : 1;
	if (a->host_port != b->host_port)
		return a->host_port < b->host_port ? -1 : 1;
	if (a->protocol != b->protocol)
		return a->protocol < b->protocol ? -1 : 1;
	if (ipv4 != cni_address_is_ipv4(b->host_address))
		return ipv4 ? -1 : 1;
	return memcmp(a->host_address, b->host_address, sizeof(a->host_address));
}

int mappings_read(struct mappings *mappings, const struct view *view, struct cni_error *err)
{
	if (map_walk(&view->datapath.objects, MAP_PORTMAPS, add_mapping, mappings, err))
		return -1;
	if (mappings->count)
		qsort(mappings->list, mappings->count, sizeof(*mappings->list), compare);
	return 0;
}

/* Those of one range follow one another. */
static int compare_ranges(const void *one, const void *other)
{
	const struct portmap_key *a = one, *b = other;
	int order = memcmp(a->host_address, b->host_address, sizeof(a->host_address));

	if (!order && a->protocol != b->protocol)
		order = a->protocol < b->protocol ? -1 : 1;
	return order ? order : compare(one, other);
}

static bool continues(const struct mapping *range, const struct mapping *next)
{
	const struct portmap *a = &range->portmap, *b = &next->portmap;

	return range->last_port + 1 == next->key.host_port &&
	       range->key.protocol == next->key.protocol &&
	       !memcmp(range->key.host_address, next->key.host_address, CNI_ADDRESS_SIZE) &&
	       owner_is(a->owner, b->owner) &&
	       !memcmp(a->container_address, b->container_address, CNI_ADDRESS_SIZE) &&
	       next->key.host_port - range->key.host_port == b->container_port - a->container_port;
}

void mappings_join_ranges(struct mappings *mappings)
{
	struct mapping *list = mappings->list;
	size_t kept = 0;

	if (!mappings->count)
		return;
	qsort(list, mappings->count, sizeof(*list), compare_ranges);
	for (size_t i = 1; i < mappings->count; i++) {
		if (continues(&list[kept], &list[i]))
			list[kept].last_port = list[i].last_port;
		else
			list[++kept] = list[i];
	}
	mappings->count = kept + 1;
	qsort(list, mappings->count, sizeof(*list), compare);
}

struct masqueraded {
	struct mappings *mappings;
	bool *has_port; /* by slot */
};

static enum walk add_masqueraded(const void *key, const void *value, void *context,
				 struct cni_error *err)
{
	const struct masqueraded *masqueraded = context;
	const struct endpoint_key *address = key;
	const struct endpoint *endpoint = value;
	struct mappings *mappings = masqueraded->mappings;
	struct mapping *mapping;

	if (!endpoint->masquerade || endpoint->owner.slot >= MAX_SLOTS ||
	    masqueraded->has_port[endpoint->owner.slot])
		return WALK_ON;
	mapping = ARRAY_ADD(mappings->list, mappings->count);
	*mapping = (struct mapping){.portmap.owner = endpoint->owner};
	memcpy(mapping->key.host_address, address->address, CNI_ADDRESS_SIZE);
	memcpy(mapping->portmap.container_address, address->address, CNI_ADDRESS_SIZE);
	return WALK_ON;
}

int mappings_add_masqueraded(struct mappings *mappings, const struct view *view,
			     struct cni_error *err)
{
	cleanup_free bool *has_port = or_exit(calloc(MAX_SLOTS, sizeof(*has_port)));
	struct masqueraded masqueraded = {mappings, has_port};

	for (size_t i = 0; i < mappings->count; i++)
		if (mappings->list[i].portmap.owner.slot < MAX_SLOTS)
			has_port[mappings->list[i].portmap.owner.slot] = true;
	if (map_walk(&view->datapath.objects, MAP_ENDPOINTS, add_masqueraded, &masqueraded, err))
		return -1;
	if (mappings->count)
		qsort(mappings->list, mappings->count, sizeof(*mappings->list), compare);
	return 0;
}

size_t mappings_write_ports(const struct mappings *mappings, struct owner owner,
			    char text[PORTS_TEXT_SIZE])
{
	char endpoint[ENDPOINT_TEXT_SIZE], word[PROTOCOL_WORD_SIZE];
	size_t length = 0, count = 0;

	snprintf(text, PORTS_TEXT_SIZE, "no port");
	for (size_t i = 0; i < mappings->count; i++) {
		const struct portmap_key *key = &mappings->list[i].key;

		if (!owner_is(mappings->list[i].portmap.owner, owner) || count++ >= SHOWN_PORTS)
			continue;
		format_host_port(key->host_address, key->host_port, endpoint);
		length += (size_t)snprintf(
			text + length, PORTS_TEXT_SIZE - length, "%s%s%s%s", length ? ", " : "",
			key->host_port ? endpoint : "masqueraded", key->host_port ? "/" : "",
			key->host_port ? protocol_word(key->protocol, word) : "");
	}
	if (count > SHOWN_PORTS)
		snprintf(text + length, PORTS_TEXT_SIZE - length, " and %zu more",
			 count - SHOWN_PORTS);
	return count;
}

void mappings_release(struct mappings *mappings)
{
	free(mappings->list);
	*mappings = (struct mappings){0};
}

/* As the programs look a port up: that of the very address, else that of any address. */
static struct mapping *find(const struct mappings *mappings, const struct connection_key *key,
			    const struct connection *connection)
{
	struct portmap_key wanted = {.protocol = key->protocol,
				     .host_port = connection->external_port};
	const uint8_t *address = connection->external_address;
	struct mapping *found;

	if (connection->kind == FLOW_MASQUERADE) {
		wanted.protocol = (enum protocol)0;
		wanted.host_port = 0;
		address = key->inside;
	}
	memcpy(wanted.host_address, address, CNI_ADDRESS_SIZE);
	found = bsearch(&wanted, mappings->list, mappings->count, sizeof(*found), compare);
	if (found || connection->kind == FLOW_MASQUERADE)
		return found;
	memcpy(wanted.host_address,
	       cni_address_is_ipv4(address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	return bsearch(&wanted, mappings->list, mappings->count, sizeof(*found), compare);
}

struct count {
	struct mappings *mappings;
	struct view *view;
};

static bool flow_is_closed(const struct connection_key *key, const struct connection *connection)
{
	return key->protocol == PROTOCOL_TCP && state_is_closed(connection->state);
}

static enum walk count_flow(const void *key, const void *value, void *context,
			    struct cni_error *err)
{
	const struct connection *connection = value;
	struct count *count = context;
	struct mapping *mapping;

	/* A closed one is remembered for late segments, and is no connection any more. */
	if ((connection->kind != FLOW_MAPPING && connection->kind != FLOW_MASQUERADE) ||
	    flow_is_closed(key, connection) || !view_is_alive(count->view, key, connection))
		return WALK_ON;
	mapping = find(count->mappings, key, connection);
	if (!mapping ||
	    memcmp(&mapping->portmap.owner, &connection->owner, sizeof(struct owner)) != 0)
		return WALK_ON;
	mapping->flows++;
	mapping->half_open += !(connection->state & STATE_ASSURED);
	return WALK_ON;
}

int mappings_count_flows(struct mappings *mappings, struct view *view, struct cni_error *err)
{
	struct count count = {mappings, view};

	/* bsearch() must not get NULL. */
	if (!mappings->count)
		return 0;
	return map_walk(&view->datapath.objects, MAP_CONNECTIONS, count_flow, &count, err);
}

bool mapping_matches(const struct mapping *mapping, const struct container_info *container,
		     const struct options *options)
{
	const struct port_option *port = &options->port;

	if ((port->port && port->port != mapping->key.host_port) ||
	    (port->protocol && port->protocol != mapping->key.protocol))
		return false;
	if (options->container && !(container && container_matches(container, options->container)))
		return false;
	return !options->network ||
	       (container && !strcmp(container->name.network, options->network));
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* mappings.c - the mapped ports, with the connections that each has now. */
#include "operator/view/mappings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lifetime.h"

#include "datapath/load/maps.h"
#include "datapath/records/attachments.h"
#include "lib/memory.h"
#include "lib/cleanup.h"
#include "lib/ports.h"
#include "net/netlink.h"
#include "net/netns.h"
#include "net/sockets.h"
#include "operator/kernel/namespaces.h"

static void add_mapping(struct mappings *mappings, const struct portmap_key *key,
			const struct portmap *portmap, uint8_t place)
{
	if (!key->waiter)
		*ARRAY_ADD(mappings->list, mappings->count) =
			(struct mapping){.key = *key,
					 .portmap = *portmap,
					 .place = place,
					 .turn = place ? TURN_GONE : TURN_NOW,
					 .last_port = key->host_port};
}

/* A mapping without a port comes last, one of IPv4 before one of IPv6. */
static int compare_keys(const struct portmap_key *a, const struct portmap_key *b)
{
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

static int compare(const void *one, const void *other)
{
	const struct mapping *a = one, *b = other;
	int order = compare_keys(&a->key, &b->key);

	return order ? order : a->place - b->place;
}

/* Also what is ordered already. */
static void sort(struct mappings *mappings)
{
	if (mappings->count)
		qsort(mappings->list, mappings->count, sizeof(*mappings->list), compare);
}

int mappings_read(struct mappings *mappings, const struct view *view, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &view->datapath.objects,
					     .map = MAP_PORTMAPS};

	while (map_next(&walk, err))
		add_mapping(mappings, walk.key, walk.value, 0);
	sort(mappings);
	return walk.failed ? -1 : 0;
}

/* The search for a process that serves a mapped port in a container. */
struct server_search {
	const struct mapping *mapping;
	struct socket_list found;
};

static int find_server(void *context, struct cni_error *err)
{
	struct server_search *search = context;
	const struct portmap *portmap = &search->mapping->portmap;
	cleanup_netlink struct netlink *socket = netlink_open(NETLINK_SOCK_DIAG, err);

	if (!socket)
		return -1;
	sockets_find_at(&search->found, socket, search->mapping->key.protocol,
			portmap->container_address, portmap->container_port);
	return 0;
}

/* As the programs see it (bpf/replace.h): sockets of TCP and UDP, in a namespace that is known. */
static bool is_served(const struct mapping *mapping, const struct view *view,
		      const struct namespaces *namespaces)
{
	struct server_search search = {.mapping = mapping};
	cleanup_error struct cni_error ignored = {0};
	const struct namespace *inside = NULL;
	struct slot slot;
	bool served;

	if (owner_read(&view->datapath.objects, mapping->portmap.owner, &slot) &&
	    slot.netns_id >= 0 && mapping->key.protocol != PROTOCOL_SCTP)
		inside = namespaces_find(namespaces, slot.netns_id);
	if (inside)
		netns_call(inside->fd, find_server, &search, &ignored);
	served = search.found.count;
	sockets_release(&search.found);
	return served;
}

static void see_turn(struct mapping *now, struct mapping *before, const struct view *view,
		     const struct namespaces *namespaces)
{
	const struct objects *objects = &view->datapath.objects;
	struct slot slot;

	if (!owner_is_live_with_veth(objects, before->portmap.owner, &slot) ||
	    (owner_is_live_with_veth(objects, now->portmap.owner, &slot) &&
	     (is_served(now, view, namespaces) || !is_served(before, view, namespaces))))
		return;
	now->turn = TURN_COMES;
	before->turn = TURN_GOES;
}

/* Whom new connections go to, where a container has been replaced. */
static void see_turns(struct mappings *mappings, const struct view *view)
{
	struct namespaces namespaces = {0};

	namespaces_read(&namespaces, view->socket);
	for (size_t i = 1; i < mappings->count; i++)
		if (mappings->list[i].place == 1)
			see_turn(&mappings->list[i - 1], &mappings->list[i], view, &namespaces);
	namespaces_release(&namespaces);
}

int mappings_add_replaced(struct mappings *mappings, const struct view *view, struct cni_error *err)
{
	const struct objects *objects = &view->datapath.objects;
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};
	const size_t all = mappings->count;
	struct slot slot;

	while (map_next(&walk, err)) {
		const struct portmap_succession *entry = walk.value;
		const struct portmap *const replaced[] = {&entry->before, &entry->earlier};

		for (uint8_t i = 0; i < 2; i++)
			if (owner_read(objects, replaced[i]->owner, &slot) && slot.live)
				add_mapping(mappings, walk.key, replaced[i], i + 1);
	}
	sort(mappings);
	if (mappings->count > all)
		see_turns(mappings, view);
	return walk.failed ? -1 : 0;
}

bool mapping_gets_new(const struct mapping *mapping)
{
	return mapping->turn == TURN_NOW || mapping->turn == TURN_GOES;
}

const char *mapping_turn_text(const struct mapping *mapping)
{
	static const char *const texts[] = {
		[TURN_COMES] = "comes next: new connections go to it once it serves the port",
		[TURN_GOES] = "to be replaced: new connections go to it until its successor serves"
			      " the port",
		[TURN_GONE] = "replaced: its connections go on until it is deleted",
	};

	return texts[mapping->turn];
}

/* Those of one range follow one another. */
static int compare_ranges(const void *one, const void *other)
{
	const struct mapping *a = one, *b = other;
	int order = memcmp(a->key.host_address, b->key.host_address, CNI_ADDRESS_SIZE);

	if (!order)
		order = a->place - b->place;
	if (!order)
		order = (int)a->turn - (int)b->turn;
	if (!order && a->key.protocol != b->key.protocol)
		order = a->key.protocol < b->key.protocol ? -1 : 1;
	return order ? order : compare_keys(&a->key, &b->key);
}

static bool continues(const struct mapping *range, const struct mapping *next)
{
	const struct portmap *a = &range->portmap, *b = &next->portmap;

	return range->last_port + 1 == next->key.host_port &&
	       range->key.protocol == next->key.protocol &&
	       !memcmp(range->key.host_address, next->key.host_address, CNI_ADDRESS_SIZE) &&
	       owner_is(a->owner, b->owner) && range->turn == next->turn &&
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
		if (!continues(&list[kept], &list[i])) {
			list[++kept] = list[i];
			continue;
		}
		list[kept].last_port = list[i].last_port;
		list[kept].flows += list[i].flows;
		list[kept].half_open += list[i].half_open;
		list[kept].portmap.flows += list[i].portmap.flows;
	}
	mappings->count = kept + 1;
	sort(mappings);
}

static const char *add_last_port(const struct mapping *mapping, uint16_t first,
				 char text[RANGE_TEXT_SIZE])
{
	unsigned int more = mapping->last_port - mapping->key.host_port;
	size_t length = strlen(text);

	if (more)
		snprintf(text + length, RANGE_TEXT_SIZE - length, "-%u", first + more);
	return text;
}

const char *mapping_format_host(const struct mapping *mapping, char text[RANGE_TEXT_SIZE])
{
	format_host_port(mapping->key.host_address, mapping->key.host_port, text);
	return add_last_port(mapping, mapping->key.host_port, text);
}

const char *mapping_format_target(const struct mapping *mapping, char text[RANGE_TEXT_SIZE])
{
	const struct portmap *portmap = &mapping->portmap;

	if (!mapping->key.host_port)
		return cni_address_format(portmap->container_address, text);
	format_endpoint(portmap->container_address, portmap->container_port, text);
	return add_last_port(mapping, portmap->container_port, text);
}

static void add_masqueraded(struct mappings *mappings, const struct endpoint_key *key,
			    struct owner owner)
{
	struct mapping *mapping = ARRAY_ADD(mappings->list, mappings->count);

	*mapping = (struct mapping){.portmap.owner = owner};
	memcpy(mapping->key.host_address, key->address, CNI_ADDRESS_SIZE);
	memcpy(mapping->portmap.container_address, key->address, CNI_ADDRESS_SIZE);
}

int mappings_add_masqueraded(struct mappings *mappings, const struct view *view,
			     struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &view->datapath.objects,
					     .map = MAP_ENDPOINTS};
	cleanup_free bool *has_port = or_exit(calloc(MAX_SLOTS, sizeof(*has_port))); /* by slot */

	for (size_t i = 0; i < mappings->count; i++)
		if (mappings->list[i].portmap.owner.slot < MAX_SLOTS)
			has_port[mappings->list[i].portmap.owner.slot] = true;
	while (map_next(&walk, err)) {
		const struct endpoint *endpoint = walk.value;

		if (endpoint->masquerade && endpoint->owner.slot < MAX_SLOTS &&
		    !has_port[endpoint->owner.slot])
			add_masqueraded(mappings, walk.key, endpoint->owner);
	}
	sort(mappings);
	return walk.failed ? -1 : 0;
}

size_t mappings_write_ports(const struct mappings *mappings, struct owner owner,
			    char text[PORTS_TEXT_SIZE])
{
	char endpoint[ENDPOINT_TEXT_SIZE];
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
			key->host_port ? protocol_word(key->protocol) : "");
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

/* Finds the owner's mapping with this key, or NULL. */
static struct mapping *find_of(const struct mappings *mappings, struct mapping *wanted,
			       struct owner owner)
{
	struct mapping *found;

	for (wanted->place = 0; wanted->place < 3; wanted->place++) {
		found = bsearch(wanted, mappings->list, mappings->count, sizeof(*found), compare);
		if (found && owner_is(found->portmap.owner, owner))
			return found;
	}
	return NULL;
}

/* As the programs look a port up: that of the very address, else that of any address. */
static struct mapping *find(const struct mappings *mappings, const struct connection_key *key,
			    const struct connection *connection)
{
	struct mapping wanted = {
		.key = {.protocol = key->protocol, .host_port = connection->external_port}};
	const uint8_t *address = connection->external_address;
	struct mapping *found;

	if (connection->kind == FLOW_MASQUERADE) {
		wanted.key.protocol = (enum protocol)0;
		wanted.key.host_port = 0;
		address = key->inside;
	}
	memcpy(wanted.key.host_address, address, CNI_ADDRESS_SIZE);
	found = find_of(mappings, &wanted, connection->owner);
	if (found || connection->kind == FLOW_MASQUERADE)
		return found;
	memcpy(wanted.key.host_address,
	       cni_address_is_ipv4(address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	return find_of(mappings, &wanted, connection->owner);
}

static void count_flow(const struct mappings *mappings, struct view *view,
		       const struct connection_key *key, const struct connection *connection)
{
	struct mapping *mapping;

	/* A closed one is remembered for late segments, and is no connection any more. */
	if ((connection->kind != FLOW_MAPPING && connection->kind != FLOW_MASQUERADE) ||
	    (key->protocol == PROTOCOL_TCP && state_is_closed(connection->state)) ||
	    !view_is_alive(view, key, connection))
		return;
	mapping = find(mappings, key, connection);
	if (!mapping)
		return;
	mapping->flows++;
	mapping->half_open += !(connection->state & STATE_ASSURED);
}

int mappings_count_flows(struct mappings *mappings, struct view *view, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &view->datapath.objects,
					     .map = MAP_CONNECTIONS};

	/* bsearch() must not get NULL. */
	while (mappings->count && map_next(&walk, err))
		count_flow(mappings, view, walk.key, walk.value);
	return walk.failed ? -1 : 0;
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_select.c - of many connections those that `flows` shows. */
#include "operator/view/flow_select.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

bool flow_filter_matches(const struct options *options, const struct connection_key *key,
			 const struct connection *connection)
{
	const struct port_option *port = &options->port;

	return (!options->protocol || options->protocol == key->protocol) &&
	       (!port->protocol || port->protocol == key->protocol) &&
	       (!port->port || port->port == connection->external_port) &&
	       flow_state_matches(options->state, key->protocol, connection->state) &&
	       (options->path == WAY_PATH_ANY ||
		options->path == flow_way_path_of(connection, INWARDS) ||
		options->path == flow_way_path_of(connection, OUTWARDS)) &&
	       (!options->client.is_set ||
		cni_address_has_prefix(key->outside, options->client.address,
				       options->client.prefix_length));
}

/* --- the biggest: of 2 N the smaller half is forgotten -------------------------------------- */

static uint64_t size_of(enum sort_by sort_by, const struct connection *connection)
{
	if (sort_by == SORT_PACKETS)
		return (uint64_t)connection->packets[OUTWARDS] + connection->packets[INWARDS];
	return connection->bytes[OUTWARDS] + connection->bytes[INWARDS];
}

/* qsort() has no context: each record has its own size. */
static int compare_sizes(const void *one, const void *other)
{
	const struct flow_record *a = one, *b = other;

	return a->size > b->size ? -1 : a->size < b->size;
}

void flow_top_sort(struct flow_top *top)
{
	if (top->count)
		qsort(top->list, top->count, sizeof(*top->list), compare_sizes);
	if (top->count > top->limit)
		top->count = top->limit;
}

void flow_top_add(struct flow_top *top, const struct connection_key *key,
		  const struct connection *connection)
{
	size_t room = 2 * (size_t)top->limit;

	if (!top->list)
		top->list = or_exit(calloc(room, sizeof(*top->list)));
	top->list[top->count++] =
		(struct flow_record){*key, *connection, size_of(top->sort_by, connection)};
	if (top->count == room)
		flow_top_sort(top);
}

void flow_top_release(struct flow_top *top)
{
	free(top->list);
	top->list = NULL;
	top->count = 0;
}

/* --- by client or container ---------------------------------------------------------------- */

/* Either is 0 in all of them. */
static int compare(const void *one, const void *other)
{
	const struct flow_group *a = one, *b = other;

	return memcmp(a->client, b->client, sizeof(a->client));
}

static struct flow_group *find(struct flow_groups *groups, const struct flow_group *wanted)
{
	struct flow_group *copy, **found = tfind(wanted, &groups->tree, compare);

	if (found)
		return *found;
	copy = or_exit(malloc(sizeof(*copy)));
	*copy = *wanted;
	or_exit(tsearch(copy, &groups->tree, compare));
	groups->count++;
	return copy;
}

void flow_groups_add(struct flow_groups *groups, const struct connection_key *key,
		     const struct connection *connection)
{
	struct flow_group wanted = {0}, *group;

	if (groups->by == SORT_CLIENT ? connection->begun_inside : !connection->owner.slot)
		return;
	if (groups->by == SORT_CLIENT)
		memcpy(wanted.client, key->outside, sizeof(wanted.client));
	else
		wanted.owner = connection->owner;
	group = find(groups, &wanted);
	group->flows++;
	group->half_open += !(connection->state & STATE_ASSURED);
	group->packets += (uint64_t)connection->packets[INWARDS] + connection->packets[OUTWARDS];
	group->bytes += connection->bytes[INWARDS] + connection->bytes[OUTWARDS];
}

static int compare_flows(const void *one, const void *other)
{
	const struct flow_group *const *a = one, *const *b = other;

	if ((*a)->flows != (*b)->flows)
		return (*a)->flows > (*b)->flows ? -1 : 1;
	return compare(*a, *b);
}

void flow_groups_sort(struct flow_groups *groups)
{
	groups->list = or_exit(calloc(groups->count + 1, sizeof(*groups->list)));
	for (size_t i = 0; i < groups->count; i++) {
		groups->list[i] = *(struct flow_group **)groups->tree;
		tdelete(groups->list[i], &groups->tree, compare);
	}
	qsort(groups->list, groups->count, sizeof(*groups->list), compare_flows);
}

void flow_groups_release(struct flow_groups *groups)
{
	for (size_t i = 0; groups->list && i < groups->count; i++)
		free(groups->list[i]);
	free(groups->list);
	groups->list = NULL;
	tdestroy(groups->tree, free);
	groups->tree = NULL;
}

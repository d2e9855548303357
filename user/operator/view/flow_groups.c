/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_groups.c - how many connections each client, or each container, has. */
#include "operator/view/flow_groups.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

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

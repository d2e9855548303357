/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_top.c - the N biggest of many connections: of 2 N the smaller half is forgotten. */
#include "operator/view/flow_top.h"

#include <stdlib.h>

#include "lib/memory.h"

static uint64_t size_of(enum sort_by sort_by, const struct connection *connection)
{
	if (sort_by == SORT_PACKETS)
		return (uint64_t)connection->packets[OUTWARDS] + connection->packets[INWARDS];
	return connection->bytes[OUTWARDS] + connection->bytes[INWARDS];
}

/* qsort() has no context: each record has its own size. */
static int compare(const void *one, const void *other)
{
	const struct flow_record *a = one, *b = other;

	return a->size > b->size ? -1 : a->size < b->size;
}

void flow_top_sort(struct flow_top *top)
{
	if (top->count)
		qsort(top->list, top->count, sizeof(*top->list), compare);
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

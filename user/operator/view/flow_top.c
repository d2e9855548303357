/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_top.c - the N biggest of many connections: a heap of N, whose root is the smallest. */
#include "operator/view/flow_top.h"

#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"

static uint64_t size_of(enum sort_by sort_by, const struct connection *connection)
{
	if (sort_by == SORT_PACKETS)
		return (uint64_t)connection->packets[OUTWARDS] + connection->packets[INWARDS];
	return connection->bytes[OUTWARDS] + connection->bytes[INWARDS];
}

static bool is_smaller(const struct flow_top *top, size_t one, size_t other)
{
	return size_of(top->sort_by, &top->heap[one].connection) <
	       size_of(top->sort_by, &top->heap[other].connection);
}

static void swap(struct flow_top *top, size_t one, size_t other)
{
	struct flow_record record = top->heap[one];

	top->heap[one] = top->heap[other];
	top->heap[other] = record;
}

static void sift_up(struct flow_top *top, size_t child)
{
	for (; child && is_smaller(top, child, (child - 1) / 2); child = (child - 1) / 2)
		swap(top, child, (child - 1) / 2);
}

/* In the first `count` elements. */
static void sift_down(struct flow_top *top, size_t count)
{
	size_t parent = 0, child;

	while ((child = 2 * parent + 1) < count) {
		if (child + 1 < count && is_smaller(top, child + 1, child))
			child++;
		if (!is_smaller(top, child, parent))
			return;
		swap(top, child, parent);
		parent = child;
	}
}

void flow_top_add(struct flow_top *top, const struct connection_key *key,
		  const struct connection *connection)
{
	size_t place = top->count;

	if (!top->heap)
		top->heap = need(calloc(top->limit, sizeof(*top->heap)));
	if (top->count == top->limit) {
		place = 0;
		if (size_of(top->sort_by, connection) <=
		    size_of(top->sort_by, &top->heap[0].connection))
			return;
	} else {
		top->count++;
	}
	top->heap[place].key = *key;
	top->heap[place].connection = *connection;
	if (place)
		sift_up(top, place);
	else
		sift_down(top, top->count);
}

void flow_top_sort(struct flow_top *top)
{
	for (size_t last = top->count; last > 1; last--) {
		swap(top, 0, last - 1);
		sift_down(top, last - 1);
	}
}

void flow_top_release(struct flow_top *top)
{
	free(top->heap);
	top->heap = NULL;
	top->count = 0;
}

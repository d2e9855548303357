/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_top.h - the N biggest of many connections, in memory for 2 N.
 */
#ifndef OPERATOR_VIEW_FLOW_TOP_H
#define OPERATOR_VIEW_FLOW_TOP_H

#include "operator/options.h"

struct flow_record {
	struct connection_key key;
	struct connection connection;
	uint64_t size; /* by which it is sorted */
};

/* Begins as {.limit, .sort_by}. */
struct flow_top {
	uint32_t limit;
	enum sort_by sort_by;
	struct flow_record *list; /* with room for 2 * limit */
	size_t count;
};

/* Keeps it as long as it may be one of the biggest. */
void flow_top_add(struct flow_top *top, const struct connection_key *key,
		  const struct connection *connection);
/* The biggest first. Nothing can be added afterwards. */
void flow_top_sort(struct flow_top *top);
void flow_top_release(struct flow_top *top);

#endif

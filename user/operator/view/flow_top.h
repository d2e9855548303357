/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_top.h - the N biggest of many connections, in memory for N.
 */
#ifndef OPERATOR_VIEW_FLOW_TOP_H
#define OPERATOR_VIEW_FLOW_TOP_H

#include "operator/options.h"

struct flow_record {
	struct connection_key key;
	struct connection connection;
};

/* Begins as {.limit, .sort_by}. */
struct flow_top {
	uint32_t limit;
	enum sort_by sort_by;
	struct flow_record *heap; /* the smallest first */
	size_t count;
};

/* Keeps it if it is one of the biggest so far. */
void flow_top_add(struct flow_top *top, const struct connection_key *key,
		  const struct connection *connection);
/* The biggest first. Nothing can be added afterwards. */
void flow_top_sort(struct flow_top *top);
void flow_top_release(struct flow_top *top);

#define cleanup_flow_top __attribute__((cleanup(flow_top_release)))

#endif

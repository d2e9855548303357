/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * flow_counts.h - how many connections there are, and could be.
 */
#ifndef OPERATOR_VIEW_FLOW_COUNTS_H
#define OPERATOR_VIEW_FLOW_COUNTS_H

#include <jansson.h>

#include "operator/view/view.h"

/* Begins as {0}. */
struct flow_counts {
	uint64_t established; /* answered, and gone on: they have a place in the map assured */
	uint64_t half_open;
	uint64_t established_max;
	uint64_t half_open_max;
};

/* For each connection that is alive. */
void flow_counts_add(struct flow_counts *counts, const struct connection *connection);
/* The limits, from the maps. */
void flow_counts_read_limits(struct flow_counts *counts, const struct view *view);

/* "table 1,204 of 131,072 (1 %), half-open 1 of 65,536" */
#define FLOW_COUNTS_TEXT_SIZE 160
const char *flow_counts_format(const struct flow_counts *counts, char text[FLOW_COUNTS_TEXT_SIZE]);

/* {"established":1204,"established_max":131072,"half_open":1,"half_open_max":65536} */
json_t *flow_counts_json(const struct flow_counts *counts);

#endif

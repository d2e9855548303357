/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* flow_counts.c - how many connections there are, and could be. */
#include "operator/view/flow_counts.h"

#include <stdio.h>

#include "datapath/load/maps.h"
#include "operator/print/format.h"

void flow_counts_add(struct flow_counts *counts, const struct connection *connection)
{
	if (connection->state & STATE_ASSURED)
		counts->established++;
	else
		counts->half_open++;
}

/* Both maps are used from 1. */
static uint64_t places(const struct view *view, enum map_number map)
{
	uint32_t capacity = map_capacity(&view->datapath.objects, map);

	return capacity ? capacity - 1 : 0;
}

void flow_counts_read_limits(struct flow_counts *counts, const struct view *view)
{
	if (view->is_empty)
		return;
	counts->established_max = places(view, MAP_ASSURED);
	counts->half_open_max = places(view, MAP_HALF_OPEN);
}

json_t *flow_counts_json(const struct flow_counts *counts)
{
	return json_pack("{s:I, s:I, s:I, s:I}", "established", (json_int_t)counts->established,
			 "established_max", (json_int_t)counts->established_max, "half_open",
			 (json_int_t)counts->half_open, "half_open_max",
			 (json_int_t)counts->half_open_max);
}

const char *flow_counts_format(const struct flow_counts *counts, char text[FLOW_COUNTS_TEXT_SIZE])
{
	char numbers[4][NUMBER_TEXT_SIZE];
	uint64_t most = counts->established_max ? counts->established_max : 1;

	snprintf(text, FLOW_COUNTS_TEXT_SIZE, "table %s of %s (%llu %%), half-open %s of %s",
		 format_number(counts->established, numbers[0]),
		 format_number(counts->established_max, numbers[1]),
		 (unsigned long long)(100 * counts->established / most),
		 format_number(counts->half_open, numbers[2]),
		 format_number(counts->half_open_max, numbers[3]));
	return text;
}

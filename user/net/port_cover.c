/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_cover.c - a few ranges that hold many ports. */
#include "net/port_cover.h"

#include <stdlib.h>
#include <string.h>

static int compare_ports(const void *left, const void *right)
{
	return *(const uint16_t *)left - *(const uint16_t *)right;
}

/* Between the range and the next one. */
static int gap_after(const struct port_range *range)
{
	return range[1].first - range[0].last;
}

static void join_nearest(struct port_range *ranges, size_t *count)
{
	size_t nearest = 0;

	for (size_t i = 1; i + 1 < *count; i++)
		if (gap_after(&ranges[i]) < gap_after(&ranges[nearest]))
			nearest = i;
	ranges[nearest].last = ranges[nearest + 1].last;
	memmove(&ranges[nearest + 1], &ranges[nearest + 2],
		(*count - nearest - 2) * sizeof(*ranges));
	(*count)--;
}

size_t port_cover(uint16_t *ports, size_t count, struct port_range ranges[PORT_COVER_RANGES])
{
	struct port_range found[PORT_COVER_RANGES + 1] = {0};
	size_t found_count = 0;

	qsort(ports, count, sizeof(*ports), compare_ports);
	for (size_t i = 0; i < count; i++) {
		if (found_count && ports[i] <= found[found_count - 1].last + 1) {
			found[found_count - 1].last = ports[i];
			continue;
		}
		found[found_count++] = (struct port_range){ports[i], ports[i]};
		if (found_count > PORT_COVER_RANGES)
			join_nearest(found, &found_count);
	}
	memcpy(ranges, found, found_count * sizeof(*ranges));
	return found_count;
}

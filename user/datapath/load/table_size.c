/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* table_size.c - how large the table of connections is, and the maps that go with it. */
#include "datapath/load/table_size.h"

#include <bpf/libbpf.h>
#include <sys/sysinfo.h>

#include "datapath/load/objects.h"
#include "lib/memory.h"

/* One assured connection for so many bytes of memory. */
#define MEMORY_PER_ASSURED (32ULL * 1024)

uint32_t table_default_size(void)
{
	uint32_t assured = MIN_ASSURED;
	uint64_t wanted = MIN_ASSURED;
	struct sysinfo info;

	if (!sysinfo(&info))
		wanted = (uint64_t)info.totalram * info.mem_unit / MEMORY_PER_ASSURED;
	while (assured < MAX_ASSURED && assured + assured / 2 < wanted)
		assured *= 2;
	return assured;
}

int table_set_size(const struct bpf_object *object, uint32_t assured)
{
	const struct {
		enum map_number map;
		uint32_t entries;
	} sizes[] = {
		{MAP_ASSURED, assured + 1}, /* place 0 is none */
		{MAP_HALF_OPEN, HALF_OPEN(assured) + 1},
		{MAP_CONNECTIONS, CONNECTIONS(assured)},
		{MAP_ALIASES, CONNECTIONS(assured)},
	};

	for_each (size, sizes, sizeof(sizes) / sizeof(sizes[0])) {
		struct bpf_map *map = bpf_object__find_map_by_name(object, map_name(size->map));

		if (!map || bpf_map__set_max_entries(map, size->entries))
			return -1;
	}
	return 0;
}

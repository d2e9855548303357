/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_adopt.c - finding lost maps by the programs that run. */
#include "datapath/attach/attach_adopt.h"

#include <bpf/bpf.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/attach/hooks.h"

static bool serves_host(const int maps[MAP_COUNT], uint64_t netns_cookie)
{
	struct meta_head head;

	for (int map = 0; map < MAP_COUNT; map++)
		if (maps[map] < 0)
			return false;
	return !meta_head_read(maps[MAP_META], &head) && head.layout == LAYOUT &&
	       head.netns_cookie == netns_cookie;
}

bool attach_maps_of_program(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct objects used;
	bool ours;

	objects_clear(&used);
	ours = !objects_open_maps_of(program_fd, used.maps) && serves_host(used.maps, netns_cookie);
	if (ours) {
		memcpy(maps, used.maps, sizeof(used.maps));
		objects_clear(&used);
	}
	objects_close(&used);
	return ours;
}

bool attach_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct attached_programs found;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(ifindex, hook, &found);
		for (size_t i = 0; i < found.count; i++) {
			cleanup_close int program = bpf_prog_get_fd_by_id(found.list[i].id);

			if (program >= 0 && attach_maps_of_program(program, netns_cookie, maps))
				return true;
		}
	}
	return false;
}

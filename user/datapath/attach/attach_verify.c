/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_verify.c - whether our programs are where they must be, and the maps that they use. */
#include "datapath/attach/attach_verify.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "lib/cleanup.h"

bool attach_is_container_veth(uint32_t ifindex)
{
	return hook_has_program(ifindex, HOOK_INGRESS, PROGRAM_FROM_CONTAINER);
}

bool attach_maps_of_program(int program_fd, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct meta_head head;
	struct objects used;
	bool ours;

	objects_clear(&used);
	ours = !objects_open_maps_of(program_fd, used.maps);
	for (int map = 0; map < MAP_COUNT; map++)
		ours = ours && used.maps[map] >= 0;
	ours = ours && !meta_head_read(used.maps[MAP_META], &head, NULL) && head.layout == LAYOUT &&
	       head.netns_cookie == netns_cookie;
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

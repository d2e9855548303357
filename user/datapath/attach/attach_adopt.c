/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_adopt.c - finding lost maps by the programs that run, and giving those the new programs.
 */
#include "datapath/attach/attach_adopt.h"

#include <bpf/bpf.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/maps.h"
#include "datapath/attach/shaper.h"

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
	struct copies copies;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_copies(ifindex, hook, &copies);
		for (size_t i = 0; i < copies.count; i++) {
			cleanup_close int program = bpf_prog_get_fd_by_id(copies.list[i].id);

			if (program >= 0 && attach_maps_of_program(program, netns_cookie, maps))
				return true;
		}
	}
	return false;
}

static void refresh_shaper(const struct datapath *datapath, uint32_t ifindex,
			   const struct interface *interface)
{
	uint32_t shaper = shaper_of(ifindex, interface);
	struct cni_error ignored = {0};
	bool created;

	if (shaper && shaper_program(shaper) && shaper_attach(datapath, shaper, &created, &ignored))
		cni_error_release(&ignored);
}

static enum walk refresh_interface(const void *key, const void *value, void *context,
				   struct cni_error *err)
{
	const struct datapath *datapath = context;
	const struct interface *interface = value;
	uint32_t ifindex = *(const uint32_t *)key;
	struct copies copies;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);

		if (program == PROGRAM_COUNT)
			continue;
		hook_find_copies(ifindex, hook, &copies);
		for (size_t i = 0; i < copies.count; i++)
			if (copies.list[i].id != datapath->objects.program_ids[program])
				hook_replace_copy(ifindex, hook, &copies.list[i],
						  datapath->objects.programs[program]);
	}
	refresh_shaper(datapath, ifindex, interface);
	return WALK_ON;
}

void attach_refresh(const struct datapath *datapath)
{
	struct cni_error ignored = {0};

	if (map_walk(&datapath->objects, MAP_INTERFACES, refresh_interface, (void *)datapath,
		     &ignored))
		cni_error_release(&ignored);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_verify.c - whether our programs are where they must be, and the maps that they use. */
#include "datapath/attach/attach_verify.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "lib/cleanup.h"

static bool hook_is_settled(uint32_t ifindex, enum hook hook, uint32_t id)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	tcx_list(ifindex, hook, ids, &count);
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return clsact_find(ifindex, hook) == id;
}

bool attach_is_settled(const struct datapath *datapath, uint32_t ifindex,
		       const struct interface *interface)
{
	const uint32_t *ids = datapath->objects.program_ids;
	uint32_t shaper;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);

		if (program != PROGRAM_COUNT && !hook_is_settled(ifindex, hook, ids[program]))
			return false;
	}
	shaper = shaper_of(ifindex, interface);
	return !shaper || shaper_program(shaper) == ids[PROGRAM_FROM_CONTAINER];
}

static bool verify_hook(const struct datapath *datapath, uint32_t ifindex, enum hook hook,
			enum program_number program, char missing[MISSING_SIZE])
{
	struct attached_programs found;

	hook_find_programs(ifindex, hook, &found);
	for (size_t i = 0; i < found.count; i++) {
		if (found.list[i].program != program)
			continue;
		/* An older program does as well as long as it uses the very maps that are pinned.
		 */
		if (found.list[i].id == datapath->objects.program_ids[program] ||
		    program_uses_maps(found.list[i].id, &datapath->objects))
			return true;
		snprintf(missing, MISSING_SIZE, "%s at %s uses other maps than those in %s",
			 program_name(program), hook_name(hook), datapath->directory);
		return false;
	}
	snprintf(missing, MISSING_SIZE, "%s is not attached at %s", program_name(program),
		 hook_name(hook));
	return false;
}

bool attach_verify(const struct datapath *datapath, uint32_t ifindex,
		   const struct interface *interface, char missing[MISSING_SIZE])
{
	uint32_t shaper = shaper_of(ifindex, interface), id;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);

		if (program != PROGRAM_COUNT &&
		    !verify_hook(datapath, ifindex, hook, program, missing))
			return false;
	}
	id = shaper ? shaper_program(shaper) : 0;
	if (!shaper || (id && program_uses_maps(id, &datapath->objects)))
		return true;
	snprintf(missing, MISSING_SIZE,
		 "a filter ahead of from_container sends all packets to interface number %u, and"
		 " from_container is not attached there; `bpf-portmap attach` repairs it",
		 shaper);
	return false;
}

bool attach_is_container_veth(uint32_t ifindex)
{
	struct attached_programs found;

	hook_find_programs(ifindex, HOOK_INGRESS, &found);
	for (size_t i = 0; i < found.count; i++)
		if (found.list[i].program == PROGRAM_FROM_CONTAINER)
			return true;
	return false;
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
	ours = ours && !meta_head_read(used.maps[MAP_META], &head) && head.layout == LAYOUT &&
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

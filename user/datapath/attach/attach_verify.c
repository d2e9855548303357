/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_verify.c - whether our programs are where they must be. */
#include "datapath/attach/attach_verify.h"

#include <bpf/bpf.h>
#include <stdio.h>

#include "lib/cleanup.h"
#include "datapath/attach/clsact.h"
#include "datapath/attach/hooks.h"
#include "datapath/attach/shaper.h"

static bool hook_is_settled(uint32_t ifindex, enum hook hook, uint32_t id)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	if (tcx_list(ifindex, hook, ids, &count))
		count = 0;
	for (size_t i = 0; i < count; i++)
		if (ids[i] == id)
			return true;
	return clsact_find(ifindex, hook) == id;
}

static bool shaper_is_settled(const struct datapath *datapath, uint32_t ifindex,
			      const struct interface *interface)
{
	uint32_t shaper = shaper_of(ifindex, interface);

	return !shaper ||
	       shaper_program(shaper) == datapath->objects.program_ids[PROGRAM_FROM_CONTAINER];
}

bool attach_is_settled(const struct datapath *datapath, uint32_t ifindex,
		       const struct interface *interface)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		enum program_number program = program_at(interface, hook);

		if (program != PROGRAM_COUNT &&
		    !hook_is_settled(ifindex, hook, datapath->objects.program_ids[program]))
			return false;
	}
	return shaper_is_settled(datapath, ifindex, interface);
}

/* An older program does as well as long as it uses the very maps that are pinned. */
static bool uses_pinned_maps(const struct datapath *datapath, uint32_t id)
{
	cleanup_close int program = bpf_prog_get_fd_by_id(id);
	struct objects used;
	bool same = program >= 0;

	objects_clear(&used);
	if (same)
		objects_open_maps_of(program, used.maps);
	for (int map = 0; same && map < MAP_COUNT; map++)
		same = map_is_same(used.maps[map], datapath->objects.maps[map]);
	objects_close(&used);
	return same;
}

static bool verify_hook(const struct datapath *datapath, uint32_t ifindex,
			const struct interface *interface, enum hook hook, char *missing,
			size_t size)
{
	enum program_number program = program_at(interface, hook);
	struct copies copies;

	hook_find_copies(ifindex, hook, &copies);
	for (size_t i = 0; i < copies.count; i++) {
		if (copies.list[i].program != program)
			continue;
		if (copies.list[i].id == datapath->objects.program_ids[program] ||
		    uses_pinned_maps(datapath, copies.list[i].id))
			return true;
		snprintf(missing, size, "%s at %s uses other maps than those in %s",
			 program_name(program), hook_name(hook), datapath->directory);
		return false;
	}
	snprintf(missing, size, "%s is not attached at %s", program_name(program), hook_name(hook));
	return false;
}

static bool verify_shaper(const struct datapath *datapath, uint32_t ifindex,
			  const struct interface *interface, char *missing, size_t size)
{
	uint32_t shaper = shaper_of(ifindex, interface), id;

	if (!shaper)
		return true;
	id = shaper_program(shaper);
	if (id && uses_pinned_maps(datapath, id))
		return true;
	snprintf(missing, size,
		 "a filter ahead of from_container sends all packets to interface number %u, and"
		 " from_container is not attached there; `bpf-portmap attach` repairs it",
		 shaper);
	return false;
}

bool attach_verify(const struct datapath *datapath, uint32_t ifindex,
		   const struct interface *interface, char *missing, size_t size)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (program_at(interface, hook) != PROGRAM_COUNT &&
		    !verify_hook(datapath, ifindex, interface, hook, missing, size))
			return false;
	return verify_shaper(datapath, ifindex, interface, missing, size);
}

bool attach_is_container_veth(uint32_t ifindex)
{
	struct copies copies;

	hook_find_copies(ifindex, HOOK_INGRESS, &copies);
	for (size_t i = 0; i < copies.count; i++)
		if (copies.list[i].program == PROGRAM_FROM_CONTAINER)
			return true;
	return false;
}

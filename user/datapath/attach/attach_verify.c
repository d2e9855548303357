/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach_verify.c - whether our programs are where they must be. */
#include "datapath/attach/attach_verify.h"

#include <stdio.h>

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

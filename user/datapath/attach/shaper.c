/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* shaper.c - from_container at the device that limits what a container sends. */
#include "datapath/attach/shaper.h"

#include <errno.h>

#include "datapath/attach/clsact.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/bpf_error.h"

uint32_t shaper_of(uint32_t ifindex, const struct interface *interface)
{
	if (program_at(interface, HOOK_INGRESS) != PROGRAM_FROM_CONTAINER ||
	    !clsact_find(ifindex, HOOK_INGRESS))
		return 0;
	return clsact_find_redirect(ifindex);
}

uint32_t shaper_program(uint32_t shaper)
{
	uint32_t id = clsact_find(shaper, HOOK_EGRESS);

	return program_by_id(id) == PROGRAM_FROM_CONTAINER ? id : 0;
}

int shaper_attach(const struct datapath *datapath, uint32_t shaper, bool *created,
		  struct cni_error *err)
{
	int fd = datapath->objects.programs[PROGRAM_FROM_CONTAINER];

	if (shaper_program(shaper) == datapath->objects.program_ids[PROGRAM_FROM_CONTAINER])
		return 0;
	*created = !clsact_create(shaper);
	if (!clsact_attach(shaper, HOOK_EGRESS, fd, true))
		return 0;
	return bpf_error_set(
		err, errno,
		"cannot attach from_container as a filter to egress of interface number"
		" %u, through which the bandwidth plugin sends what the container sends",
		shaper);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - our programs at one hook of an interface: by TCX (Linux 6.6), or as a direct-action
 * filter of the clsact qdisc, or at ingress of the ingress qdisc.
 */
#ifndef DATAPATH_ATTACH_HOOKS_H
#define DATAPATH_ATTACH_HOOKS_H

#include "datapath/attach/roles.h"
#include "datapath/load/datapath.h"

/* The kernel's limit for TCX at one hook. */
#define TCX_PROGRAMS 64

/* One program of ours at a hook. */
struct attached_program {
	enum mechanism mechanism;
	enum program_number program;
	uint32_t id;
};

struct attached_programs {
	struct attached_program list[TCX_PROGRAMS + 1];
	size_t count;
};

/* Finds programs of ours, by TCX and as a filter. */
void hook_find_programs(uint32_t ifindex, enum hook hook, struct attached_programs *found);

/* Returns whether this one hangs there, of whichever set. */
bool hook_has_program(uint32_t ifindex, enum hook hook, enum program_number program);

/* Opens the maps of whatever program of ours is at the interface's hooks, as objects_open_whole()
 * does. */
bool hooks_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT]);

/* Attaches one. 0, or -1 and errno; EEXIST: one is there already; at TCX, this very one. */
int hook_attach(uint32_t ifindex, enum hook hook, enum mechanism mechanism, int program_fd);
/* Puts the program where the attached one is. 0, or -1 and errno. */
int hook_replace(uint32_t ifindex, enum hook hook, const struct attached_program *attached,
		 int program_fd);
void hook_detach(uint32_t ifindex, enum hook hook, const struct attached_program *attached);

/* Reads the ids of the TCX programs at the hook, in the order they run. 0, or -1 and errno; EINVAL:
 * this kernel has no TCX. */
int tcx_list(uint32_t ifindex, enum hook hook, uint32_t ids[TCX_PROGRAMS], size_t *count);

/*
 * The device through which the bandwidth plugin sends what a container sends. A filter of that
 * plugin at the veth's ingress redirects every packet to a device of its own (ifb), which limits
 * them and hands them back behind the veth's filters. That filter has the first priority, so a
 * filter of ours comes after it and never sees a packet; only TCX runs before all filters. So
 * from_container is attached to the egress of that device as well: before the limit, and before the
 * bridge or routing.
 */

/* Returns the id of the program of ours at it, or 0. */
uint32_t shaper_program(uint32_t shaper);

/* Attaches the pinned from_container there. *created: a clsact qdisc was made for it.
 * CNI_ERROR_KERNEL_REFUSED. */
int shaper_attach(const struct datapath *datapath, uint32_t shaper, bool *created,
		  struct cni_error *err);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - what hangs at the hooks of an interface, ours and others': by TCX (Linux 6.6), or as a
 * direct-action filter of the clsact qdisc, or at ingress of the ingress qdisc.
 */
#pragma once

#include "datapath/attach/roles.h"
#include "lib/error.h"
#include "net/tc.h"

/* The kernel's limit for TCX at one hook. */
#define TCX_PROGRAMS 64

/* One program of ours at a hook. */
struct attached_program {
	enum mechanism mechanism;
	enum program_number program;
	uint32_t id;
};

/* Attaches one. 0, or -1 and errno; EEXIST: one is there already; at TCX, this very one. */
int hook_attach(uint32_t ifindex, enum hook hook, enum mechanism mechanism, int program_fd);
/* Puts the program where the attached one is. 0, or -1 and errno. */
int hook_replace(uint32_t ifindex, enum hook hook, const struct attached_program *attached,
		 int program_fd);
void hook_detach(uint32_t ifindex, enum hook hook, const struct attached_program *attached);

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
int shaper_attach(const struct objects *objects, uint32_t shaper, bool *created,
		  struct cni_error *err);

#define HUNG_NAME_SIZE 64

/* A program, or another filter. All TCX programs run before all filters. */
struct hung {
	enum mechanism mechanism;
	enum program_number program; /* PROGRAM_COUNT: another's */
	uint32_t id;                 /* of the program; 0: a filter without one */
	bool on_other_maps;          /* ours, an older one, and not on the maps that are open */
	uint32_t priority;           /* of a filter */
	/* The kernel's announcement of a filter's priority; the filters of that priority follow. */
	bool is_announcement;
	uint32_t redirect;         /* of a filter: where it sends all packets, or 0 */
	char name[HUNG_NAME_SIZE]; /* of another's: "the TCX program count (id 12)" */
};

struct hook_look {
	struct hung *list;
	size_t count;
};

/* Begins as {0}. */
struct hooks_look {
	bool tcx; /* the kernel has such hooks */
	enum ingress_qdisc qdisc;
	struct hook_look hooks[HOOK_COUNT];
	/* The device through which the bandwidth plugin sends what a container sends,
	 * and the id of our program at it; 0: there is none. */
	uint32_t shaper;
	uint32_t shaper_program;
	bool shaper_on_other_maps;
};

/* qdisc: what the interface has at ingress. Release it afterwards. What cannot be read is not
 * there.
 */
void hooks_look(struct hooks_look *look, uint32_t ifindex, enum ingress_qdisc qdisc,
		const struct objects *objects);
void hooks_look_release(struct hooks_look *look);

/* Returns whether this one hangs there, of whichever set. */
bool hook_has_program(uint32_t ifindex, enum hook hook, enum program_number program);

/* Opens the maps of whatever program of ours is at the interface's hooks, as objects_open_whole()
 * does. */
bool hooks_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT]);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks_look.h - what hangs at the hooks of an interface, ours and others', in the order in which
 * it runs.
 */
#ifndef DATAPATH_ATTACH_HOOKS_LOOK_H
#define DATAPATH_ATTACH_HOOKS_LOOK_H

#include "datapath/attach/roles.h"
#include "net/tc.h"

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
	/* The device through which the bandwidth plugin sends what a container sends (hooks.h),
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

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - what hangs at the hooks of an interface, ours and others': by TCX (Linux 6.6), or as a
 * direct-action filter of the clsact qdisc, or at ingress of the ingress qdisc; and changes of it.
 */
#pragma once

#include "datapath/attach/roles.h"
#include "lib/error.h"
#include "net/tc.h"
#include "datapath/load/datapath.h"
#include "net/link.h"

/* The kernel's limit for TCX at one hook. */
#define TCX_PROGRAMS 64

/* One program of ours at a hook. */
struct attached_program {
	enum mechanism mechanism;
	enum program_number program;
	uint32_t id;
};

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

/* --- changes --------------------------------------------------------------------------------
 *
 * What is to be changed is decided in plan/.
 *
 * A container's veth gets TCX wherever the kernel has it. A bandwidth plugin that comes after us in
 * the conflist makes an `ingress` qdisc there, which a clsact qdisc excludes, and no plugin sees
 * the other entries of its conflist.
 *
 * TCX has its price: with RTNL held the kernel waits for RCU (not expedited) for each program that
 * is added to a hook, and once when the interface goes: one to four timer ticks each time
 * (Linux 6.18: 5 to 20 ms), where filters at both hooks take 0.4 ms, but each packet 35 ns more.
 * Neither a link, nor another TCX program there, nor that the veth is down makes a difference; only
 * a replacement does not wait. To attach after the reply would let packets pass that from_container
 * must see first, and a failure could not be reported.
 */

enum hook_action {
	HOOK_ATTACH,  /* one of ours where none is */
	HOOK_REPLACE, /* another one of ours, by the pinned one */
	HOOK_DETACH,
};

struct hook_change {
	enum hook hook;
	enum hook_action action;
	struct attached_program program; /* HOOK_DETACH: that is there; else: to be */
	uint32_t replaced;               /* HOOK_REPLACE: the id of the one that is there */
};

#define MOST_HOOK_CHANGES 16

/* Of one interface. Begins as {0}. */
struct hook_changes {
	struct hook_change list[MOST_HOOK_CHANGES];
	size_t count;
	bool makes_clsact;   /* for the filters; first */
	bool deletes_clsact; /* where no filter is left in it; after what is detached */
	uint32_t shaper;     /* from_container is attached there too (hooks.h); 0: nowhere */
};

/* What one call attached where nothing of ours was before, to take it back when the rest of an ADD
 * fails: a program on a veth without an attachment drops all packets. Begins as {0}. */
struct attach_undo {
	bool qdisc;                                   /* clsact was added */
	struct attached_program attached[HOOK_COUNT]; /* id 0: none */
	uint32_t shaper;                              /* clsact was added to this interface */
};

/* Makes the changes. Never touches a program or qdisc that is not ours. What it attached is added
 * to *undo, also when it fails. CNI_ERROR_KERNEL_REFUSED. */
int attach_apply(const struct datapath *datapath, const struct link_name *at,
		 const struct hook_changes *changes, struct attach_undo *undo,
		 struct cni_error *err);
void attach_rollback(uint32_t ifindex, const struct attach_undo *undo);

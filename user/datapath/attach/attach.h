/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.h - changes what hangs at the interfaces of the host. What is to be changed is decided in
 * plan/.
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
#pragma once

#include "datapath/attach/hooks.h"
#include "datapath/load/datapath.h"
#include "net/link.h"

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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * attach.h - our programs at the interfaces of the host.
 */
#ifndef DATAPATH_ATTACH_ATTACH_H
#define DATAPATH_ATTACH_ATTACH_H

#include "conf/conf.h"
#include "datapath/attach/hooks.h"
#include "datapath/load/datapath.h"

/* How to attach where none of our programs is yet.
 *
 * A container's veth gets TCX wherever the kernel has it. A bandwidth plugin that comes after us in
 * the conflist makes an `ingress` qdisc there, which a clsact qdisc excludes, and no plugin sees
 * the other entries of its conflist. TCX has its price: the kernel waits for RCU (not expedited)
 * with RTNL held, once for each hook when the first program is attached and once when the interface
 * goes. That is one to four timer ticks each time; a filter costs a tenth of a millisecond. */
struct attach_target {
	uint32_t ifindex;
	const char *name; /* for messages */
	/* To be: role and link header say which programs, attach_mode how they are attached. A
	 * container's attach_mode is an order, a host interface's a wish: one conflist must not
	 * fail because of what is on an interface of the host. */
	struct interface interface;
};

/* What one call attached where nothing of ours was before, to take it back when the rest of an ADD
 * fails: a program on a veth without an attachment drops all packets. Begins as {0}. */
struct attach_undo {
	bool qdisc;                                   /* clsact was added */
	struct attached_program attached[HOOK_COUNT]; /* id 0: none */
	uint32_t shaper;                              /* clsact was added to this interface */
};

/* Makes each program that the role has stand at its hook exactly once and be the pinned one:
 * attaches, replaces an older one, removes second copies. Never touches a program or qdisc that is
 * not ours. Where another process was faster, that is fine; a host's interface that turns out to be
 * a container's veth is left to the container. Takes the lock to remove copies, so call it without.
 * What it attached is added to *undo, also when it fails. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int attach_interface(const struct datapath *datapath, const struct attach_target *target,
		     struct attach_undo *undo, struct cni_error *err);
void attach_rollback(uint32_t ifindex, const struct attach_undo *undo);

/* Removes the programs that belong to an interface with this entry. */
void detach_all(uint32_t ifindex, const struct interface *interface);

/* Replaces our programs at all interfaces in the map by those of the datapath, in place, where they
 * are others; adds none. One that cannot be replaced does not keep the others from it. -1:
 * CNI_ERROR_KERNEL_REFUSED naming one. */
int attach_refresh(const struct datapath *datapath, struct cni_error *err);

#endif

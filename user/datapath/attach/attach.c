/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - changes what hangs at the interfaces of the host. */
#include "datapath/attach/attach.h"

#include <errno.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "lib/cleanup.h"

/* Another process may have been faster, or the interface may have gone: then nothing is left to do
 * here. */
static bool is_settled(enum hook_action action, int error)
{
	return action == HOOK_ATTACH ? error == EEXIST : error == ENODEV || error == ENOENT;
}

static int refuse_change(const struct hook_change *change, const struct link_name *at, int error,
			 struct cni_error *err)
{
	const char *name = program_name(change->program.program), *hook = hook_name(change->hook);
	bool tcx = change->program.mechanism == MECHANISM_TCX;

	if (change->action == HOOK_REPLACE)
		return bpf_error_set(err, error, "cannot replace %s at %s of interface %s", name,
				     hook, at->name);
	return bpf_error_set(err, error, "cannot attach %s %s to %s of interface %s", name,
			     tcx ? "by TCX" : "as a filter", hook, at->name);
}

static int make_change(const struct datapath *datapath, const struct link_name *at,
		       const struct hook_change *change, struct attach_undo *undo,
		       struct cni_error *err)
{
	const struct attached_program *program = &change->program;
	cleanup_close int fd = -1;
	struct attached_program old = *program;
	int result;

	if (change->action == HOOK_DETACH) {
		hook_detach(at->ifindex, change->hook, program);
		return 0;
	}
	fd = program_open(&datapath->objects, program->program);
	old.id = change->replaced;
	result = change->action == HOOK_ATTACH
			 ? hook_attach(at->ifindex, change->hook, program->mechanism, fd)
			 : hook_replace(at->ifindex, change->hook, &old, fd);
	if (result)
		return is_settled(change->action, errno) ? 0
							 : refuse_change(change, at, errno, err);
	if (change->action == HOOK_ATTACH)
		undo->attached[change->hook] = *program;
	return 0;
}

/* Of an interface that is up the kernel takes the queues out of service for it, and waits for RCU
 * (expedited) with RTNL held: a third of what an ADD costs where nothing else is going on, and most
 * of it where much is. */
static int make_clsact(const struct link_name *at, struct attach_undo *undo, struct cni_error *err)
{
	if (!qdisc_add_clsact(at->ifindex))
		undo->qdisc = true;
	else if (errno != EEXIST)
		return bpf_error_set(err, errno, "cannot add a clsact qdisc to interface %s",
				     at->name);
	return 0;
}

int attach_apply(const struct datapath *datapath, const struct link_name *at,
		 const struct hook_changes *changes, struct attach_undo *undo,
		 struct cni_error *err)
{
	bool created = false;
	int result;

	if (changes->makes_clsact && make_clsact(at, undo, err))
		return -1;
	for (size_t i = changes->count; i-- > 0;)
		if (changes->list[i].action != HOOK_DETACH &&
		    make_change(datapath, at, &changes->list[i], undo, err))
			return -1;
	for (size_t i = 0; i < changes->count; i++)
		if (changes->list[i].action == HOOK_DETACH)
			make_change(datapath, at, &changes->list[i], undo, err);
	if (changes->deletes_clsact)
		qdisc_delete_empty_clsact(at->ifindex);
	if (!changes->shaper)
		return 0;
	result = shaper_attach(&datapath->objects, changes->shaper, &created, err);
	if (created)
		undo->shaper = changes->shaper;
	return result;
}

void attach_rollback(uint32_t ifindex, const struct attach_undo *undo)
{
	const struct attached_program from_container = {MECHANISM_CLSACT, PROGRAM_FROM_CONTAINER,
							0};

	for (int hook = 0; hook < HOOK_COUNT; hook++)
		if (undo->attached[hook].id)
			hook_detach(ifindex, hook, &undo->attached[hook]);
	/* Others may have added filters meanwhile. */
	if (undo->qdisc)
		qdisc_delete_empty_clsact(ifindex);
	if (undo->shaper) {
		hook_detach(undo->shaper, HOOK_EGRESS, &from_container);
		qdisc_delete_empty_clsact(undo->shaper);
	}
}

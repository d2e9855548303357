/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hooks.c - what hangs at the hooks of an interface, and changes of it. */
#include "datapath/attach/hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/bpf_error.h"
#include "lib/memory.h"
#include "lib/cleanup.h"

/* enum bpf_attach_type of Linux 6.6; older headers lack the names. */
static const enum bpf_attach_type tcx_types[HOOK_COUNT] = {
	[HOOK_INGRESS] = 46, /* BPF_TCX_INGRESS */
	[HOOK_EGRESS] = 47,  /* BPF_TCX_EGRESS */
};

/* The ids in the order they run. 0, or -1 and errno; EINVAL: this kernel has no TCX. */
static int tcx_list(uint32_t ifindex, enum hook hook, uint32_t ids[TCX_PROGRAMS], size_t *count)
{
	uint32_t found = TCX_PROGRAMS;
	int result = bpf_prog_query((int)ifindex, tcx_types[hook], 0, NULL, ids, &found);

	*count = result ? 0 : found;
	/* Linux 6.6 says ENOENT of an interface that never had any. */
	return result && errno != ENOENT ? -1 : 0;
}

/* Appends; or puts it in the place of another one (replaced_fd, else -1). */
static int tcx_attach(uint32_t ifindex, enum hook hook, int program_fd, int replaced_fd)
{
	LIBBPF_OPTS(bpf_prog_attach_opts, options);

	if (replaced_fd >= 0) {
		options.flags = BPF_F_REPLACE;
		options.replace_prog_fd = replaced_fd;
	}
	return bpf_prog_attach_opts(program_fd, (int)ifindex, tcx_types[hook], &options);
}

/* Where a program is there already, EEXIST unless it is to be replaced. */
static int clsact_attach(uint32_t ifindex, enum hook hook, int program_fd, bool replace)
{
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);
	char name[64];

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		return -1;
	snprintf(name, sizeof(name), "%s:[%u]", info.name, info.id);
	return filter_add(ifindex, hook == HOOK_INGRESS, program_fd, name, replace);
}

/* 0, or -1 and errno; EEXIST: one is there already; at TCX, this very one. */
static int hook_attach(uint32_t ifindex, enum hook hook, enum mechanism mechanism, int program_fd)
{
	return mechanism == MECHANISM_TCX ? tcx_attach(ifindex, hook, program_fd, -1)
					  : clsact_attach(ifindex, hook, program_fd, false);
}

/* Puts the program where the attached one is. 0, or -1 and errno. */
static int hook_replace(uint32_t ifindex, enum hook hook, const struct attached_program *attached,
			int program_fd)
{
	cleanup_close int old = -1;

	if (attached->mechanism == MECHANISM_CLSACT)
		return clsact_attach(ifindex, hook, program_fd, true);
	old = bpf_prog_get_fd_by_id(attached->id);
	return old < 0 ? -1 : tcx_attach(ifindex, hook, program_fd, old);
}

void hook_detach(uint32_t ifindex, enum hook hook, const struct attached_program *attached)
{
	cleanup_close int fd = -1;

	if (attached->mechanism == MECHANISM_CLSACT) {
		filter_delete(ifindex, hook == HOOK_INGRESS);
		return;
	}
	fd = bpf_prog_get_fd_by_id(attached->id);
	if (fd >= 0)
		bpf_prog_detach2(fd, (int)ifindex, tcx_types[hook]);
}

uint32_t shaper_program(uint32_t shaper)
{
	uint32_t id = filter_program(shaper, false);

	return program_by_id(id) == PROGRAM_FROM_CONTAINER ? id : 0;
}

/* Attaches the pinned from_container there. *created: a clsact qdisc was made for it. */
static int shaper_attach(const struct objects *objects, uint32_t shaper, bool *created,
			 struct cni_error *err)
{
	cleanup_close int fd = program_open(objects, PROGRAM_FROM_CONTAINER);

	if (shaper_program(shaper) == objects->program_ids[PROGRAM_FROM_CONTAINER])
		return 0;
	*created = !qdisc_add_clsact(shaper);
	if (!clsact_attach(shaper, HOOK_EGRESS, fd, true))
		return 0;
	return bpf_error_set(
		err, errno,
		"cannot attach from_container as a filter to egress of interface number"
		" %u, through which the bandwidth plugin sends what the container sends",
		shaper);
}

/* --- a look at all of it ------------------------------------------------------------------- */

static void name_program(uint32_t id, const char *what, char name[HUNG_NAME_SIZE])
{
	cleanup_close int fd = bpf_prog_get_fd_by_id(id);
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);

	memset(&info, 0, sizeof(info));
	if (fd < 0 || bpf_obj_get_info_by_fd(fd, &info, &size) || !info.name[0])
		snprintf(name, HUNG_NAME_SIZE, "the %s with id %u", what, id);
	else
		snprintf(name, HUNG_NAME_SIZE, "the %s %.16s (id %u)", what, info.name, id);
}

/* The pinned ones are known by their ids; others cost a question, and are told by name: a process
 * that did not see the first set may have loaded a second. */
static enum program_number which_program(const struct objects *objects, uint32_t id)
{
	for (int program = 0; program < PROGRAM_COUNT; program++)
		if (objects->program_ids[program] == id)
			return (enum program_number)program;
	return program_by_id(id);
}

/* Without maps of ours nobody can say. */
static bool is_on_other_maps(const struct objects *objects, const struct hung *hung)
{
	return objects->program_ids[hung->program] != hung->id && objects->maps[MAP_META] >= 0 &&
	       !program_uses_maps(hung->id, objects);
}

static struct hung *add_hung(struct hook_look *hook, enum mechanism mechanism, uint32_t id,
			     const struct objects *objects)
{
	struct hung *hung = ARRAY_ADD(hook->list, hook->count);

	*hung = (struct hung){.mechanism = mechanism, .program = PROGRAM_COUNT, .id = id};
	if (id)
		hung->program = which_program(objects, id);
	hung->on_other_maps = hung->program != PROGRAM_COUNT && is_on_other_maps(objects, hung);
	return hung;
}

static void look_at_tcx(struct hooks_look *look, uint32_t ifindex, enum hook hook,
			const struct objects *objects)
{
	uint32_t ids[TCX_PROGRAMS];
	size_t count;

	/* An interface that has gone says nothing of the kernel. */
	look->tcx = !tcx_list(ifindex, hook, ids, &count) || errno != EINVAL;
	for (size_t i = 0; i < count; i++) {
		struct hung *hung = add_hung(&look->hooks[hook], MECHANISM_TCX, ids[i], objects);

		if (hung->program == PROGRAM_COUNT)
			name_program(ids[i], "TCX program", hung->name);
	}
}

static bool filter_has_our_place(const struct filter *filter)
{
	return filter->priority == FILTER_PRIORITY &&
	       (!filter->handle || filter->handle == FILTER_HANDLE);
}

static void look_at_filters(struct hooks_look *look, uint32_t ifindex, enum hook hook,
			    const struct objects *objects)
{
	struct filter_list filters = {0};

	filters_read(ifindex, hook == HOOK_INGRESS, &filters);
	for_each (filter, filters.list, filters.count) {
		bool is_ours = filter_has_our_place(filter);
		struct hung *hung;

		if (is_ours && !filter->handle)
			continue;
		hung = add_hung(&look->hooks[hook], MECHANISM_CLSACT, filter->program, objects);
		hung->priority = filter->priority;
		hung->is_announcement = !filter->handle;
		hung->redirect = filter->redirect;
		/* In another place it is as little ours as a copy that somebody else attached. */
		if (!is_ours)
			hung->program = PROGRAM_COUNT;
		if (hung->program != PROGRAM_COUNT || hung->is_announcement)
			continue;
		if (filter->program)
			name_program(filter->program, "tc program", hung->name);
		else
			snprintf(hung->name, sizeof(hung->name), "a tc filter (%s, priority %u)",
				 filter->kind, filter->priority);
	}
	free(filters.list);
}

static void look_at_shaper(struct hooks_look *look, const struct objects *objects)
{
	const struct hook_look *ingress = &look->hooks[HOOK_INGRESS];
	struct hung at_shaper = {.program = PROGRAM_FROM_CONTAINER};

	for (size_t i = 0; i < ingress->count && !look->shaper; i++)
		if (ingress->list[i].priority < FILTER_PRIORITY)
			look->shaper = ingress->list[i].redirect;
	if (!look->shaper)
		return;
	at_shaper.id = look->shaper_program = shaper_program(look->shaper);
	look->shaper_on_other_maps = at_shaper.id && is_on_other_maps(objects, &at_shaper);
}

void hooks_look(struct hooks_look *look, uint32_t ifindex, enum ingress_qdisc qdisc,
		const struct objects *objects)
{
	*look = (struct hooks_look){.qdisc = qdisc};
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		look_at_tcx(look, ifindex, (enum hook)hook, objects);
	if (look->qdisc == INGRESS_QDISC_NONE)
		return;
	look_at_filters(look, ifindex, HOOK_INGRESS, objects);
	/* An `ingress` qdisc answers for egress with what is at ingress. */
	if (look->qdisc == INGRESS_QDISC_CLSACT)
		look_at_filters(look, ifindex, HOOK_EGRESS, objects);
	look_at_shaper(look, objects);
}

void hooks_look_release(struct hooks_look *look)
{
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		free(look->hooks[hook].list);
	*look = (struct hooks_look){0};
}

/* Looks at programs of whichever set, with no maps at hand. */
static void look_without_maps(struct hooks_look *look, uint32_t ifindex)
{
	struct objects none;

	objects_clear(&none);
	hooks_look(look, ifindex, qdisc_at_ingress(ifindex), &none);
}

bool hook_has_program(uint32_t ifindex, enum hook hook, enum program_number program)
{
	struct hooks_look look;
	bool found = false;

	look_without_maps(&look, ifindex);
	for (size_t i = 0; i < look.hooks[hook].count; i++)
		found |= look.hooks[hook].list[i].program == program;
	hooks_look_release(&look);
	return found;
}

static bool opens_maps(const struct hung *hung, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	cleanup_close int program = -1;

	if (hung->program != PROGRAM_COUNT)
		program = bpf_prog_get_fd_by_id(hung->id);
	return program >= 0 && objects_open_whole(program, netns_cookie, maps);
}

bool hooks_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct hooks_look look;
	bool found = false;

	look_without_maps(&look, ifindex);
	for (int hook = 0; hook < HOOK_COUNT; hook++)
		for (size_t i = 0; i < look.hooks[hook].count && !found; i++)
			found = opens_maps(&look.hooks[hook].list[i], netns_cookie, maps);
	hooks_look_release(&look);
	return found;
}

/* --- changes -------------------------------------------------------------------------------- */

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

int attach_apply(const struct datapath *datapath, const struct link_name *at,
		 const struct hook_changes *changes, struct attach_undo *undo,
		 struct cni_error *err)
{
	bool created = false;
	int result;

	/* Of an interface that is up the kernel takes the queues out of service for it, and waits
	 * for RCU (expedited) with RTNL held: a third of what an ADD costs where nothing else is
	 * going on, and most of it where much is. */
	if (changes->makes_clsact && !qdisc_add_clsact(at->ifindex))
		undo->qdisc = true;
	else if (changes->makes_clsact && errno != EEXIST)
		return bpf_error_set(err, errno, "cannot add a clsact qdisc to interface %s",
				     at->name);
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

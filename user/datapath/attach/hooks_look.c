/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hooks_look.c - what hangs at the hooks of an interface. */
#include "datapath/attach/hooks_look.h"

#include <bpf/bpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/attach/hooks.h"
#include "lib/array.h"
#include "lib/cleanup.h"

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

/* The pinned ones are known by their ids; others cost a question. */
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

static struct hung *add(struct hook_look *hook, enum mechanism mechanism, uint32_t id,
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

	look->tcx = !tcx_list(ifindex, hook, ids, &count);
	for (size_t i = 0; look->tcx && i < count; i++) {
		struct hung *hung = add(&look->hooks[hook], MECHANISM_TCX, ids[i], objects);

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
	for (size_t i = 0; i < filters.count; i++) {
		const struct filter *filter = &filters.list[i];
		bool is_ours = filter_has_our_place(filter);
		struct hung *hung;

		if (is_ours && !filter->handle)
			continue;
		hung = add(&look->hooks[hook], MECHANISM_CLSACT, filter->program, objects);
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

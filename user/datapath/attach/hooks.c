/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hooks.c - which program belongs at which hook, and which of ours are there. */
#include "datapath/attach/hooks.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lib/cleanup.h"
#include "net/tc.h"
#include "datapath/load/bpf_error.h"

/* enum bpf_attach_type of Linux 6.6; older headers lack the names. */
static const enum bpf_attach_type tcx_types[HOOK_COUNT] = {
	[HOOK_INGRESS] = 46, /* BPF_TCX_INGRESS */
	[HOOK_EGRESS] = 47,  /* BPF_TCX_EGRESS */
};

int tcx_list(uint32_t ifindex, enum hook hook, uint32_t ids[TCX_PROGRAMS], size_t *count)
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

static struct filter_place place_at(uint32_t ifindex, enum hook hook)
{
	return (struct filter_place){
		.ifindex = ifindex,
		.egress = hook == HOOK_EGRESS,
		.priority = FILTER_PRIORITY,
		.handle = FILTER_HANDLE,
	};
}

/* The id of the program there, or 0. */
static uint32_t clsact_find(uint32_t ifindex, enum hook hook)
{
	struct filter_place place = place_at(ifindex, hook);

	return filter_program(&place);
}

/* Where a program is there already, EEXIST unless it is to be replaced. */
static int clsact_attach(uint32_t ifindex, enum hook hook, int program_fd, bool replace)
{
	struct filter_place place = place_at(ifindex, hook);
	struct bpf_prog_info info;
	uint32_t size = sizeof(info);
	char name[64];

	memset(&info, 0, sizeof(info));
	if (bpf_obj_get_info_by_fd(program_fd, &info, &size))
		return -1;
	snprintf(name, sizeof(name), "%s:[%u]", info.name, info.id);
	return filter_add(&place, program_fd, name, replace);
}

/* Programs are told by name: a process that did not see the first set may have loaded a second. */
void hook_find_programs(uint32_t ifindex, enum hook hook, struct attached_programs *found)
{
	uint32_t ids[TCX_PROGRAMS], filter = clsact_find(ifindex, hook);
	enum program_number program;
	size_t count;

	found->count = 0;
	if (tcx_list(ifindex, hook, ids, &count))
		count = 0;
	for (size_t i = 0; i < count; i++) {
		program = program_by_id(ids[i]);
		if (program != PROGRAM_COUNT)
			found->list[found->count++] =
				(struct attached_program){MECHANISM_TCX, program, ids[i]};
	}
	/* An `ingress` qdisc answers for egress with what is at ingress. */
	program = filter ? program_by_id(filter) : PROGRAM_COUNT;
	if (program != PROGRAM_COUNT && program_hook(program) == hook)
		found->list[found->count++] =
			(struct attached_program){MECHANISM_CLSACT, program, filter};
}

bool hook_has_program(uint32_t ifindex, enum hook hook, enum program_number program)
{
	struct attached_programs found;

	hook_find_programs(ifindex, hook, &found);
	for (size_t i = 0; i < found.count; i++)
		if (found.list[i].program == program)
			return true;
	return false;
}

bool hooks_find_maps(uint32_t ifindex, uint64_t netns_cookie, int maps[MAP_COUNT])
{
	struct attached_programs found;

	for (int hook = 0; hook < HOOK_COUNT; hook++) {
		hook_find_programs(ifindex, hook, &found);
		for (size_t i = 0; i < found.count; i++) {
			cleanup_close int program = bpf_prog_get_fd_by_id(found.list[i].id);

			if (program >= 0 && objects_open_whole(program, netns_cookie, maps))
				return true;
		}
	}
	return false;
}

int hook_attach(uint32_t ifindex, enum hook hook, enum mechanism mechanism, int program_fd)
{
	return mechanism == MECHANISM_TCX ? tcx_attach(ifindex, hook, program_fd, -1)
					  : clsact_attach(ifindex, hook, program_fd, false);
}

int hook_replace(uint32_t ifindex, enum hook hook, const struct attached_program *attached,
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
	struct filter_place place = place_at(ifindex, hook);
	cleanup_close int fd = -1;

	if (attached->mechanism == MECHANISM_CLSACT) {
		filter_delete(&place);
		return;
	}
	fd = bpf_prog_get_fd_by_id(attached->id);
	if (fd >= 0)
		bpf_prog_detach2(fd, (int)ifindex, tcx_types[hook]);
}

uint32_t shaper_program(uint32_t shaper)
{
	uint32_t id = clsact_find(shaper, HOOK_EGRESS);

	return program_by_id(id) == PROGRAM_FROM_CONTAINER ? id : 0;
}

int shaper_attach(const struct datapath *datapath, uint32_t shaper, bool *created,
		  struct cni_error *err)
{
	cleanup_close int fd = program_open(&datapath->objects, PROGRAM_FROM_CONTAINER);

	if (shaper_program(shaper) == datapath->objects.program_ids[PROGRAM_FROM_CONTAINER])
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

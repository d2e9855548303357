/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* hooks.c - which program belongs at which hook, and which of ours are there. */
#include "datapath/attach/hooks.h"

#include <bpf/bpf.h>

#include "lib/cleanup.h"
#include "datapath/attach/clsact.h"

/* PROGRAM_COUNT: none at this hook. */
static const enum program_number programs_of_role[][HOOK_COUNT] = {
	[ROLE_UPLINK] = {PROGRAM_FROM_UPLINK, PROGRAM_TO_UPLINK},
	[ROLE_BRIDGE] = {PROGRAM_FROM_BRIDGE, PROGRAM_TO_CONTAINER},
	[ROLE_PORT] = {PROGRAM_FROM_CONTAINER, PROGRAM_COUNT},
	[ROLE_ROUTED] = {PROGRAM_FROM_CONTAINER, PROGRAM_TO_CONTAINER},
};

/* For an uplink whose frames begin with the IP header. */
static const enum program_number raw_programs[HOOK_COUNT] = {
	PROGRAM_FROM_UPLINK_RAW,
	PROGRAM_TO_UPLINK_RAW,
};

static const enum hook hook_of_program[PROGRAM_COUNT] = {
	[PROGRAM_FROM_UPLINK] = HOOK_INGRESS,     [PROGRAM_TO_UPLINK] = HOOK_EGRESS,
	[PROGRAM_FROM_UPLINK_RAW] = HOOK_INGRESS, [PROGRAM_TO_UPLINK_RAW] = HOOK_EGRESS,
	[PROGRAM_FROM_BRIDGE] = HOOK_INGRESS,     [PROGRAM_TO_CONTAINER] = HOOK_EGRESS,
	[PROGRAM_FROM_CONTAINER] = HOOK_INGRESS,
};

static const char *const hook_names[HOOK_COUNT] = {
	[HOOK_INGRESS] = "ingress",
	[HOOK_EGRESS] = "egress",
};

enum program_number program_at(const struct interface *interface, enum hook hook)
{
	enum interface_role role = interface->role;

	if (role < ROLE_UPLINK || role > ROLE_ROUTED)
		return PROGRAM_COUNT;
	if (role == ROLE_UPLINK && interface->without_link_header)
		return raw_programs[hook];
	return programs_of_role[role][hook];
}

const char *hook_name(enum hook hook)
{
	return hook_names[hook];
}

/* Programs are told by name: a process that did not see the first set may have loaded a second. */
void hook_find_programs(uint32_t ifindex, enum hook hook, struct attached_programs *found)
{
	uint32_t ids[TCX_PROGRAMS], filter = clsact_find(ifindex, hook);
	enum program_number program;
	size_t count;

	found->count = found->foreign_tcx = 0;
	found->tcx = !tcx_list(ifindex, hook, ids, &count);
	for (size_t i = 0; found->tcx && i < count; i++) {
		program = program_by_id(ids[i]);
		if (program == PROGRAM_COUNT)
			found->foreign_tcx++;
		else
			found->list[found->count++] =
				(struct attached_program){MECHANISM_TCX, program, ids[i]};
	}
	/* An `ingress` qdisc answers for egress with what is at ingress. */
	program = filter ? program_by_id(filter) : PROGRAM_COUNT;
	if (program != PROGRAM_COUNT && hook_of_program[program] == hook)
		found->list[found->count++] =
			(struct attached_program){MECHANISM_CLSACT, program, filter};
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
	cleanup_close int fd = -1;

	if (attached->mechanism == MECHANISM_CLSACT) {
		clsact_detach(ifindex, hook);
		return;
	}
	fd = bpf_prog_get_fd_by_id(attached->id);
	if (fd >= 0)
		tcx_detach(ifindex, hook, fd);
}

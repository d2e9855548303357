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

/* Of an uplink whose frames begin with the IP header. */
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

/* Programs are told by name: a second set may have been loaded by who did not see the
 * first. In the common case, one of ours at TCX, this is two system calls. */
void hook_find_copies(uint32_t ifindex, enum hook hook, struct copies *copies)
{
	uint32_t ids[TCX_PROGRAMS], filter;
	size_t count;

	copies->count = copies->foreign_tcx = 0;
	copies->tcx = !tcx_list(ifindex, hook, ids, &count);
	if (!copies->tcx)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		enum program_number program = program_by_id(ids[i]);

		if (program == PROGRAM_COUNT)
			copies->foreign_tcx++;
		else
			copies->list[copies->count++] =
				(struct copy){MECHANISM_TCX, program, ids[i]};
	}
	filter = clsact_find(ifindex, hook);
	if (filter) {
		enum program_number program = program_by_id(filter);

		/* An `ingress` qdisc answers for egress with what is at ingress. */
		if (program != PROGRAM_COUNT && hook_of_program[program] == hook)
			copies->list[copies->count++] =
				(struct copy){MECHANISM_CLSACT, program, filter};
	}
}

int hook_replace_copy(uint32_t ifindex, enum hook hook, const struct copy *copy, int program_fd)
{
	cleanup_close int old = -1;

	if (copy->mechanism == MECHANISM_CLSACT)
		return clsact_attach(ifindex, hook, program_fd, true);
	old = bpf_prog_get_fd_by_id(copy->id);
	if (old < 0)
		return -1;
	return tcx_attach(ifindex, hook, program_fd, old);
}

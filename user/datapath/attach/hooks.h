/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * hooks.h - which program belongs at which hook, and which of ours are there.
 */
#ifndef DATAPATH_ATTACH_HOOKS_H
#define DATAPATH_ATTACH_HOOKS_H

#include "datapath/load/objects.h"
#include "datapath/attach/tcx.h"

enum mechanism {
	MECHANISM_TCX,
	MECHANISM_CLSACT,
};

/* One program of ours at a hook. */
struct attached_program {
	enum mechanism mechanism;
	enum program_number program;
	uint32_t id;
};

struct attached_programs {
	struct attached_program list[TCX_PROGRAMS + 1];
	size_t count;
	size_t foreign_tcx; /* programs of others at the TCX hook */
	bool tcx;           /* the kernel has such hooks */
};

/* Returns which program belongs at the hook; PROGRAM_COUNT: none, or the role is not known. Of an
 * interface's entry only what says that is looked at. */
enum program_number program_at(const struct interface *interface, enum hook hook);

/* "ingress", "egress" */
const char *hook_name(enum hook hook);

/* Finds programs of ours, by TCX and as a filter. */
void hook_find_programs(uint32_t ifindex, enum hook hook, struct attached_programs *found);

/* Attaches one. 0, or -1 and errno; EEXIST: one is there already; at TCX, this very one. */
int hook_attach(uint32_t ifindex, enum hook hook, enum mechanism mechanism, int program_fd);
/* Puts the program where the attached one is. 0, or -1 and errno. */
int hook_replace(uint32_t ifindex, enum hook hook, const struct attached_program *attached,
		 int program_fd);
void hook_detach(uint32_t ifindex, enum hook hook, const struct attached_program *attached);

#endif

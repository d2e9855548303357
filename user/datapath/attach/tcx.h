/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tcx.h - programs at an interface's TCX hooks (Linux 6.6), without libbpf's help:
 * the oldest libbpf we build with knows nothing of them.
 */
#ifndef DATAPATH_ATTACH_TCX_H
#define DATAPATH_ATTACH_TCX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum hook {
	HOOK_INGRESS,
	HOOK_EGRESS,
	HOOK_COUNT,
};

/* The kernel's limit for one hook. */
#define TCX_PROGRAMS 64

/* Reads the ids of the programs at the hook, in the order they run. 0, or -1 and errno; EINVAL:
 * this kernel has no TCX. */
int tcx_list(uint32_t ifindex, enum hook hook, uint32_t ids[TCX_PROGRAMS], size_t *count);

/* Appends; or puts it in the place of another one (replaced_fd, else -1). EEXIST: this very program
 * is there. 0, or -1 and errno. */
int tcx_attach(uint32_t ifindex, enum hook hook, int program_fd, int replaced_fd);
int tcx_detach(uint32_t ifindex, enum hook hook, int program_fd);

/* Returns whether the kernel has TCX, by asking at an interface that exists. */
bool tcx_is_supported(uint32_t ifindex);

#endif

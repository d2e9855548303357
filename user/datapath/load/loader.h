/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * loader.h - puts our programs into the kernel.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "datapath/load/objects.h"
#include "trace_event.h"

/* Loads all programs over the maps that are open in `objects`, makes the others, and leaves
 * everything open there. A new table of connections has room for so many assured ones; 0: as fits
 * the machine. Every program is bound to every map: the maps live as long as one program does, and
 * can be found by it. *sees_devices: as in struct meta. CNI_ERROR_KERNEL_REFUSED, the verifier's
 * last words in the details; `objects` is then as it was. */
int loader_load(struct objects *objects, uint32_t assured, bool *sees_devices,
		struct cni_error *err);

/* Loads those for the host's sockets over the maps in `objects`, which are all open; -1 for those
 * of other purposes. Close them. CNI_ERROR_KERNEL_REFUSED, with details as above. */
int loader_load_socket_programs(const struct objects *objects, enum socket_purpose purpose,
				int fds[SOCKET_PROGRAM_COUNT], struct cni_error *err);

/* Loads the program that tells which packets the kernel drops, through `events`, and attaches it to
 * the tracepoint for as long as the file descriptor that it returns is open. *has_reason: whether
 * the kernel tells why (since 5.17). -1: CNI_ERROR_KERNEL_REFUSED, also where it has no BTF. */
int loader_attach_drops(const struct objects *objects, int events,
			const struct trace_filter *filter, bool *has_reason, struct cni_error *err);

/* Loads the program that records connections which conntrack translates (bpf/adopt.bpf.c) over the
 * maps in `objects`, which are all open. Close it. CNI_ERROR_KERNEL_REFUSED, with details as above.
 */
int loader_load_adopt(const struct objects *objects, int *program, struct cni_error *err);

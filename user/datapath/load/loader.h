/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* loader.h - puts our programs into the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "datapath/load/objects.h"

struct bpf_object;
struct bpf_program;

/* What the programs were loaded with, as in struct meta. */
struct loaded_senses {
	bool sees_devices;
	enum conntrack_use conntrack;
};

/* Loads all programs over the maps that are open in `objects`, makes the others, and leaves
 * everything open there. A new table of connections has room for so many assured ones; 0: as fits
 * the machine. Every program is bound to every map: the maps live as long as one program does, and
 * can be found by it. CNI_ERROR_KERNEL_REFUSED, the verifier's last words in the details; `objects`
 * is then as it was. */
int loader_load(struct objects *objects, uint32_t assured, struct loaded_senses *senses,
		struct cni_error *err);

/* Loads those for the host's sockets over the maps in `objects`, which are all open; -1 for those
 * of other purposes. Close them. CNI_ERROR_KERNEL_REFUSED, with details as above. */
int loader_load_socket_programs(const struct objects *objects, enum socket_purpose purpose,
				int fds[SOCKET_PROGRAM_COUNT], struct cni_error *err);

/* Loads what is opened, over the maps in `objects`, which are all open. CNI_ERROR_KERNEL_REFUSED,
 * with details as above. */
int loader_load_over_maps(struct bpf_object *object, const struct objects *objects,
			  struct cni_error *err);

/* Returns a file descriptor of the program's that stays when its object goes. -1:
 * CNI_ERROR_KERNEL_REFUSED. */
int loader_keep_program(const struct bpf_program *program, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * socket_hooks.h - our programs at the sockets of the host's processes.
 *
 * They are attached to the root of cgroup2 by bpf_links, which are pinned beside the maps: when the
 * pins are removed, so are the programs. Other programs at these hooks are not touched.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "datapath/load/datapath.h"
#include "datapath/load/objects.h"
#include "lib/error.h"

/* Attaches those of the purpose that are missing: all of them or, on failure, none more. Where
 * the pins were listed and nothing is missing it takes no lock and costs microseconds; a link that
 * is pinned but was detached is then seen only where it is one of connect or bind.
 * CNI_ERROR_KERNEL_REFUSED, saying what the obstacle is, and CNI_ERROR_TRY_AGAIN. */
int socket_hooks_attach(struct datapath *datapath, enum socket_purpose purpose,
			struct cni_error *err);

/* Checks whether there is room for those of the purpose that are missing; loads nothing.
 * CNI_ERROR_KERNEL_REFUSED, saying what the obstacle is. */
int socket_hooks_probe(const struct datapath *datapath, enum socket_purpose purpose,
		       struct cni_error *err);

/* Checks whether those of the purpose are attached and use the pinned maps.
 * CNI_ERROR_KERNEL_REFUSED, naming one that does not. */
int socket_hooks_verify(const struct datapath *datapath, enum socket_purpose purpose,
			struct cni_error *err);

/* Returns whether one of the purpose was ever attached, and its pin is still there. */
bool socket_hooks_are_used(const struct datapath *datapath, enum socket_purpose purpose);

/* Attaches again those that were detached, or that a mapped port needs; with dry_run only says for
 * which purposes there are such. Where those for "localhost" never were attached, and cannot be,
 * that is a warning. CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_TRY_AGAIN. */
int socket_hooks_repair(struct datapath *datapath, bool dry_run, bool repaired[SOCKET_PURPOSES],
			struct cni_error *err);

/* After the maps or programs were loaded anew: gives those that are attached the new programs.
 * Where these do not load that is a warning, and those that work on our maps stay. One on other
 * maps is detached, for nobody uses those any more. */
void socket_hooks_refresh(const struct datapath *datapath);

struct cgroup_root {
	int fd;
	bool is_whole; /* else it is a part of the tree, and there are processes outside of it */
	char path[PATH_MAX];
};

/* Opens the highest cgroup of version 2 that is mounted, wherever that is: beside version 1 it
 * usually is /sys/fs/cgroup/unified. Close the fd. CNI_ERROR_KERNEL_REFUSED: none is mounted. */
int cgroup_root_open(struct cgroup_root *root, struct cni_error *err);

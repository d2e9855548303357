/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* datapath.h - the maps and programs of the host we run on, as they are in the kernel. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/error.h"
#include "datapath/load/objects.h"
#include "datapath/load/pins.h"

enum datapath_state {
	DATAPATH_ABSENT,   /* nothing is pinned, or there is no BPF file system */
	DATAPATH_DAMAGED,  /* a pin is missing or older than the last load, or that was not finished
			    */
	DATAPATH_FOREIGN,  /* of another layout */
	DATAPATH_OUTDATED, /* whole, but the programs are older than this plugin, or blind */
	DATAPATH_READY,
};

struct datapath {
	enum datapath_state state;
	int lock; /* -1: none */
	uint64_t netns_cookie;
	char directory[PIN_DIRECTORY_SIZE];
	struct objects objects;
	uint32_t links;                   /* as struct pins_found has it */
	uint32_t layout;                  /* of the maps that are pinned; 0: not known */
	char maker[PROGRAM_VERSION_SIZE]; /* the version of bpf-portmap that made them, or "" */
	bool is_blind;                    /* the programs are older than another NAT's module */
	bool sees_devices;                /* they see qdiscs and filters by themselves */
	const char *foreign;              /* the map that has another shape, or NULL */
};

/* Opens what is pinned and changes nothing, with the lock, which it has until it is closed. The
 * state says what was found. Close it also after a failure. CNI_ERROR_KERNEL_REFUSED,
 * CNI_ERROR_TRY_AGAIN. */
int datapath_open(struct datapath *datapath, enum datapath_use use, struct cni_error *err);
void datapath_close(struct datapath *datapath);

/* Returns whether the maps can be read and written: READY or OUTDATED. */
bool datapath_is_usable(const struct datapath *datapath);

/* Returns what this kernel keeps from programs that are loaded and could be asked about other NAT
 * of the host, or NULL. */
const char *datapath_conntrack_gap(const struct datapath *datapath);

/* Returns what this kernel, if it is PREEMPT_RT, may not promise to programs, or NULL. */
const char *datapath_realtime_gap(void);

/* Sets CNI_ERROR_KERNEL_REFUSED and what to do, for a state that is FOREIGN. -1. */
int datapath_refuse_foreign(const struct datapath *datapath, struct cni_error *err);

/* Checks whether this process may use BPF. CNI_ERROR_KERNEL_REFUSED and why not. Without
 * permission every look-up fails. */
int probe_permission(struct cni_error *err);

/* Checks whether it could run the programs. CNI_ERROR_NOT_AVAILABLE and why not: kernel too old, no
 * BPF, no permission, lockdown, user namespace. */
int probe_kernel(struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pins_lock.h - one loader at a time on each BPF file system, which hosts may share.
 *
 * flock on the directory into which objects are pinned before they are moved to their place: a
 * loader makes it, only root can open it, and it is on the file system that it protects.
 */
#ifndef DATAPATH_LOAD_PINS_LOCK_H
#define DATAPATH_LOAD_PINS_LOCK_H

#include "lib/error.h"

struct pins_lock {
	int directory;
	int older; /* what bpf-portmap 0.1 locks */
};

#define PINS_LOCK_NONE \
	{ \
		.directory = -1, .older = -1 \
	}

/* *lock begins as PINS_LOCK_NONE. Afterwards PINS_LOADING exists, with what a killed loader left.
 * Moves away what other users have put in its place. Take the host's lock first.
 * CNI_ERROR_TRY_AGAIN, CNI_ERROR_KERNEL_REFUSED, CNI_ERROR_IO. */
int pins_lock_take(struct pins_lock *lock, struct cni_error *err);
void pins_lock_release(struct pins_lock *lock);

#define cleanup_pins_lock __attribute__((cleanup(pins_lock_release)))

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * pins_lock.h - one loader at a time on each BPF file system, which hosts may share.
 *
 * flock on the directory that objects are pinned into before they are moved to their place: who
 * loads makes it, only root can open it, and it is on the file system that it is about.
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

/* *lock begins as PINS_LOCK_NONE. PINS_LOADING is there then, with what a killed loader left. Takes
 * away what other users have put in the way. Take the host's lock first. Codes 11, 102, 5. */
int pins_lock_take(struct pins_lock *lock, struct cni_error *err);
void pins_lock_release(struct pins_lock *lock);

#define cleanup_pins_lock __attribute__((cleanup(pins_lock_release)))

#endif

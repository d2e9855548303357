/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - which pools and addresses Docker has: a file, read and written under a lock.
 *
 * Every request reads the file and writes it before it answers, so there is nothing in memory that
 * could be lost or differ. {"driver": whose it is, "pools": {POOLID: pool}}, where a pool is
 *
 *   "plan":      which plugin is asked and how (plan.h)
 *   "subPool":   the part that any address is chosen from; missing: the whole
 *   "users":     how many RequestPool had no ReleasePool; 0: is forgotten with its last address
 *   "since":     seconds
 *   "addresses": {ADDRESS: {"id": as which container, "since": seconds, "gateway": how many
 *                networks have it as theirs}}; an id of "" was asked of no plugin
 *   "changing":  [id]: those that a plugin was going to be run for. What is found there was left by
 *                a run that was killed or by a plugin that failed: the plugin gets a DEL
 */
#ifndef IPAM_STATE_H
#define IPAM_STATE_H

#include <jansson.h>

#include "lib/error.h"
#include "ipam/settings.h"

/* Begins as STATE_NONE. */
struct state {
	int lock;
	const struct settings *settings;
	json_t *root;
	json_t *pools; /* borrowed from it */
};

#define STATE_NONE \
	{ \
		.lock = -1 \
	}

/* Waits for the lock, for as long as a plugin may take and somewhat longer; makes the directory of
 * --state where it is missing. CNI_ERROR_IO, CNI_ERROR_TRY_AGAIN. */
int state_lock(struct state *state, const struct settings *settings, struct cni_error *err);

/* Does the same and reads the file. One that cannot be read, or is another driver's, is never
 * overwritten. Also CNI_ERROR_DECODE. */
int state_open(struct state *state, const struct settings *settings, struct cni_error *err);

/* Writes the file, or leaves the old one. CNI_ERROR_IO. */
int state_write(const struct state *state, struct cni_error *err);

void state_close(struct state *state);

#define cleanup_state __attribute__((cleanup(state_close)))

#endif

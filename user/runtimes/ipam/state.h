/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * state.h - which pools and addresses Docker has: a file for each subnet, read and written under a
 * lock of the subnet.
 *
 * Every request reads the file and writes it before it answers, so there is nothing in memory that
 * could be lost or differ, and a plugin that hangs keeps nobody waiting but its own subnet's
 * requests. {"driver": whose it is, "pools": {POOLID: pool}}: the subnet as a whole and its
 * sub-pools, which share one plan. A pool is
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
#pragma once

#include <jansson.h>

#include "lib/error.h"
#include "lib/address.h"
#include "runtimes/ipam/settings.h"

/* Begins as STATE_NONE. */
struct state {
	int lock;
	const struct settings *settings;
	struct prefix subnet;
	json_t *root;
	json_t *pools; /* borrowed from it */
};

#define STATE_NONE \
	{ \
		.lock = -1 \
	}

static inline json_int_t pool_users(const json_t *pool)
{
	return json_integer_value(json_object_get(pool, "users"));
}

/* Waits for the subnet's lock, makes the directory of --state where it is missing, and reads the
 * subnet's file. One that cannot be read, or is another driver's, is never overwritten.
 * CNI_ERROR_IO, CNI_ERROR_DECODE, CNI_ERROR_TRY_AGAIN. */
int state_open(struct state *state, const struct settings *settings, const struct prefix *subnet,
	       struct cni_error *err);

/* Waits for the lock that is above those of the subnets, which nobody holds for long: the holder
 * may list all subnets, and make one. state_unlock_all() or state_close() ends it. */
int state_lock_all(struct state *state, const struct settings *settings, struct cni_error *err);
void state_unlock_all(const struct state *state);

/* Returns the subnets that have a file, as ADDRESS/LENGTH: a new array, or NULL and CNI_ERROR_IO.
 */
json_t *state_subnets(const struct settings *settings, struct cni_error *err);

/* Writes the file, or leaves the old one; removes it if it has no pools. CNI_ERROR_IO. */
int state_write(const struct state *state, struct cni_error *err);

void state_close(struct state *state);

#define cleanup_state __attribute__((cleanup(state_close)))

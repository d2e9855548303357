/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.h - addresses that Docker asks for and gives back.
 *
 * What a plugin is run for is written down before, so that the next request of the subnet can undo
 * what a killed run has left: an address is lost only if the kill comes after the last write and
 * before Docker has the answer, which reconcile finds.
 */
#pragma once

#include <stdbool.h>

#include "lib/error.h"
#include "runtimes/ipam/state.h"

struct address_request {
	const char *pool_id;
	const char *address; /* "": any */
	bool gateway;        /* it may be the gateway of several networks */
};

/* Gives an address: *answer is "ADDRESS/LENGTH", malloc'ed. Errors name pool and address. */
int address_request(struct state *state, const struct address_request *request, char **answer,
		    struct cni_error *err);

/* Takes it back. One that was not given is no error, as Docker asks again when it had no answer; a
 * pool that is not there is one. After an error, or while the plugin fails, it is taken back by the
 * next address_repair(). */
int address_release(struct state *state, const char *pool_id, const char *address,
		    struct cni_error *err);

/* Takes all of a pool back, and forgets the pool if it has no users. The same after an error. */
int address_release_all(struct state *state, const char *pool_id, struct cni_error *err);

/* Has freed what killed runs and failed releases have left in the subnet, until the plugin fails;
 * forgets pools without users. */
int address_repair(struct state *state, struct cni_error *err);

/* Takes over what the plugin has given to this driver and no pool knows, in memory only. The record
 * is as of store.h. Returns whether it was such an address. */
bool address_adopt(struct state *state, const char *pool_id, const char *address, json_t *record);

/* Returns the pool, or NULL and CNI_ERROR_INVALID_CONFIGURATION. */
json_t *address_find_pool(const struct state *state, const char *pool_id, struct cni_error *err);

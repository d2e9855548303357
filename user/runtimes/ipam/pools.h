/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pools.h - pools that Docker asks for, one for each network and family, and gives back. */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "lib/error.h"
#include "runtimes/ipam/state.h"

/* The address space, which begins all IDs. Docker asks for that of a swarm on one of its hosts, and
 * on another one when that one has gone: it is refused, as the state is of this host. */
#define POOL_SPACE "docker-local"
#define POOL_SPACE_OF_SWARM "docker-global"

struct pool_request {
	const char *space;
	const char *pool;     /* "": to be chosen */
	const char *sub_pool; /* "": none */
	const json_t *options;
	bool ipv6; /* of a pool that is to be chosen */
};

/* Counts one more user of the pool, which may be new. The state is that of its subnet, or is opened
 * here. *answer: {"PoolID", "Pool", "Data"}, a new reference. The same request gets the same pool,
 * unless it is to be chosen. Errors name the pool. */
int pool_request(struct state *state, const struct settings *settings,
		 const struct pool_request *request, json_t **answer, struct cni_error *err);

/* Opens the state of the pool's subnet, in which the pool may be missing. */
int pool_open(struct state *state, const struct settings *settings, const char *pool_id,
	      struct cni_error *err);

/* Returns the ID that such a request gets, malloc'ed; sub_pool: "" for none. NULL and
 * CNI_ERROR_INVALID_CONFIGURATION. */
char *pool_format_id(const char *pool, const char *sub_pool, struct cni_error *err);

/* Counts one less. The last one takes all addresses back that are left; after an error a later
 * request does. */
int pool_release(struct state *state, const char *pool_id, struct cni_error *err);

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * plan.h - which CNI plugin gives a pool's addresses, with which configuration.
 *
 * A pool that is a subnet of a conflist gets that list's "ipam" and name, so that the plugin has
 * one store for the containers of both. Any other pool gets the object of --ipam and a name of its
 * own. The plan is kept with the pool, and does not follow later changes of the conflist.
 */
#pragma once

#include <jansson.h>

#include "lib/error.h"
#include "lib/address.h"
#include "runtimes/ipam/settings.h"

struct plan_request {
	struct prefix pool;
	const char *network; /* whose conflist is meant; NULL: any one with the subnet */
};

/* Returns {"name", "cniVersion", "subnet", "config": what the plugin finds on stdin, "range": what
 * host-local is given, "gateway": the conflist's}. A new reference, or NULL and
 * CNI_ERROR_INVALID_CONFIGURATION, or what reading conflists sets: one that cannot be read could
 * have the subnet. */
json_t *plan_make(const struct plan_request *request, const struct settings *settings,
		  struct cni_error *err);

/* Returns whether a conflist has a subnet that overlaps: no pool to be chosen for Docker. */
bool plan_overlaps_conflist(const struct prefix *pool);

/* Which address of which pool, under which container ID the plugin keeps it. */
struct plan_call {
	const json_t *pool; /* as of state.h */
	const struct settings *settings;
	const char *id;
};

/* Runs ADD. `wanted`: an address, or NULL for any one of the sub-pool. Gets
 * the first address that the plugin gave of the pool. What the plugin itself reports, and
 * CNI_ERROR_INVALID_CONFIGURATION for an answer without an address of the pool. */
int plan_add(const struct plan_call *call, const char *wanted, char given[CNI_ADDRESS_TEXT_SIZE],
	     struct cni_error *err);

/* Runs DEL. */
int plan_del(const struct plan_call *call, struct cni_error *err);

/* Returns the pool's prefix. */
struct prefix plan_prefix(const json_t *pool);
/* Returns the address that a gateway gets that was not asked for by its address. */
char *plan_default_gateway(const json_t *pool, char text[CNI_ADDRESS_TEXT_SIZE]);
/* Returns the gateway that the plugin never gives, because the conflist has it; "" for none. */
const char *plan_own_gateway(const json_t *pool);

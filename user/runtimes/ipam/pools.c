/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* pools.c - pools that Docker asks for, one for each network and family, and gives back. */
#include "runtimes/ipam/pools.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/text.h"
#include "runtimes/ipam/addresses.h"
#include "runtimes/ipam/plan.h"

#define NETWORK_OPTION "network"
/* Docker's own, such as com.docker.network.ipam.serial, may come with any request. */
#define DOCKER_OPTIONS "com.docker."
#define ULA 0xfd /* RFC 4193: the first byte, and the length of its subnets */
#define ULA_LENGTH 64
#define ULA_TRIES 16

struct wanted {
	struct prefix pool;
	struct prefix part;
	bool has_part;
	const char *network;
};

static int read_options(const json_t *options, struct wanted *wanted, struct cni_error *err)
{
	const char *name;
	json_t *value;

	json_object_foreach ((json_t *)options, name, value) {
		if (!strncmp(name, DOCKER_OPTIONS, strlen(DOCKER_OPTIONS)))
			continue;
		if (strcmp(name, NETWORK_OPTION) || !json_string_length(value))
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "unknown option \"%s\": there is only " NETWORK_OPTION
					     "=NAME, the name of a CNI network",
					     name);
		wanted->network = json_string_value(value);
	}
	return 0;
}

/* Returns a subnet that the pool overlaps with, borrowed, or NULL. `own`: the pool's own subnet is
 * no other one. */
static json_t *overlapping(const json_t *subnets, const struct prefix *pool, bool own)
{
	json_t *other;
	size_t index;

	json_array_foreach ((json_t *)subnets, index, other) {
		struct prefix prefix;

		if (!prefix_parse(json_string_value(other), &prefix) &&
		    prefix_overlaps(&prefix, pool) && !(own && prefix_equals(&prefix, pool)))
			return other;
	}
	return NULL;
}

static bool may_choose(const json_t *subnets, const struct prefix *pool)
{
	return !overlapping(subnets, pool, false) && !plan_overlaps_conflist(pool);
}

static bool choose_ipv6(const json_t *subnets, struct prefix *pool)
{
	for (int i = 0; i < ULA_TRIES; i++) {
		*pool = (struct prefix){.length = ULA_LENGTH};
		if (getrandom(pool->address, ULA_LENGTH / 8, 0) != ULA_LENGTH / 8)
			return false;
		pool->address[0] = ULA;
		if (may_choose(subnets, pool))
			return true;
	}
	return false;
}

/* As Docker's own driver: 172.18.0.0/16 to 172.31.0.0/16, then 192.168.0.0/20 and so on. */
static bool choose_ipv4(const json_t *subnets, struct prefix *pool)
{
	char text[PREFIX_TEXT_SIZE];

	for (int i = 18; i < 32; i++) {
		snprintf(text, sizeof(text), "172.%d.0.0/16", i);
		if (!prefix_parse(text, pool) && may_choose(subnets, pool))
			return true;
	}
	for (int i = 0; i < 256; i += 16) {
		snprintf(text, sizeof(text), "192.168.%d.0/20", i);
		if (!prefix_parse(text, pool) && may_choose(subnets, pool))
			return true;
	}
	return false;
}

/* When the pool overlaps with an interface of the host, Docker asks for another one before it gives
 * this one back. */
static int choose(const struct settings *settings, bool ipv6, struct prefix *pool,
		  struct cni_error *err)
{
	cleanup_json json_t *subnets = state_subnets(settings, err);

	if (!subnets)
		return -1;
	if (ipv6 ? choose_ipv6(subnets, pool) : choose_ipv4(subnets, pool))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no pool to choose is left: give one with --subnet");
}

static int read_prefixes(const char *pool, const char *sub_pool, struct wanted *wanted,
			 struct cni_error *err)
{
	if (prefix_parse(pool, &wanted->pool))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it is no ADDRESS/LENGTH");
	wanted->has_part = *sub_pool;
	if (!wanted->has_part)
		return 0;
	if (prefix_parse(sub_pool, &wanted->part) || wanted->part.length < wanted->pool.length ||
	    !prefix_contains(&wanted->pool, wanted->part.address))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "sub-pool %s is no part of it", sub_pool);
	return 0;
}

static char *format_id(const struct wanted *wanted)
{
	char pool[PREFIX_TEXT_SIZE], part[PREFIX_TEXT_SIZE];

	prefix_format(&wanted->pool, pool);
	if (!wanted->has_part)
		return cni_format(POOL_SPACE "/%s", pool);
	return cni_format(POOL_SPACE "/%s/%s", pool, prefix_format(&wanted->part, part));
}

char *pool_format_id(const char *pool, const char *sub_pool, struct cni_error *err)
{
	struct wanted wanted;

	return read_prefixes(pool, sub_pool, &wanted, err) ? NULL : format_id(&wanted);
}

static int check_network(const json_t *plan, const char *network, struct cni_error *err)
{
	const char *name = json_string_value(json_object_get(plan, "name"));

	if (!network || !name || !strcmp(network, name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "it has the addresses of the CNI network \"%s\" already, not of "
			     "\"%s\": remove the Docker networks of this subnet first",
			     name, network);
}

static json_t *make_plan(const struct state *state, const struct wanted *wanted,
			 struct cni_error *err)
{
	const struct plan_request request = {wanted->pool, wanted->network};
	cleanup_json json_t *subnets = state_subnets(state->settings, err);
	/* Its own file may be there without a pool, if somebody has mended it. */
	const json_t *other = overlapping(subnets, &wanted->pool, true);

	if (!subnets)
		return NULL;
	if (!other)
		return plan_make(&request, state->settings, err);
	return cni_error_null(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "it overlaps with the subnet %s of another Docker network",
			      json_string_value(other));
}

/* Pools of one subnet have one plan, even if conflists have changed between them. */
static json_t *plan_of_others(const struct state *state)
{
	const char *id;
	json_t *other;

	json_object_foreach (state->pools, id, other)
		return json_incref(json_object_get(other, "plan"));
	return NULL;
}

static json_t *make_pool(const struct state *state, const struct wanted *wanted,
			 struct cni_error *err)
{
	json_t *plan = plan_of_others(state);
	char part[PREFIX_TEXT_SIZE];

	if (!plan)
		plan = make_plan(state, wanted, err);
	if (!plan)
		return NULL;
	return json_pack("{s:o, s:s*, s:i, s:I, s:{}, s:[]}", "plan", plan, "subPool",
			 wanted->has_part ? prefix_format(&wanted->part, part) : NULL, "users", 0,
			 "since", (json_int_t)time(NULL), "addresses", "changing");
}

static void set_users(json_t *pool, json_int_t users)
{
	json_object_set_new(pool, "users", json_integer(users));
	json_object_set_new(pool, "since", json_integer((json_int_t)time(NULL)));
}

static int check_space(const char *space, struct cni_error *err)
{
	if (!strcmp(space, POOL_SPACE))
		return 0;
	if (!strcmp(space, POOL_SPACE_OF_SWARM))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "networks of a swarm can have no addresses of cni-ipam, which "
				     "knows those of one host");
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "there is no address space \"%s\", only " POOL_SPACE, space);
}

static int read_request(const struct pool_request *request, struct wanted *wanted,
			struct cni_error *err)
{
	if (check_space(request->space, err) || read_options(request->options, wanted, err))
		return -1;
	if (*request->pool)
		return read_prefixes(request->pool, request->sub_pool, wanted, err);
	if (*request->sub_pool)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "sub-pool %s without a pool: give --subnet, too",
				     request->sub_pool);
	if (wanted->network)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     NETWORK_OPTION "=%s without a pool: give --subnet, too",
				     wanted->network);
	return 0;
}

static int add(struct state *state, const struct wanted *wanted, json_t **answer,
	       struct cni_error *err)
{
	cleanup_free char *id = format_id(wanted);
	json_t *pool = json_object_get(state->pools, id);
	char text[PREFIX_TEXT_SIZE];

	if (!pool) {
		pool = make_pool(state, wanted, err);
		if (!pool)
			return -1;
		json_object_set_new(state->pools, id, pool);
	}
	if (check_network(json_object_get(pool, "plan"), wanted->network, err))
		return -1;
	set_users(pool, pool_users(pool) + 1);
	if (state_write(state, err))
		return -1;
	*answer = json_pack("{s:s, s:s, s:{}}", "PoolID", id, "Pool",
			    prefix_format(&wanted->pool, text), "Data");
	return 0;
}

static int find_or_make(struct state *state, const struct settings *settings,
			const struct pool_request *request, json_t **answer, struct cni_error *err)
{
	struct wanted wanted = {0};
	int failed;

	if (read_request(request, &wanted, err))
		return -1;
	while (!state->root) {
		if ((!*request->pool && choose(settings, request->ipv6, &wanted.pool, err)) ||
		    state_open(state, settings, &wanted.pool, err))
			return -1;
		/* Another request may have chosen the same one. */
		if (!*request->pool && json_object_size(state->pools))
			state_close(state);
	}
	/* Nobody else makes a pool meanwhile. */
	if (state_lock_all(state, settings, err))
		return -1;
	failed = add(state, &wanted, answer, err);
	state_unlock_all(state);
	return failed;
}

int pool_request(struct state *state, const struct settings *settings,
		 const struct pool_request *request, json_t **answer, struct cni_error *err)
{
	if (!find_or_make(state, settings, request, answer, err))
		return 0;
	return cni_error_wrap(err, "pool %s", *request->pool ? request->pool : "(to be chosen)");
}

int pool_open(struct state *state, const struct settings *settings, const char *pool_id,
	      struct cni_error *err)
{
	size_t space = strlen(POOL_SPACE "/");
	cleanup_free char *text = NULL;
	struct prefix subnet;

	if (!strncmp(pool_id, POOL_SPACE "/", space)) {
		const char *slash = strchr(pool_id + space, '/');

		text = or_exit(strdup(pool_id + space));
		if (slash)
			text[slash + 1 + strcspn(slash + 1, "/") - pool_id - space] = '\0';
	}
	if (!text || prefix_parse(text, &subnet))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "there is no pool \"%s\"", pool_id);
	return state_open(state, settings, &subnet, err);
}

int pool_release(struct state *state, const char *pool_id, struct cni_error *err)
{
	json_t *pool = address_find_pool(state, pool_id, err);

	if (!pool)
		return -1;
	set_users(pool, pool_users(pool) > 1 ? pool_users(pool) - 1 : 0);
	if (pool_users(pool) ? state_write(state, err) : address_release_all(state, pool_id, err))
		return cni_error_wrap(err, "pool %s", pool_id);
	return 0;
}

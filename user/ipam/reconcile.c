/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile.c - reconcile: compares with what Docker has.
 *
 * Docker is asked first and the state opened after that, so an address that Docker gets meanwhile
 * looks like one that nobody has; --grace keeps it. Nothing waits for Docker under the lock, since
 * Docker may wait for the lock.
 */
#include "ipam/reconcile.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "cnirun/output.h"
#include "ipam/addresses.h"
#include "ipam/docker.h"
#include "ipam/plan.h"
#include "ipam/pools.h"
#include "ipam/state.h"

struct comparison {
	struct state state;
	json_t *docker;
	const struct settings *settings;
	json_t *differences; /* [{"difference", "pool", "address"}] */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* The ID that pools.c makes. */
static bool is_of_pool(const json_t *docker, const char *pool_id)
{
	cleanup_free char *id = NULL;
	struct prefix pool, part;
	char text[PREFIX_TEXT_SIZE], part_text[PREFIX_TEXT_SIZE];

	if (prefix_parse(text_of(docker, "Subnet"), &pool))
		return false;
	prefix_format(&pool, text);
	if (prefix_parse(text_of(docker, "IPRange"), &part))
		id = cni_format("%s/%s", text_of(docker, "space"), text);
	else
		id = cni_format("%s/%s/%s", text_of(docker, "space"), text,
				prefix_format(&part, part_text));
	return !strcmp(id, pool_id);
}

static int count_users(const struct comparison *comparison, const char *pool_id)
{
	const json_t *docker;
	size_t index;
	int count = 0;

	json_array_foreach (comparison->docker, index, docker)
		count += is_of_pool(docker, pool_id);
	return count;
}

static bool docker_has(const struct comparison *comparison, const char *pool_id,
		       const char *address)
{
	const json_t *docker;
	size_t index;

	json_array_foreach (comparison->docker, index, docker) {
		if (is_of_pool(docker, pool_id) &&
		    json_object_get(json_object_get(docker, "addresses"), address))
			return true;
	}
	return false;
}

/* `address`: "" for the pool itself. */
static void report(struct comparison *comparison, const char *what, const char *pool_id,
		   const char *address)
{
	json_array_append_new(comparison->differences,
			      json_pack("{s:s, s:s, s:s*}", "difference", what, "pool", pool_id,
					"address", *address ? address : NULL));
}

static int print(const struct comparison *comparison, struct cni_error *err)
{
	const json_t *difference;
	size_t index;

	if (comparison->settings->json)
		return output_json(comparison->differences, err);
	json_array_foreach (comparison->differences, index, difference) {
		const char *address = text_of(difference, "address");

		output_text("%s%s: %s%s%s\n", comparison->settings->dry_run ? "would be " : "",
			    text_of(difference, "difference"), text_of(difference, "pool"),
			    *address ? " " : "", address);
	}
	if (!index)
		output_text("no differences\n");
	return output_flush(err);
}

static bool is_old(const struct comparison *comparison, const json_t *record)
{
	json_int_t since = json_integer_value(json_object_get(record, "since"));

	return since + (json_int_t)comparison->settings->grace <= (json_int_t)time(NULL);
}

static void give_back_addresses(struct comparison *comparison, const char *pool_id, json_t *pool,
				struct cni_error *err)
{
	cleanup_json json_t *addresses = json_copy(json_object_get(pool, "addresses"));
	bool used = count_users(comparison, pool_id);
	const char *address;
	json_t *record;

	json_object_foreach (addresses, address, record) {
		struct cni_error problem = {0};

		/* Docker tells of a gateway only if it was given with --gateway. */
		if (docker_has(comparison, pool_id, address) || !is_old(comparison, record) ||
		    (used && json_object_get(record, "gateway")))
			continue;
		report(comparison, "given back", pool_id, address);
		if (comparison->settings->dry_run)
			continue;
		/* No network has it, so none has it as a gateway. */
		json_object_del(record, "gateway");
		if (address_release(&comparison->state, pool_id, address, &problem))
			cni_error_join(err, &problem);
	}
}

/* What Docker lost before it gave it back. */
static void give_back(struct comparison *comparison, const char *pool_id, json_t *pool,
		      struct cni_error *err)
{
	json_int_t users = json_integer_value(json_object_get(pool, "users"));
	int count = count_users(comparison, pool_id);
	struct cni_error problem = {0};

	give_back_addresses(comparison, pool_id, pool, err);
	/* A pool without users is one whose release has failed. */
	if ((count && users == count) || !is_old(comparison, pool))
		return;
	report(comparison, count ? "counted again" : "given back", pool_id, "");
	if (comparison->settings->dry_run)
		return;
	json_object_set_new(pool, "users", json_integer(count ? count : 1));
	if (count ? state_write(&comparison->state, &problem)
		  : pool_release(&comparison->state, pool_id, &problem))
		cni_error_join(err, &problem);
}

/* The ID of a pool that was not there is that which Docker remembers, as it follows from the
 * request. */
static int ask_for_pool(struct comparison *comparison, const json_t *docker, char **id,
			struct cni_error *err)
{
	const struct pool_request request = {
		.space = text_of(docker, "space"),
		.pool = text_of(docker, "Subnet"),
		.sub_pool = text_of(docker, "IPRange"),
		.options = json_object_get(docker, "Options"),
	};
	cleanup_json json_t *answer = NULL;
	const char *pool_id;
	json_t *pool;

	json_object_foreach (comparison->state.pools, pool_id, pool) {
		if (is_of_pool(docker, pool_id)) {
			*id = cni_format("%s", pool_id);
			return 0;
		}
	}
	report(comparison, "asked for", request.pool, "");
	if (comparison->settings->dry_run)
		return 0;
	if (pool_request(&comparison->state, &request, &answer, err))
		return -1;
	*id = cni_format("%s", text_of(answer, "PoolID"));
	return 0;
}

static void ask_for_address(struct comparison *comparison, const json_t *docker,
			    const struct address_request *request, struct cni_error *err)
{
	const char *whose = text_of(json_object_get(docker, "addresses"), request->address);
	struct cni_error problem = {0};
	cleanup_free char *answer = NULL;

	report(comparison, "asked for",
	       request->pool_id ? request->pool_id : text_of(docker, "Subnet"),
	       *request->address ? request->address : "gateway");
	if (comparison->settings->dry_run)
		return;
	if (!address_request(&comparison->state, request, &answer, &problem))
		return;
	cni_error_wrap(&problem, "%s of network %s", *whose ? whose : "gateway",
		       text_of(docker, "network"));
	cni_error_join(err, &problem);
}

static bool has_gateway(const json_t *addresses)
{
	const char *address;
	json_t *record;

	json_object_foreach ((json_t *)addresses, address, record) {
		if (json_object_get(record, "gateway"))
			return true;
	}
	return false;
}

/* What was lost with our state. */
static void ask_for(struct comparison *comparison, const json_t *docker, struct cni_error *err)
{
	const char *gateway = text_of(docker, "gateway");
	struct address_request request = {0};
	struct cni_error problem = {0};
	cleanup_free char *id = NULL;
	const json_t *pool, *held;
	json_t *whose;

	if (ask_for_pool(comparison, docker, &id, &problem)) {
		cni_error_join(err, &problem);
		return;
	}
	pool = id ? json_object_get(comparison->state.pools, id) : NULL;
	held = json_object_get(pool, "addresses");
	request.pool_id = id;
	json_object_foreach (json_object_get(docker, "addresses"), request.address, whose) {
		request.gateway = !strcmp(request.address, gateway);
		if (!json_object_get(held, request.address))
			ask_for_address(comparison, docker, &request, err);
	}
	/* Docker does not tell which one it has if it was not given with --gateway. */
	request.address = "";
	request.gateway = true;
	if (!*gateway && !has_gateway(held))
		ask_for_address(comparison, docker, &request, err);
}

static void compare(struct comparison *comparison, struct cni_error *err)
{
	cleanup_json json_t *pools = NULL;
	const json_t *docker;
	const char *pool_id;
	json_t *pool;
	size_t index;

	if (!comparison->settings->dry_run)
		address_repair(&comparison->state);
	json_array_foreach (comparison->docker, index, docker)
		ask_for(comparison, docker, err);
	/* Shallow: the pools themselves change. */
	pools = json_copy(comparison->state.pools);
	json_object_foreach (pools, pool_id, pool)
		give_back(comparison, pool_id, pool, err);
}

/* The driver's name is that of its socket. */
static char *driver_name(const char *socket)
{
	const char *name = strrchr(socket, '/'), *end;

	name = name ? name + 1 : socket;
	end = strrchr(name, '.');
	return cni_format("%.*s", end ? (int)(end - name) : (int)strlen(name), name);
}

int reconcile(const struct settings *settings, struct cni_error *err)
{
	struct comparison comparison = {.state = STATE_NONE, .settings = settings};
	cleanup_free char *driver = driver_name(settings->socket);

	comparison.docker = docker_pools(settings->docker, driver, err);
	if (!comparison.docker)
		return -1;
	comparison.differences = json_array();
	if (!state_open(&comparison.state, settings, err)) {
		compare(&comparison, err);
		/* What was done is printed after an error, too. */
		print(&comparison, err);
	}
	state_close(&comparison.state);
	json_decref(comparison.docker);
	json_decref(comparison.differences);
	return cni_error_is_set(err) ? -1 : 0;
}

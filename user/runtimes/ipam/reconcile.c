/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * reconcile.c - reconcile: compares with what Docker has.
 *
 * Docker is asked first and the states opened after that, so an address that Docker gets meanwhile
 * looks like one that nobody has; --grace keeps it. Nothing waits for Docker under the lock, since
 * Docker may wait for the lock.
 */
#include "runtimes/ipam/reconcile.h"

#include <jansson.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/text.h"
#include "runtimes/cnirun/directory.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/ipam/addresses.h"
#include "runtimes/ipam/plan.h"
#include "runtimes/ipam/pools.h"
#include "runtimes/ipam/state.h"

/* Where host-local keeps a directory for each network, in it a file for each address, whose first
 * line is the container's ID. */
#define DEFAULT_DIRECTORY "/var/lib/cni/networks"

/* A file that has gone meanwhile is no error. */
static void read_file(json_t *found, const char *path, const struct prefix *prefix)
{
	cleanup_error struct cni_error ignored = {0};
	uint8_t address[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];
	cleanup_free char *id = NULL;
	struct stat status;
	size_t length;

	if (cni_address_parse(strrchr(path, '/') + 1, address) ||
	    !prefix_contains(prefix, address) || stat(path, &status))
		return;
	id = directory_read_file(path, &length, &ignored);
	if (!id)
		return;
	id[strcspn(id, "\r\n")] = '\0';
	cni_make_utf8(id);
	json_object_set_new(
		found, cni_address_format(address, text),
		json_pack("{s:s, s:I}", "id", id, "since", (json_int_t)status.st_mtime));
}

/* Returns {ADDRESS: {"id", "since"}} for all addresses of the pool, whoever has them, as the
 * records of state.h are; empty if the pool's plugin is another one. A new reference, or NULL and
 * CNI_ERROR_IO. */
static json_t *store_read(const json_t *pool, struct cni_error *err)
{
	const json_t *plan = json_object_get(pool, "plan");
	const json_t *ipam = cni_json_get(json_object_get(plan, "config"), "ipam");
	const char *directory = json_string_value(cni_json_get(ipam, "dataDir"));
	const char *name = json_string_value(json_object_get(plan, "name"));
	cleanup_json json_t *found = json_object();
	cleanup_directory struct directory files = {0};
	struct prefix prefix = plan_prefix(pool);
	cleanup_free char *path = NULL;

	/* Only host-local is given a range. */
	if (!name || !json_object_get(plan, "range"))
		return TAKE(found);
	path = cni_format("%s/%s", directory && *directory ? directory : DEFAULT_DIRECTORY, name);
	if (directory_list(&files, path, NULL, err))
		return NULL;
	for (size_t i = 0; i < files.count; i++)
		read_file(found, files.paths[i], &prefix);
	return TAKE(found);
}

struct comparison {
	struct state state;
	json_t *docker;
	time_t before; /* what is younger Docker may have got after it was asked */
	bool only_gives_back;
	const struct settings *settings;
	json_t *differences; /* [{"difference", "pool", "address"}] */
};

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

/* Returns whether the pool is one that a Docker network has. */
static bool is_of_pool(const json_t *docker, const char *pool_id)
{
	return !strcmp(text_of(docker, "id"), pool_id);
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

/* `pool_id`: NULL for any pool. */
static bool docker_has(const struct comparison *comparison, const char *pool_id,
		       const char *address)
{
	const json_t *docker;
	size_t index;

	json_array_foreach (comparison->docker, index, docker)
		if ((!pool_id || is_of_pool(docker, pool_id)) &&
		    json_object_get(json_object_get(docker, "addresses"), address))
			return true;
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
	return json_integer_value(json_object_get(record, "since")) <=
	       (json_int_t)comparison->before;
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

/* The plugin does, which was said: each further call could take as long as it may. */
static bool is_failing(const json_t *pool)
{
	return json_array_size(json_object_get(pool, "changing"));
}

/* What Docker lost before it gave it back. */
static void give_back(struct comparison *comparison, const char *pool_id, json_t *pool,
		      struct cni_error *err)
{
	json_int_t users = json_integer_value(json_object_get(pool, "users"));
	int count = count_users(comparison, pool_id);
	struct cni_error problem = {0};

	if (is_failing(pool))
		return;
	give_back_addresses(comparison, pool_id, pool, err);
	if ((count && users <= count) || !is_old(comparison, pool))
		return;
	report(comparison, count ? "counted again" : "given back", pool_id, "");
	if (comparison->settings->dry_run)
		return;
	json_object_set_new(pool, "users", json_integer(count ? count : 1));
	if (count ? state_write(&comparison->state, &problem)
		  : pool_release(&comparison->state, pool_id, &problem))
		cni_error_join(err, &problem);
}

/* Has the pool counted for each network that has it. */
static int ask_for_pool(struct comparison *comparison, const json_t *docker, struct cni_error *err)
{
	const char *pool_id = text_of(docker, "id");
	const struct pool_request request = {
		.space = POOL_SPACE,
		.pool = text_of(docker, "Subnet"),
		.sub_pool = text_of(docker, "IPRange"),
		.options = json_object_get(docker, "Options"),
	};
	const json_t *pool = json_object_get(comparison->state.pools, pool_id);
	cleanup_json json_t *answer = NULL;

	if (json_integer_value(json_object_get(pool, "users")) >= count_users(comparison, pool_id))
		return 0;
	report(comparison, "asked for", pool_id, "");
	if (comparison->settings->dry_run)
		return 0;
	return pool_request(&comparison->state, comparison->settings, &request, &answer, err);
}

static void ask_for_address(struct comparison *comparison, const json_t *docker,
			    const struct address_request *request, struct cni_error *err)
{
	const char *whose = text_of(json_object_get(docker, "addresses"), request->address);
	struct cni_error problem = {0};
	cleanup_free char *answer = NULL;

	if (is_failing(json_object_get(comparison->state.pools, request->pool_id)))
		return;
	report(comparison, "asked for", request->pool_id,
	       *request->address ? request->address : "gateway");
	if (comparison->settings->dry_run ||
	    !address_request(&comparison->state, request, &answer, &problem))
		return;
	cni_error_wrap(&problem, "%s of network %s", *whose ? whose : "gateway",
		       text_of(docker, "network"));
	cni_error_join(err, &problem);
}

/* How many networks of the pool have named the address as their gateway; "": have named none. */
static json_int_t count_networks(const struct comparison *comparison, const char *pool_id,
				 const char *gateway)
{
	const json_t *docker;
	json_int_t count = 0;
	size_t index;

	json_array_foreach (comparison->docker, index, docker)
		count += is_of_pool(docker, pool_id) &&
			 !json_object_get(docker, "withoutGateway") &&
			 !strcmp(text_of(docker, "gateway"), gateway);
	return count;
}

/* How many have it as theirs in our state; "": have one that no network has named. */
static json_int_t count_gateways(const struct comparison *comparison, const char *pool_id,
				 const char *gateway)
{
	const json_t *pool = json_object_get(comparison->state.pools, pool_id);
	json_int_t count = 0;
	const char *address;
	json_t *record;

	json_object_foreach (json_object_get(pool, "addresses"), address, record)
		if (*gateway ? !strcmp(address, gateway)
			     : !count_networks(comparison, pool_id, address))
			count += json_integer_value(json_object_get(record, "gateway"));
	return count;
}

/* Takes over what the plugin has given to us already, as in `stored`. */
static bool adopt(struct comparison *comparison, const json_t *stored,
		  const struct address_request *request)
{
	json_t *record = json_object_get(stored, request->address);

	if (!record)
		return false;
	if (request->gateway)
		json_object_set_new(record, "gateway", json_integer(1));
	if (!address_adopt(&comparison->state, request->pool_id, request->address, record))
		return false;
	report(comparison, "taken over", request->pool_id, request->address);
	return true;
}

/* Docker does not tell which gateway it has if none was named: the one that each network is given
 * that names none, unless a container has that. */
static bool ask_for_gateway(struct comparison *comparison, const json_t *docker,
			    const json_t *stored, struct cni_error *err)
{
	struct address_request request = {text_of(docker, "id"), text_of(docker, "gateway"), true};
	const json_t *pool = json_object_get(comparison->state.pools, request.pool_id);
	const char *named = request.address;
	char preferred[CNI_ADDRESS_TEXT_SIZE];

	if (count_gateways(comparison, request.pool_id, named) >=
	    count_networks(comparison, request.pool_id, named))
		return false;
	if (pool && !*named)
		request.address = plan_default_gateway(pool, preferred);
	if ((*named || !docker_has(comparison, request.pool_id, request.address)) &&
	    adopt(comparison, stored, &request))
		return true;
	request.address = named;
	ask_for_address(comparison, docker, &request, err);
	return false;
}

/* What was lost with our state. */
static void ask_for(struct comparison *comparison, const json_t *docker, struct cni_error *err)
{
	struct address_request request = {.pool_id = text_of(docker, "id")};
	cleanup_json json_t *stored = NULL;
	struct cni_error problem = {0};
	bool adopted = false;
	const json_t *pool;
	json_t *whose;

	if (ask_for_pool(comparison, docker, &problem)) {
		cni_error_join(err, &problem);
		return;
	}
	pool = json_object_get(comparison->state.pools, request.pool_id);
	stored = pool ? store_read(pool, &problem) : NULL;
	json_object_foreach (json_object_get(docker, "addresses"), request.address, whose) {
		if (!strcmp(request.address, text_of(docker, "gateway")) ||
		    json_object_get(json_object_get(pool, "addresses"), request.address))
			continue;
		if (adopt(comparison, stored, &request))
			adopted = true;
		else
			ask_for_address(comparison, docker, &request, err);
	}
	adopted |= ask_for_gateway(comparison, docker, stored, err);
	if (adopted && !comparison->settings->dry_run)
		state_write(&comparison->state, &problem);
	if (cni_error_is_set(&problem))
		cni_error_join(err, &problem);
}

/* What the plugin has lost would be given to others. */
static void give_plugin(struct comparison *comparison, const char *pool_id, const json_t *pool,
			const json_t *stored, struct cni_error *err)
{
	char given[CNI_ADDRESS_TEXT_SIZE];
	const char *address;
	json_t *record;

	json_object_foreach (json_object_get(pool, "addresses"), address, record) {
		const char *id = text_of(record, "id");
		struct cni_error problem = {0};

		/* "": the plugin never gives it. */
		if (!*id || !strcmp(id, text_of(json_object_get(stored, address), "id")))
			continue;
		report(comparison, "told the plugin", pool_id, address);
		if (comparison->settings->dry_run ||
		    !plan_add(&(struct plan_call){pool, comparison->settings, id}, address, given,
			      &problem))
			continue;
		cni_error_wrap(&problem, "address %s of pool %s", address, pool_id);
		cni_error_join(err, &problem);
	}
}

/* What neither Docker nor our state knows is looked at as if it were in the state. */
static void find_lost(struct comparison *comparison, const char *pool_id, const json_t *pool,
		      struct cni_error *err)
{
	struct cni_error problem = {0};
	cleanup_json json_t *stored = store_read(pool, &problem);
	const char *address;
	json_t *record;

	json_object_foreach (stored, address, record) {
		/* What a network of another pool of the subnet has is that pool's. */
		if (docker_has(comparison, pool_id, address) ||
		    !docker_has(comparison, NULL, address))
			address_adopt(&comparison->state, pool_id, address, record);
	}
	/* Only host-local's is known. */
	if (stored && json_object_get(json_object_get(pool, "plan"), "range") &&
	    !comparison->only_gives_back && !is_failing(pool))
		give_plugin(comparison, pool_id, pool, stored, err);
	if (cni_error_is_set(&problem))
		cni_error_join(err, &problem);
}

static void repair(struct comparison *comparison, const char *subnet, struct cni_error *err)
{
	cleanup_json json_t *before = json_copy(comparison->state.pools);
	struct cni_error problem = {0};
	const char *pool_id;
	json_t *pool;

	if (address_repair(&comparison->state, &problem)) {
		cni_error_wrap(&problem, "subnet %s", subnet);
		cni_error_join(err, &problem);
	}
	json_object_foreach (before, pool_id, pool)
		if (!json_object_get(comparison->state.pools, pool_id))
			report(comparison, "given back", pool_id, "");
}

static void compare(struct comparison *comparison, const char *subnet, struct cni_error *err)
{
	cleanup_json json_t *pools = NULL;
	const json_t *docker;
	const char *pool_id;
	json_t *pool;
	size_t index;

	if (!comparison->settings->dry_run)
		repair(comparison, subnet, err);
	json_array_foreach (comparison->docker, index, docker)
		if (!comparison->only_gives_back && !strcmp(text_of(docker, "subnet"), subnet))
			ask_for(comparison, docker, err);
	/* Shallow: the pools themselves change. */
	pools = json_copy(comparison->state.pools);
	json_object_foreach (pools, pool_id, pool) {
		find_lost(comparison, pool_id, pool, err);
		give_back(comparison, pool_id, pool, err);
	}
}

/* Nothing is given back unless all networks are understood. Returns the subnets of Docker and of
 * the state, as keys of a new object. */
static json_t *name_pools(const struct comparison *comparison, struct cni_error *err)
{
	cleanup_json json_t *known = state_subnets(comparison->settings, err);
	cleanup_json json_t *subnets = json_object();
	char text[PREFIX_TEXT_SIZE];
	struct prefix prefix;
	json_t *element;
	size_t index;

	json_array_foreach (known, index, element)
		json_object_set_new(subnets, json_string_value(element), json_true());
	json_array_foreach (comparison->docker, index, element) {
		const char *subnet = text_of(element, "Subnet");
		cleanup_free char *id = pool_format_id(subnet, text_of(element, "IPRange"), err);

		if (!id || prefix_parse(subnet, &prefix)) {
			cni_error_wrap(err, "network %s", text_of(element, "network"));
			return NULL;
		}
		json_object_set_new(element, "id", json_string(id));
		json_object_set_new(element, "subnet", json_string(prefix_format(&prefix, text)));
		json_object_set_new(subnets, text, json_true());
	}
	return known ? TAKE(subnets) : NULL;
}

static void compare_all(struct comparison *comparison, struct cni_error *err)
{
	cleanup_json json_t *subnets = name_pools(comparison, err);
	const char *subnet;
	json_t *ignored;

	json_object_foreach (subnets, subnet, ignored) {
		struct cni_error problem = {0};
		struct prefix prefix;

		prefix_parse(subnet, &prefix);
		if (!state_open(&comparison->state, comparison->settings, &prefix, &problem))
			compare(comparison, subnet, err);
		else
			cni_error_join(err, &problem);
		state_close(&comparison->state);
	}
}

/* Takes over `docker`. What was done is printed after an error, too. */
static int compare_with(struct comparison *comparison, json_t *docker, struct cni_error *err)
{
	bool is_asked = !comparison->only_gives_back; /* and wants an answer */

	comparison->docker = docker;
	comparison->differences = json_array();
	if (docker)
		compare_all(comparison, err);
	if ((is_asked && !cni_error_is_set(err)) || json_array_size(comparison->differences))
		print(comparison, err);
	json_decref(comparison->docker);
	json_decref(comparison->differences);
	return cni_error_is_set(err) ? -1 : 0;
}

int reconcile(const struct settings *settings, struct cni_error *err)
{
	struct comparison comparison = {
		.state = STATE_NONE,
		.before = time(NULL) - (time_t)settings->grace,
		.settings = settings,
	};

	return compare_with(&comparison, docker_pools(settings->docker, settings->driver, err),
			    err);
}

/* Docker activates its drivers, and starts containers, before it answers itself. */
static json_t *wait_for_docker(const struct settings *settings, unsigned int rounds,
			       struct cni_error *err)
{
	for (;; sleep(1)) {
		json_t *docker = docker_pools(settings->docker, settings->driver, err);

		if (docker || !--rounds)
			return docker;
		cni_error_release(err);
	}
}

int reconcile_lost(const struct settings *settings, time_t before, unsigned int rounds,
		   struct cni_error *err)
{
	struct comparison comparison = {
		.state = STATE_NONE,
		.before = before,
		.only_gives_back = true,
		.settings = settings,
	};

	return compare_with(&comparison, wait_for_docker(settings, rounds, err), err);
}

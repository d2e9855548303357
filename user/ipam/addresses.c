/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * addresses.c - addresses that Docker asks for and gives back.
 */
#include "ipam/addresses.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "cnirun/output.h"
#include "ipam/plan.h"

#define ID_SIZE 32
#define TIME_SIZE 32

json_t *address_find_pool(const struct state *state, const char *pool_id, struct cni_error *err)
{
	json_t *pool = json_object_get(state->pools, pool_id);

	if (!pool)
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "there is no pool \"%s\"",
			      pool_id);
	return pool;
}

static json_t *addresses_of(const json_t *pool)
{
	return json_object_get(pool, "addresses");
}

static const char *id_of(const json_t *record)
{
	return json_string_value(json_object_get(record, "id"));
}

static json_int_t gateways_of(const json_t *record)
{
	return json_integer_value(json_object_get(record, "gateway"));
}

static void changing_add(json_t *pool, const char *id)
{
	json_array_append_new(json_object_get(pool, "changing"), json_string(id));
}

static void changing_remove(json_t *pool, const char *id)
{
	json_t *changing = json_object_get(pool, "changing"), *element;
	size_t index;

	json_array_foreach (changing, index, element) {
		if (!strcmp(json_string_value(element), id)) {
			json_array_remove(changing, index);
			return;
		}
	}
}

/* Returns whether the two pools are one to the plugin, as sub-pools of one pool are. */
static bool share_plan(const json_t *one, const json_t *other)
{
	const json_t *plan = json_object_get(one, "plan"), *second = json_object_get(other, "plan");

	return json_equal(json_object_get(plan, "name"), json_object_get(second, "name")) &&
	       json_equal(json_object_get(plan, "subnet"), json_object_get(second, "subnet"));
}

/* The record of an address in any pool that shares the plan. */
static json_t *find_record(const struct state *state, const json_t *pool, const char *address)
{
	const char *pool_id;
	json_t *other, *record;

	json_object_foreach (state->pools, pool_id, other) {
		record = share_plan(pool, other) ? json_object_get(addresses_of(other), address)
						 : NULL;
		if (record)
			return record;
	}
	return NULL;
}

/* How many pools have an address of this ID. */
static int count_id(const struct state *state, const char *id)
{
	const char *pool_id, *address;
	json_t *pool, *record;
	int count = 0;

	json_object_foreach (state->pools, pool_id, pool) {
		json_object_foreach (addresses_of(pool), address, record) {
			count += !strcmp(id_of(record), id);
		}
	}
	return count;
}

static void remove_records(json_t *pool, const char *id)
{
	const char *address;
	json_t *record;
	void *next;

	json_object_foreach_safe (addresses_of(pool), next, address, record) {
		if (!strcmp(id_of(record), id))
			json_object_del(addresses_of(pool), address);
	}
}

/* DEL, and the pool no longer knows the ID. */
static int finish_release(json_t *pool, const struct settings *settings, const char *id,
			  struct cni_error *err)
{
	if (plan_del(&(struct plan_call){pool, settings, id}, err))
		return -1;
	remove_records(pool, id);
	changing_remove(pool, id);
	return 0;
}

static bool repair_pool(json_t *pool, const struct settings *settings)
{
	cleanup_json json_t *changing = json_copy(json_object_get(pool, "changing"));
	const json_t *element;
	bool changed = false;
	size_t index;

	json_array_foreach (changing, index, element) {
		cleanup_error struct cni_error problem = {0};

		if (!finish_release(pool, settings, json_string_value(element), &problem))
			changed = true;
		else
			output_warn("what a killed run has left stays: %s",
				    cni_error_message(&problem));
	}
	return changed;
}

void address_repair(struct state *state)
{
	cleanup_error struct cni_error problem = {0};
	const char *pool_id;
	bool changed = false;
	json_t *pool;

	json_object_foreach (state->pools, pool_id, pool) {
		changed |= repair_pool(pool, state->settings);
	}
	if (changed && state_write(state, &problem))
		output_warn("%s", cni_error_message(&problem));
}

static void make_id(char id[ID_SIZE])
{
	unsigned long long number = 0;

	/* Never fails for so few bytes once the kernel has booted. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (unsigned long long)time(NULL);
	snprintf(id, ID_SIZE, "docker-%016llx", number);
}

static void record_add(json_t *pool, const char *address, const char *id, bool gateway)
{
	json_object_set_new(addresses_of(pool), address,
			    json_pack("{s:s, s:I, s:o*}", "id", id, "since", (json_int_t)time(NULL),
				      "gateway", gateway ? json_integer(1) : NULL));
}

/* What ADD gave must be what was wanted, and nobody's yet: not every plugin keeps a store. */
static int check_given(const struct state *state, const json_t *pool, const char *wanted,
		       const char *given, struct cni_error *err)
{
	if (wanted && strcmp(wanted, given))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the plugin gave %s instead", given);
	if (find_record(state, pool, given))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the plugin gave %s, which Docker has already", given);
	return 0;
}

static void undo(struct state *state, json_t *pool, const char *id)
{
	cleanup_error struct cni_error problem = {0};

	if (finish_release(pool, state->settings, id, &problem) || state_write(state, &problem))
		output_warn("will be undone by the next request: %s", cni_error_message(&problem));
}

/* What is being given. */
struct grant {
	struct state *state;
	json_t *pool;
	bool gateway;
};

/* Gives *address if it is not "", else sets it. */
static int allocate(const struct grant *grant, char address[CNI_ADDRESS_TEXT_SIZE],
		    struct cni_error *err)
{
	const char *wanted = *address ? address : NULL;
	struct state *state = grant->state;
	json_t *pool = grant->pool;
	char given[CNI_ADDRESS_TEXT_SIZE];
	char id[ID_SIZE];

	make_id(id);
	changing_add(pool, id);
	if (state_write(state, err)) {
		changing_remove(pool, id);
		return -1;
	}
	if (!plan_add(&(struct plan_call){pool, state->settings, id}, wanted, given, err) &&
	    !check_given(state, pool, wanted, given, err)) {
		record_add(pool, given, id, grant->gateway);
		changing_remove(pool, id);
		if (!state_write(state, err)) {
			memcpy(address, given, sizeof(given));
			return 0;
		}
		changing_add(pool, id);
	}
	undo(state, pool, id);
	return -1;
}

static int refuse_taken(const json_t *record, struct cni_error *err)
{
	time_t since = (time_t)json_integer_value(json_object_get(record, "since"));
	char text[TIME_SIZE] = "";
	struct tm utc;

	if (gmtime_r(&since, &utc))
		strftime(text, sizeof(text), "%FT%TZ", &utc);
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "Docker has it since %s%s; if no container has it, `cni-ipam "
			     "reconcile` gives it back",
			     text, gateways_of(record) ? " as a gateway" : "");
}

/* Networks of one pool may have one gateway, and the plugin may never give it to anyone. */
static int take_gateway(const struct grant *grant, char address[CNI_ADDRESS_TEXT_SIZE],
			struct cni_error *err)
{
	struct state *state = grant->state;
	json_t *pool = grant->pool;
	json_t *own = json_object_get(addresses_of(pool), address);
	json_t *record = find_record(state, pool, address);

	if (record && !gateways_of(record))
		return refuse_taken(record, err);
	if (own)
		json_object_set_new(own, "gateway", json_integer(gateways_of(own) + 1));
	else if (record)
		record_add(pool, address, id_of(record), true);
	else if (!strcmp(address, plan_own_gateway(pool)))
		record_add(pool, address, "", true);
	else
		return allocate(grant, address, err);
	return state_write(state, err);
}

/* Gives *address if it is not "", else sets it. */
static int take(const struct grant *grant, char address[CNI_ADDRESS_TEXT_SIZE],
		struct cni_error *err)
{
	json_t *pool = grant->pool;
	cleanup_error struct cni_error taken = {0};
	char preferred[CNI_ADDRESS_TEXT_SIZE];
	const json_t *record = *address ? find_record(grant->state, pool, address) : NULL;

	if (grant->gateway && *address)
		return take_gateway(grant, address, err);
	if (grant->gateway && !take_gateway(grant, plan_default_gateway(pool, preferred), &taken)) {
		memcpy(address, preferred, sizeof(preferred));
		return 0;
	}
	if (record)
		return refuse_taken(record, err);
	if (*address && !strcmp(address, plan_own_gateway(pool)))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it is the gateway of the CNI network");
	return allocate(grant, address, err);
}

int address_request(struct state *state, const struct address_request *request, char **answer,
		    struct cni_error *err)
{
	json_t *pool = address_find_pool(state, request->pool_id, err);
	uint8_t binary[CNI_ADDRESS_SIZE];
	char address[CNI_ADDRESS_TEXT_SIZE] = "";
	struct prefix prefix;
	int failed = 0;

	if (!pool)
		return -1;
	prefix = plan_prefix(pool);
	if (*request->address && cni_address_parse(request->address, binary))
		failed = cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "it is no address");
	else if (*request->address && !prefix_contains(&prefix, binary))
		failed = cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				       "it is outside of the pool");
	else if (*request->address)
		cni_address_format(binary, address);
	if (failed || take(&(struct grant){state, pool, request->gateway}, address, err))
		return cni_error_wrap(err, "address %s of pool %s",
				      *request->address ? request->address : "(any)",
				      request->pool_id);
	*answer = cni_format("%s/%d", address, prefix_own_length(&prefix));
	return 0;
}

static int release(struct state *state, json_t *pool, const char *address, struct cni_error *err)
{
	json_t *record = json_object_get(addresses_of(pool), address);
	cleanup_free char *id = NULL;

	if (!record)
		return 0;
	if (gateways_of(record) > 1) {
		json_object_set_new(record, "gateway", json_integer(gateways_of(record) - 1));
		return state_write(state, err);
	}
	id = cni_format("%s", id_of(record));
	if (!*id || count_id(state, id) > 1) {
		json_object_del(addresses_of(pool), address);
		return state_write(state, err);
	}
	changing_add(pool, id);
	if (state_write(state, err)) {
		changing_remove(pool, id);
		return -1;
	}
	return finish_release(pool, state->settings, id, err) || state_write(state, err) ? -1 : 0;
}

int address_release(struct state *state, const char *pool_id, const char *address,
		    struct cni_error *err)
{
	json_t *pool = address_find_pool(state, pool_id, err);
	uint8_t binary[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (!pool)
		return cni_error_wrap(err, "address %s", address);
	if (cni_address_parse(address, binary))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "address \"%s\" of pool %s: it is no address", address,
				     pool_id);
	if (release(state, pool, cni_address_format(binary, text), err))
		return cni_error_wrap(err, "address %s of pool %s", address, pool_id);
	return 0;
}

int address_release_all(struct state *state, const char *pool_id, struct cni_error *err)
{
	json_t *pool = address_find_pool(state, pool_id, err);
	const char *address;
	json_t *record;
	void *next;

	json_object_foreach_safe (addresses_of(pool), next, address, record) {
		cleanup_free char *text = cni_format("%s", address);

		json_object_del(record, "gateway");
		if (release(state, pool, text, err))
			return cni_error_wrap(err, "address %s of pool %s", text, pool_id);
	}
	return pool ? 0 : -1;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* addresses.c - addresses that Docker asks for and gives back. */
#include "runtimes/ipam/addresses.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/ipam/plan.h"

#define ID_PREFIX "docker-"
#define ID_DIGITS 16
#define TIME_SIZE 32

json_t *address_find_pool(const struct state *state, const char *pool_id, struct cni_error *err)
{
	json_t *pool = json_object_get(state->pools, pool_id);

	if (!pool)
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "there is no pool \"%s\": if Docker has a network of it, `cni-ipam "
			      "reconcile` makes it again",
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

static json_t *changing_of(const json_t *pool)
{
	return json_object_get(pool, "changing");
}

/* Once, however often it is asked for. */
static void changing_add(json_t *pool, const char *id)
{
	const json_t *element;
	size_t index;

	json_array_foreach (changing_of(pool), index, element)
		if (!strcmp(json_string_value(element), id))
			return;
	json_array_append_new(changing_of(pool), json_string(id));
}

/* The record of an address in any pool of the subnet. */
static json_t *find_record(const struct state *state, const char *address)
{
	json_t *pool, *record = NULL;
	const char *pool_id;

	json_object_foreach (state->pools, pool_id, pool) {
		record = json_object_get(addresses_of(pool), address);
		if (record)
			break;
	}
	return record;
}

/* How many pools have an address of this ID. */
static int count_id(const struct state *state, const char *id)
{
	const char *pool_id, *address;
	json_t *pool, *record;
	int count = 0;

	json_object_foreach (state->pools, pool_id, pool)
		json_object_foreach (addresses_of(pool), address, record)
			count += !strcmp(id_of(record), id);
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

/* Runs DEL for each ID until one fails. */
static int finish_changing(json_t *pool, const struct settings *settings, struct cni_error *err)
{
	json_t *changing = changing_of(pool);

	while (json_array_size(changing)) {
		const char *id = json_string_value(json_array_get(changing, 0));

		if (plan_del(&(struct plan_call){pool, settings, id}, err))
			return -1;
		remove_records(pool, id);
		json_array_remove(changing, 0);
	}
	return 0;
}

int address_repair(struct state *state, struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};
	bool changed = false;
	const char *pool_id;
	json_t *pool;
	void *next;

	json_object_foreach_safe (state->pools, next, pool_id, pool) {
		size_t before = json_array_size(changing_of(pool));

		if (cni_error_is_set(&problem))
			break;
		finish_changing(pool, state->settings, &problem);
		changed |= json_array_size(changing_of(pool)) != before;
		if (!pool_users(pool) && !json_object_size(addresses_of(pool)) &&
		    !json_array_size(changing_of(pool)))
			changed |= !json_object_del(state->pools, pool_id);
	}
	if (changed && state_write(state, err))
		return -1;
	return cni_error_is_set(&problem) ? cni_error_chain(err, &problem) : 0;
}

static char *make_id(const struct settings *settings)
{
	unsigned long long number = 0;

	/* Never fails for so few bytes once the kernel has booted. */
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (unsigned long long)time(NULL);
	return cni_format(ID_PREFIX "%s-%0*llx", settings->driver, ID_DIGITS, number);
}

/* Another driver's IDs may begin as ours do, but then they are longer. */
static bool is_own_id(const struct settings *settings, const char *id)
{
	cleanup_free char *prefix = cni_format(ID_PREFIX "%s-", settings->driver);
	size_t length = strlen(prefix);

	return !strncmp(id, prefix, length) && strlen(id + length) == ID_DIGITS &&
	       strspn(id + length, "0123456789abcdef") == ID_DIGITS;
}

bool address_adopt(struct state *state, const char *pool_id, const char *address, json_t *record)
{
	json_t *pool = json_object_get(state->pools, pool_id);

	if (!is_own_id(state->settings, id_of(record)) || find_record(state, address))
		return false;
	json_object_set(addresses_of(pool), address, record);
	return true;
}

static void record_add(json_t *pool, const char *address, const char *id, bool gateway)
{
	json_object_set_new(addresses_of(pool), address,
			    json_pack("{s:s, s:I, s:o*}", "id", id, "since", (json_int_t)time(NULL),
				      "gateway", gateway ? json_integer(1) : NULL));
}

/* What ADD gave must be what was wanted, and nobody's yet: not every plugin keeps a store. */
static int check_given(const struct state *state, const char *wanted, const char *given,
		       struct cni_error *err)
{
	if (wanted && strcmp(wanted, given))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the plugin gave %s instead", given);
	if (find_record(state, given))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the plugin gave %s, which Docker has already", given);
	return 0;
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
	cleanup_free char *id = make_id(state->settings);
	cleanup_error struct cni_error problem = {0};
	char given[CNI_ADDRESS_TEXT_SIZE];

	changing_add(pool, id);
	if (state_write(state, err))
		return -1;
	if (!plan_add(&(struct plan_call){pool, state->settings, id}, wanted, given, err) &&
	    !check_given(state, wanted, given, err)) {
		record_add(pool, given, id, grant->gateway);
		/* It is the only one there, as nothing is given before the others are freed. */
		json_array_clear(changing_of(pool));
		if (!state_write(state, err)) {
			memcpy(address, given, sizeof(given));
			return 0;
		}
		changing_add(pool, id);
	}
	if (address_repair(state, &problem))
		output_warn("will be undone by the next request: %s", cni_error_message(&problem));
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
	json_t *record = find_record(state, address);

	if (record && !gateways_of(record))
		return refuse_taken(record, err);
	if (own) {
		json_object_set_new(own, "gateway", json_integer(gateways_of(own) + 1));
		/* For reconcile: Docker may not show its network yet. */
		json_object_set_new(own, "since", json_integer((json_int_t)time(NULL)));
	} else if (record) {
		record_add(pool, address, id_of(record), true);
	} else if (!strcmp(address, plan_own_gateway(pool))) {
		record_add(pool, address, "", true);
	} else {
		return allocate(grant, address, err);
	}
	return state_write(state, err);
}

/* Gives *address if it is not "", else sets it. */
static int take(const struct grant *grant, char address[CNI_ADDRESS_TEXT_SIZE],
		struct cni_error *err)
{
	json_t *pool = grant->pool;
	cleanup_error struct cni_error taken = {0};
	char preferred[CNI_ADDRESS_TEXT_SIZE];
	const json_t *record = *address ? find_record(grant->state, address) : NULL;

	if (grant->gateway && *address)
		return take_gateway(grant, address, err);
	if (grant->gateway && !take_gateway(grant, plan_default_gateway(pool, preferred), &taken)) {
		memcpy(address, preferred, sizeof(preferred));
		return 0;
	}
	/* The plugin fails altogether. */
	if (json_array_size(changing_of(pool)))
		return cni_error_chain(err, &taken);
	if (record)
		return refuse_taken(record, err);
	if (*address && !strcmp(address, plan_own_gateway(pool)))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it is the gateway of the CNI network");
	return allocate(grant, address, err);
}

/* Writes it in the form that addresses have everywhere here; "" stays. */
static int read_address(const char *text, const struct prefix *prefix,
			char address[CNI_ADDRESS_TEXT_SIZE], struct cni_error *err)
{
	uint8_t binary[CNI_ADDRESS_SIZE];

	*address = '\0';
	if (!*text)
		return 0;
	if (cni_address_parse(text, binary))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "it is no address");
	if (!prefix_contains(prefix, binary))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "it is outside of the pool");
	cni_address_format(binary, address);
	return 0;
}

static int request_of(struct state *state, const struct address_request *request, char **answer,
		      struct cni_error *err)
{
	struct grant grant = {state, NULL, request->gateway};
	char address[CNI_ADDRESS_TEXT_SIZE];
	struct prefix prefix;

	if (address_repair(state, err))
		return cni_error_wrap(err, "what is to be freed first");
	grant.pool = address_find_pool(state, request->pool_id, err);
	if (!grant.pool)
		return -1;
	prefix = plan_prefix(grant.pool);
	if (read_address(request->address, &prefix, address, err) || take(&grant, address, err))
		return -1;
	*answer = cni_format("%s/%d", address, prefix_own_length(&prefix));
	return 0;
}

int address_request(struct state *state, const struct address_request *request, char **answer,
		    struct cni_error *err)
{
	if (!request_of(state, request, answer, err))
		return 0;
	return cni_error_wrap(err, "address %s of pool %s",
			      *request->address ? request->address : "(any)", request->pool_id);
}

/* The record goes now, unless an ID must be freed for it. */
static void note_release(const struct state *state, json_t *pool, const char *address,
			 const json_t *record)
{
	if (*id_of(record) && count_id(state, id_of(record)) == 1)
		changing_add(pool, id_of(record));
	else
		json_object_del(addresses_of(pool), address);
}

static int release(struct state *state, const char *pool_id, const char *text,
		   struct cni_error *err)
{
	json_t *pool = address_find_pool(state, pool_id, err), *record;
	char address[CNI_ADDRESS_TEXT_SIZE];
	struct prefix prefix;
	bool fails;

	if (!pool)
		return -1;
	/* Then it is only written down: Docker may give back many, and each would wait for a plugin
	 * that hangs, and hold the lock meanwhile. */
	fails = json_array_size(changing_of(pool));
	prefix = plan_prefix(pool);
	if (read_address(text, &prefix, address, err))
		return -1;
	record = json_object_get(addresses_of(pool), address);
	if (!record)
		return 0;
	if (gateways_of(record) > 1)
		json_object_set_new(record, "gateway", json_integer(gateways_of(record) - 1));
	else
		note_release(state, pool, address, record);
	if (state_write(state, err))
		return -1;
	return fails ? 0 : address_repair(state, err);
}

int address_release(struct state *state, const char *pool_id, const char *address,
		    struct cni_error *err)
{
	if (!release(state, pool_id, address, err))
		return 0;
	return cni_error_wrap(err, "address %s of pool %s", address, pool_id);
}

int address_release_all(struct state *state, const char *pool_id, struct cni_error *err)
{
	json_t *pool = json_object_get(state->pools, pool_id);
	const char *address;
	json_t *record;
	void *next;

	json_object_foreach_safe (addresses_of(pool), next, address, record) {
		note_release(state, pool, address, record);
	}
	return state_write(state, err) ? -1 : address_repair(state, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* api.c - Docker's remote IPAM API: which call is answered by what. */
#include "runtimes/ipam/api.h"

#include <jansson.h>
#include <microhttpd.h>
#include <string.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/json.h"
#include "runtimes/ipam/addresses.h"
#include "runtimes/ipam/pools.h"
#include "runtimes/ipam/reconcile.h"
#include "runtimes/ipam/state.h"

#define GATEWAY "com.docker.network.gateway"
#define FULL "no IP addresses available" /* host-local's words */

/* *answer is left NULL for {}. */
typedef int (*api_call)(const struct settings *settings, const json_t *request, json_t **answer,
			struct cni_error *err);

static int request_pool(const struct settings *settings, const json_t *request, json_t **answer,
			struct cni_error *err)
{
	struct pool_request wanted = {.space = "", .pool = "", .sub_pool = ""};
	cleanup_state struct state state = STATE_NONE;
	json_t *options = NULL;

	if (cni_json_get_string(request, "AddressSpace", &wanted.space, err) ||
	    cni_json_get_string(request, "Pool", &wanted.pool, err) ||
	    cni_json_get_string(request, "SubPool", &wanted.sub_pool, err) ||
	    cni_json_get_boolean(request, "V6", &wanted.ipv6, err) ||
	    cni_json_get_object(request, "Options", &options, err))
		return -1;
	wanted.options = options;
	return pool_request(&state, settings, &wanted, answer, err);
}

static int release_pool(const struct settings *settings, const json_t *request, json_t **answer,
			struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;
	const char *pool_id = "";

	if (cni_json_get_string(request, "PoolID", &pool_id, err) ||
	    pool_open(&state, settings, pool_id, err))
		return -1;
	return pool_release(&state, pool_id, err);
}

static int ask_pool(const struct settings *settings, const struct address_request *wanted,
		    char **address, struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;

	return pool_open(&state, settings, wanted->pool_id, err) ||
			       address_request(&state, wanted, address, err)
		       ? -1
		       : 0;
}

/* Addresses that Docker has lost may be what fills the pool. Without the lock, as Docker may wait
 * for another request meanwhile. The first error is what Docker gets if that does not help. */
static int ask_full_pool(const struct settings *settings, const struct address_request *wanted,
			 char **address, struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};

	if (!strstr(cni_error_whole(err), FULL) ||
	    reconcile_lost(settings, time(NULL) - (time_t)settings->grace, 1, &problem))
		return -1;
	cni_error_release(err);
	return ask_pool(settings, wanted, address, err);
}

static int request_address(const struct settings *settings, const json_t *request, json_t **answer,
			   struct cni_error *err)
{
	struct address_request wanted = {.pool_id = "", .address = ""};
	cleanup_free char *address = NULL;
	json_t *options = NULL;
	const char *type = "";

	if (cni_json_get_string(request, "PoolID", &wanted.pool_id, err) ||
	    cni_json_get_string(request, "Address", &wanted.address, err) ||
	    cni_json_get_object(request, "Options", &options, err) ||
	    cni_json_get_string(options, "RequestAddressType", &type, err))
		return -1;
	wanted.gateway = !strcmp(type, GATEWAY);
	if (ask_pool(settings, &wanted, &address, err) &&
	    ask_full_pool(settings, &wanted, &address, err))
		return -1;
	*answer = json_pack("{s:s, s:{}}", "Address", address, "Data");
	return 0;
}

static int release_address(const struct settings *settings, const json_t *request, json_t **answer,
			   struct cni_error *err)
{
	cleanup_state struct state state = STATE_NONE;
	const char *pool_id = "", *address = "";

	if (cni_json_get_string(request, "PoolID", &pool_id, err) ||
	    cni_json_get_string(request, "Address", &address, err) ||
	    pool_open(&state, settings, pool_id, err))
		return -1;
	return address_release(&state, pool_id, address, err);
}

static const struct api_entry {
	const char *path;
	api_call call;
	const char *answer; /* to a request without a body, for which nothing is called */
} entries[] = {
	{API_ACTIVATE, NULL, "{\"Implements\":[\"IpamDriver\"]}"},
	/* Docker need not ask again at its start for what it has: the state is ours to keep. */
	{"/IpamDriver.GetCapabilities", NULL,
	 "{\"RequiresMACAddress\":false,\"RequiresRequestReplay\":false}"},
	{"/IpamDriver.GetDefaultAddressSpaces", NULL,
	 "{\"LocalDefaultAddressSpace\":\"" POOL_SPACE
	 "\",\"GlobalDefaultAddressSpace\":\"" POOL_SPACE_OF_SWARM "\"}"},
	{"/IpamDriver.RequestPool", request_pool, NULL},
	{"/IpamDriver.ReleasePool", release_pool, NULL},
	{"/IpamDriver.RequestAddress", request_address, NULL},
	{"/IpamDriver.ReleaseAddress", release_address, NULL},
};

static const struct api_entry *find_entry(const char *path)
{
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++)
		if (!strcmp(entries[i].path, path))
			return &entries[i];
	return NULL;
}

char *api_error_text(const char *message)
{
	cleanup_free char *text = cni_format("%s", message);
	cleanup_json json_t *answer = NULL;

	/* It may quote a plugin. */
	cni_make_utf8(text);
	answer = json_pack("{s:s}", "Err", text);
	return json_dumps(answer, JSON_COMPACT);
}

unsigned int api_answer(const struct settings *settings, const char *path, const char *body,
			size_t length, char **text)
{
	const struct api_entry *entry = find_entry(path);
	cleanup_error struct cni_error err = {0};
	cleanup_json json_t *request = NULL;
	cleanup_json json_t *answer = NULL;

	if (!entry) {
		*text = api_error_text("cni-ipam does not know this call");
		return MHD_HTTP_NOT_FOUND;
	}
	if (entry->answer) {
		*text = cni_format("%s", entry->answer);
		return MHD_HTTP_OK;
	}
	/* A request whose answer it did not get Docker repeats without the text that it has sent
	 * already. */
	if (!length) {
		*text = api_error_text(
			"the request is empty, as Docker repeats one whose answer it "
			"did not get because cni-ipam was ended: try again");
		return MHD_HTTP_BAD_REQUEST;
	}
	request = cni_json_parse_object(body, length, "the request", &err);
	if (!request) {
		*text = api_error_text(cni_error_whole(&err));
		return MHD_HTTP_BAD_REQUEST;
	}
	if (entry->call(settings, request, &answer, &err)) {
		*text = api_error_text(cni_error_whole(&err));
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
	*text = answer ? json_dumps(answer, JSON_COMPACT) : cni_format("{}");
	return MHD_HTTP_OK;
}

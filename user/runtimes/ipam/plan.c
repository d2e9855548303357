/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plan.c - which CNI plugin gives a pool's addresses, with which configuration. */
#include "runtimes/ipam/plan.h"

#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "cni/environment.h"
#include "lib/json.h"
#include "cni/result.h"
#include "runtimes/cnirun/conflist.h"
#include "runtimes/cnirun/directory.h"
#include "runtimes/cnirun/plugin.h"

/* What plugins of all ages know. */
#define OWN_VERSION "0.4.0"
#define IFNAME "eth0"
#define HOST_LOCAL "host-local"
#define HOST_LOCAL_LENGTH 126 /* of the 128 bits: of the smallest subnet */
/* Of a plan that is being made: that of a second conflist with the same subnet. */
#define OTHER_NAME "otherName"

typedef bool (*prefix_match)(const struct prefix *one, const struct prefix *other);

static bool range_matches(const json_t *range, const struct prefix *pool, prefix_match match)
{
	const char *subnet = json_string_value(cni_json_get(range, "subnet"));
	struct prefix prefix;

	return subnet && !prefix_parse(subnet, &prefix) && match(&prefix, pool);
}

/* Of host-local's configuration: a range set is an array, and the oldest form is in `ipam` itself.
 */
static const json_t *find_range(const json_t *ipam, const struct prefix *pool, prefix_match match)
{
	const json_t *set, *range;
	size_t i, j;

	if (range_matches(ipam, pool, match))
		return ipam;
	json_array_foreach (cni_json_get(ipam, "ranges"), i, set)
		json_array_foreach (set, j, range)
			if (range_matches(range, pool, match))
				return range;
	return NULL;
}

/* The plugin of the list that has addresses given: its own object. */
static const json_t *find_main_plugin(const struct conflist *list)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (list->plugins, index, plugin)
		if (json_string_length(cni_json_get(cni_json_get(plugin, "ipam"), "type")))
			return plugin;
	return NULL;
}

static const char *ipam_type(const json_t *plugin)
{
	return json_string_value(cni_json_get(cni_json_get(plugin, "ipam"), "type"));
}

/* `config` has "ipam"; `range`: host-local's, stolen, or NULL. */
static json_t *compose(const char *name, const char *version, const json_t *config,
		       const struct plan_request *request, json_t *range)
{
	json_t *copy = json_deep_copy(config);
	char text[PREFIX_TEXT_SIZE];

	/* As a delegate gets it: the whole object, of which it reads "ipam". */
	cni_json_set_new(copy, "type", json_string(ipam_type(config)));
	cni_json_set_new(copy, "capabilities", json_pack("{s:b}", "ips", 1));
	return json_pack("{s:s, s:s, s:s, s:o, s:o*}", "name", name, "cniVersion", version,
			 "subnet", prefix_format(&request->pool, text), "config", copy, "range",
			 range);
}

/* NULL without an error: the list has no such subnet. */
static json_t *plan_of_list(const struct conflist *list, const struct plan_request *request,
			    bool by_name)
{
	const json_t *plugin = find_main_plugin(list), *range;
	uint8_t first[CNI_ADDRESS_SIZE], last[CNI_ADDRESS_SIZE];
	char gateway[CNI_ADDRESS_TEXT_SIZE];
	json_t *own, *plan;

	if (!plugin)
		return NULL;
	if (strcmp(ipam_type(plugin), HOST_LOCAL))
		return by_name ? compose(list->name, list->version, plugin, request, NULL) : NULL;
	range = find_range(cni_json_get(plugin, "ipam"), &request->pool, prefix_equals);
	if (!range)
		return NULL;
	prefix_usable(&request->pool, &request->pool, first, last);
	own = json_pack("{s:O, s:O*, s:O*, s:O*}", "subnet", cni_json_get(range, "subnet"),
			"rangeStart", cni_json_get(range, "rangeStart"), "rangeEnd",
			cni_json_get(range, "rangeEnd"), "gateway", cni_json_get(range, "gateway"));
	if (!json_is_string(json_object_get(own, "gateway")))
		json_object_set_new(own, "gateway",
				    json_string(cni_address_format(first, gateway)));
	plan = compose(list->name, list->version, plugin, request, own);
	/* In one form, with which addresses are compared. */
	cni_address_parse(json_string_value(json_object_get(own, "gateway")), first);
	json_object_set_new(plan, "gateway", json_string(cni_address_format(first, gateway)));
	return plan;
}

/* Sets *found, which may be set already, or leaves it. */
typedef void (*list_visit)(const struct conflist *list, const struct plan_request *request,
			   json_t **found);

/* Unless something is found, a conflist that cannot be read is an error. */
static json_t *each_conflist(list_visit visit, const struct plan_request *request,
			     struct cni_error *err)
{
	static const char *const suffixes[] = {".conflist", ".conf", ".json", NULL};
	cleanup_directory struct directory files = {0};
	cleanup_error struct cni_error unread = {0};
	json_t *found = NULL;

	if (directory_list(&files, conflist_directory(), suffixes, err))
		return NULL;
	for (size_t i = 0; i < files.count; i++) {
		cleanup_conflist struct conflist list = {0};
		struct cni_error problem = {0};

		if (!conflist_find(&list, files.paths[i], &problem))
			visit(&list, request, &found);
		else
			cni_error_chain(&unread, &problem);
	}
	if (!found && cni_error_is_set(&unread)) {
		cni_error_chain(err, &unread);
		cni_error_wrap(err, "it could be of a conflist that cannot be read: mend it, move "
				    "it away, or say --ipam-opt network=NAME");
	}
	return found;
}

static void find_plan(const struct conflist *list, const struct plan_request *request,
		      json_t **found)
{
	cleanup_json json_t *plan = plan_of_list(list, request, false);

	if (plan && !*found)
		*found = TAKE(plan);
	else if (plan &&
		 !json_equal(json_object_get(plan, "name"), json_object_get(*found, "name")))
		json_object_set(*found, OTHER_NAME, json_object_get(plan, "name"));
}

static void find_overlap(const struct conflist *list, const struct plan_request *request,
			 json_t **found)
{
	const json_t *ipam = cni_json_get(find_main_plugin(list), "ipam");

	if (!*found && find_range(ipam, &request->pool, prefix_overlaps))
		*found = json_string(list->name);
}

/* Returns the name of the first conflist whose addresses overlap: a new reference, or NULL. */
static json_t *overlapping_conflist(const struct plan_request *request)
{
	cleanup_error struct cni_error ignored = {0};

	return each_conflist(find_overlap, request, &ignored);
}

bool plan_overlaps_conflist(const struct prefix *pool)
{
	cleanup_json json_t *name = overlapping_conflist(&(struct plan_request){.pool = *pool});

	return name;
}

static json_t *plan_of_network(const struct plan_request *request, struct cni_error *err)
{
	cleanup_conflist struct conflist list = {0};
	char text[PREFIX_TEXT_SIZE];
	json_t *plan;

	if (cni_validate_network_name(request->network, err) ||
	    conflist_find(&list, request->network, err))
		return NULL;
	plan = plan_of_list(&list, request, true);
	if (!plan)
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "the CNI network \"%s\" has no range of the subnet %s: give --subnet "
			      "as one of its ranges has it",
			      request->network, prefix_format(&request->pool, text));
	return plan;
}

static json_t *make_own_plan(const struct plan_request *request, const json_t *ipam)
{
	cleanup_json json_t *config = json_pack("{s:O}", "ipam", ipam);
	char subnet[PREFIX_TEXT_SIZE], network[CNI_ADDRESS_TEXT_SIZE];
	cleanup_free char *name = /* that no other subnet has */
		cni_format("docker-local-%s", prefix_format_name(&request->pool, subnet));
	json_t *range = NULL;

	/* host-local gives all addresses but the gateway. A gateway of Docker is asked for as any
	 * other address is, so what is named here is the address that no interface has. */
	if (!strcmp(ipam_type(config), HOST_LOCAL))
		range = json_pack("{s:s, s:s}", "subnet", prefix_format(&request->pool, subnet),
				  "gateway", cni_address_format(request->pool.address, network));
	return compose(name, OWN_VERSION, config, request, range);
}

/* Steals the plan, which is NULL after an error. */
static json_t *refuse_two(json_t *plan, struct cni_error *err)
{
	cleanup_json json_t *held = plan;
	const char *other = json_string_value(json_object_get(plan, OTHER_NAME));

	if (!other)
		return TAKE(held);
	return cni_error_null(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"the CNI networks \"%s\" and \"%s\" have this subnet: say which one is meant "
		"by --ipam-opt network=NAME",
		json_string_value(json_object_get(plan, "name")), other);
}

static json_t *find_or_make(const struct plan_request *request, const struct settings *settings,
			    struct cni_error *err)
{
	cleanup_json json_t *other = NULL;
	json_t *plan;

	if (request->network)
		return plan_of_network(request, err);
	plan = each_conflist(find_plan, request, err);
	if (plan || cni_error_is_set(err))
		return refuse_two(plan, err);
	other = overlapping_conflist(request);
	if (!other)
		return make_own_plan(request, settings->ipam);
	return cni_error_null(
		err, CNI_ERROR_INVALID_CONFIGURATION,
		"it overlaps with a range of the CNI network \"%s\": give that range's subnet, "
		"and --ip-range for a part of it",
		json_string_value(other));
}

json_t *plan_make(const struct plan_request *request, const struct settings *settings,
		  struct cni_error *err)
{
	cleanup_json json_t *plan = find_or_make(request, settings, err);
	const char *type = plugin_type(json_object_get(plan, "config"));

	/* It would fail for each address. */
	if (plan && !strcmp(type, "dhcp"))
		return cni_error_null(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"the plugin \"dhcp\" asks for an address from inside of the container's"
			" network, which Docker makes only once it has the address: take a"
			" subnet with \"host-local\" or \"static\", outside of what the DHCP"
			" server gives");
	/* It would refuse each address. */
	if (plan && json_object_get(plan, "range") && request->pool.length > HOST_LOCAL_LENGTH)
		return cni_error_null(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"host-local gives no address of so small a subnet: the smallest are "
			"/30 and /126");
	return TAKE(plan);
}

static const json_t *plan_of(const json_t *pool)
{
	return json_object_get(pool, "plan");
}

static const char *plan_text(const json_t *pool, const char *key)
{
	const char *text = json_string_value(json_object_get(plan_of(pool), key));

	return text ? text : "";
}

struct prefix plan_prefix(const json_t *pool)
{
	struct prefix prefix = {0};

	prefix_parse(plan_text(pool, "subnet"), &prefix);
	return prefix;
}

/* The sub-pool, or the whole. */
static struct prefix plan_part(const json_t *pool)
{
	const char *text = json_string_value(json_object_get(pool, "subPool"));
	struct prefix part;

	return text && !prefix_parse(text, &part) ? part : plan_prefix(pool);
}

const char *plan_own_gateway(const json_t *pool)
{
	return plan_text(pool, "gateway");
}

char *plan_default_gateway(const json_t *pool, char text[CNI_ADDRESS_TEXT_SIZE])
{
	struct prefix whole = plan_prefix(pool), part = plan_part(pool);
	uint8_t first[CNI_ADDRESS_SIZE], last[CNI_ADDRESS_SIZE];

	prefix_usable(&whole, &part, first, last);
	/* In one form, whatever the conflist has. */
	cni_address_parse(plan_own_gateway(pool), first);
	cni_address_format(first, text);
	return text;
}

/* The range of host-local: the whole pool for one address, the sub-pool for any. */
static json_t *range_for(const json_t *pool, const char *wanted)
{
	struct prefix whole = plan_prefix(pool), part = plan_part(pool);
	json_t *range = json_copy(json_object_get(plan_of(pool), "range"));
	uint8_t first[CNI_ADDRESS_SIZE], last[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (wanted) {
		cni_json_delete(range, "rangeStart");
		cni_json_delete(range, "rangeEnd");
	} else if (!prefix_equals(&whole, &part)) {
		prefix_usable(&whole, &part, first, last);
		json_object_set_new(range, "rangeStart",
				    json_string(cni_address_format(first, text)));
		json_object_set_new(range, "rangeEnd", json_string(cni_address_format(last, text)));
	}
	return range;
}

static json_t *config_for(const json_t *pool, const char *wanted)
{
	static const char *const oldest_form[] = {"subnet", "rangeStart", "rangeEnd", "gateway"};
	json_t *config = json_deep_copy(json_object_get(plan_of(pool), "config"));
	json_t *ipam = cni_json_get(config, "ipam");

	if (!json_object_get(plan_of(pool), "range"))
		return config;
	for (size_t i = 0; i < sizeof(oldest_form) / sizeof(oldest_form[0]); i++)
		cni_json_delete(ipam, oldest_form[i]);
	cni_json_set_new(ipam, "ranges", json_pack("[[o]]", range_for(pool, wanted)));
	return config;
}

/* `wanted`: NULL for any address, and for DEL. */
static int run_plugin(const char *command, const struct plan_call *call, const char *wanted,
		      json_t **result, struct cni_error *err)
{
	cleanup_json json_t *config = config_for(call->pool, wanted);
	cleanup_json json_t *arguments = NULL;
	/* Plugins want one, and do not look at it. */
	cleanup_free char *netns = cni_format("/run/docker/netns/%s", call->id);
	struct prefix prefix = plan_prefix(call->pool);
	struct conflist list = {
		.name = (char *)plan_text(call->pool, "name"),
		.version = (char *)plan_text(call->pool, "cniVersion"),
	};
	struct runtime_conf conf = call->settings->conf;
	const struct operation operation = {.command = command, .list = &list, .conf = &conf};

	if (!json_is_string(cni_json_get(config, "type")))
		return cni_error_set(err, CNI_ERROR_DECODE, "the pool's plan has no \"type\"");
	if (wanted) {
		cleanup_free char *cidr = cni_format("%s/%d", wanted, prefix_own_length(&prefix));

		arguments = json_pack("{s:[s]}", "ips", cidr);
	}
	conf.container_id = call->id;
	conf.ifname = IFNAME;
	conf.netns = netns;
	conf.capability_args = arguments;
	return plugin_run(&operation, config, NULL, result, err);
}

static int find_given(const json_t *pool, const json_t *answer, char given[CNI_ADDRESS_TEXT_SIZE],
		      struct cni_error *err)
{
	const char *version = json_string_value(cni_json_get(answer, "cniVersion"));
	struct prefix prefix = plan_prefix(pool);
	struct cni_result result = {0};
	bool found = false;

	if (cni_result_read(&result, answer, version, err))
		return -1;
	for (size_t i = 0; i < result.address_count && !found; i++) {
		found = prefix_contains(&prefix, result.addresses[i].address);
		if (found)
			cni_address_format(result.addresses[i].address, given);
	}
	cni_result_release(&result);
	return found ? 0
		     : cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the plugin \"%s\" gave no address of the pool",
				     plugin_type(json_object_get(plan_of(pool), "config")));
}

int plan_add(const struct plan_call *call, const char *wanted, char given[CNI_ADDRESS_TEXT_SIZE],
	     struct cni_error *err)
{
	cleanup_json json_t *answer = NULL;

	if (run_plugin("ADD", call, wanted, &answer, err))
		return -1;
	return find_given(call->pool, answer, given, err);
}

int plan_del(const struct plan_call *call, struct cni_error *err)
{
	return run_plugin("DEL", call, NULL, NULL, err);
}

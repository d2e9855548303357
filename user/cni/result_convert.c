/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_convert.c - results in another version's shape, as libcni converts them.
 *
 * Every conversion goes by way of the newest shape, so there is one step up and one
 * step down for each older family.
 */
#include <string.h>

#include "cni/cleanup.h"
#include "cni/json.h"
#include "cni/result.h"
#include "cni/version.h"

static int no_memory_unless(bool done, struct cni_error *err)
{
	return done ? 0 : cni_error_no_memory(err);
}

/* Copies the reference, not the value; nothing where the source lacks the key. */
static int copy_key(json_t *target, const char *target_key, const json_t *source,
		    const char *source_key, struct cni_error *err)
{
	json_t *value = cni_json_get(source, source_key);

	return no_memory_unless(!value || !json_object_set(target, target_key, value), err);
}

/* A route as 0.2.0 knows it, appended to `routes`. */
static int append_route(json_t *routes, const json_t *route, struct cni_error *err)
{
	json_t *plain = json_object();

	if (!plain || json_array_append_new(routes, plain))
		return cni_error_no_memory(err);
	if (copy_key(plain, "dst", route, "dst", err) || copy_key(plain, "gw", route, "gw", err))
		return -1;
	return 0;
}

static int raise_routes(json_t *routes, const json_t *family, struct cni_error *err)
{
	json_t *array = NULL;
	json_t *route;
	size_t index;

	if (cni_json_get_array(family, "routes", &array, err))
		return -1;
	json_array_foreach (array, index, route) {
		if (cni_json_check_element(route, "routes", index, err) ||
		    append_route(routes, route, err))
			return -1;
	}
	return 0;
}

/* What stood under ip4 or ip6 becomes an entry of ips, and its routes join the others. */
static int raise_family(const json_t *family, json_t *ips, json_t *routes, struct cni_error *err)
{
	json_t *entry;

	if (!family)
		return 0;
	entry = json_object();
	if (!entry || json_array_append_new(ips, entry))
		return cni_error_no_memory(err);
	if (copy_key(entry, "address", family, "ip", err) ||
	    copy_key(entry, "gateway", family, "gateway", err))
		return -1;
	return raise_routes(routes, family, err);
}

static int raise_from_0_1(json_t **json, struct cni_error *err)
{
	cleanup_json json_t *ips = json_array();
	cleanup_json json_t *routes = json_array();
	cleanup_json json_t *raised = json_object();

	if (!ips || !routes || !raised)
		return cni_error_no_memory(err);
	if (raise_family(cni_json_get(*json, "ip4"), ips, routes, err) ||
	    raise_family(cni_json_get(*json, "ip6"), ips, routes, err))
		return -1;
	if (json_object_set(raised, "ips", ips) ||
	    (json_array_size(routes) && json_object_set(raised, "routes", routes)))
		return cni_error_no_memory(err);
	if (copy_key(raised, "dns", *json, "dns", err))
		return -1;
	json_decref(*json);
	*json = TAKE(raised);
	return 0;
}

static int raise_from_0_3(json_t **json, struct cni_error *err)
{
	json_t *entry;
	size_t index;

	(void)err;
	json_array_foreach (cni_json_get(*json, "ips"), index, entry)
		cni_json_delete(entry, "version");
	return 0;
}

static bool is_ipv4_cidr(const json_t *cidr)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length;
	const char *text = json_string_value(cidr);

	return text && !cni_address_parse_cidr(text, address, &prefix_length) &&
	       cni_address_is_ipv4(address);
}

static int lower_to_0_3(json_t **json, struct cni_error *err)
{
	static const char *const newer_keys[] = {"mtu", "socketPath", "pciID"};
	json_t *entry;
	size_t index;

	json_array_foreach (cni_json_get(*json, "ips"), index, entry) {
		bool ipv4 = is_ipv4_cidr(cni_json_get(entry, "address"));

		if (cni_json_set_new(entry, "version", json_string(ipv4 ? "4" : "6"), err))
			return -1;
	}
	json_array_foreach (cni_json_get(*json, "interfaces"), index, entry) {
		for (size_t i = 0; i < sizeof(newer_keys) / sizeof(newer_keys[0]); i++)
			cni_json_delete(entry, newer_keys[i]);
	}
	return 0;
}

static int lower_routes(json_t *family, const json_t *json, bool ipv4, struct cni_error *err)
{
	cleanup_json json_t *routes = json_array();
	json_t *array = NULL;
	json_t *route;
	size_t index;

	if (!routes)
		return cni_error_no_memory(err);
	if (cni_json_get_array(json, "routes", &array, err))
		return -1;
	json_array_foreach (array, index, route) {
		if (cni_json_check_element(route, "routes", index, err))
			return -1;
		if (is_ipv4_cidr(cni_json_get(route, "dst")) == ipv4 &&
		    append_route(routes, route, err))
			return -1;
	}
	if (!json_array_size(routes))
		return 0;
	return no_memory_unless(!json_object_set(family, "routes", routes), err);
}

/* The first address of a family, where there is one, under ip4 or ip6. */
static int lower_family(json_t *lowered, const json_t *json, bool ipv4, struct cni_error *err)
{
	json_t *family;
	json_t *entry;
	size_t index;

	json_array_foreach (cni_json_get(json, "ips"), index, entry) {
		if (is_ipv4_cidr(cni_json_get(entry, "address")) != ipv4)
			continue;
		family = json_object();
		if (!family || json_object_set_new(lowered, ipv4 ? "ip4" : "ip6", family))
			return cni_error_no_memory(err);
		if (copy_key(family, "ip", entry, "address", err) ||
		    copy_key(family, "gateway", entry, "gateway", err))
			return -1;
		return lower_routes(family, json, ipv4, err);
	}
	return 0;
}

static int lower_to_0_1(json_t **json, struct cni_error *err)
{
	cleanup_json json_t *lowered = json_object();

	if (!lowered)
		return cni_error_no_memory(err);
	if (lower_family(lowered, *json, true, err) || lower_family(lowered, *json, false, err))
		return -1;
	if (!json_object_size(lowered))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the result has no IP address, so it cannot be expressed in a "
				     "cniVersion before 0.3.0");
	if (copy_key(lowered, "dns", *json, "dns", err))
		return -1;
	json_decref(*json);
	*json = TAKE(lowered);
	return 0;
}

static int convert_family(json_t **json, enum cni_version_family from, enum cni_version_family to,
			  struct cni_error *err)
{
	static int (*const raise[])(json_t * *json, struct cni_error * err) = {
		[CNI_FAMILY_0_1] = raise_from_0_1,
		[CNI_FAMILY_0_3] = raise_from_0_3,
		[CNI_FAMILY_1_0] = NULL,
	};
	static int (*const lower[])(json_t * *json, struct cni_error * err) = {
		[CNI_FAMILY_0_1] = lower_to_0_1,
		[CNI_FAMILY_0_3] = lower_to_0_3,
		[CNI_FAMILY_1_0] = NULL,
	};

	if (from == to)
		return 0;
	if (raise[from] && raise[from](json, err))
		return -1;
	if (lower[to] && lower[to](json, err))
		return -1;
	return 0;
}

json_t *cni_result_convert(const json_t *json, const char *from, const char *to,
			   struct cni_error *err)
{
	cleanup_json json_t *converted = NULL;
	struct cni_result checked = {0};

	/* What the steps walk over has the right types after this. */
	if (cni_result_read(&checked, json, from, err))
		return NULL;
	cni_result_release(&checked);

	converted = json_deep_copy(json);
	if (!converted) {
		cni_error_no_memory(err);
		return NULL;
	}
	if (convert_family(&converted, cni_version_family(from), cni_version_family(to), err))
		return NULL;
	return cni_result_relabel(converted, to, err);
}

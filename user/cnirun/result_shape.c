/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_shape.c - plugins' results: whether they are valid, and in another version's shape.
 */
#include "cnirun/result_shape.h"

#include "lib/cleanup.h"
#include "cni/json.h"
#include "cni/result.h"
#include "cni/version.h"

/* What a key of a result must hold, where it is there. */
enum field_type {
	STRING = 1,
	INTEGER,
	CIDR,    /* must be there */
	GATEWAY, /* "" is none */
	STRINGS,
	OBJECT,
	OBJECTS,
};

#define IN_0_1 (1U << CNI_FAMILY_0_1)
#define IN_0_3 (1U << CNI_FAMILY_0_3)
#define IN_1_0 (1U << CNI_FAMILY_1_0)

/* Ends with {0}. */
struct result_field {
	const char *key;
	enum field_type type;
	unsigned int families;             /* that have the key; 0: all */
	const struct result_field *fields; /* of OBJECT and OBJECTS */
};

static const struct result_field dns_fields[] = {
	{"domain", STRING, 0, NULL},
	{"nameservers", STRINGS, 0, NULL},
	{"search", STRINGS, 0, NULL},
	{"options", STRINGS, 0, NULL},
	{0},
};

static const struct result_field route_fields[] = {
	{"dst", CIDR, 0, NULL},         {"gw", GATEWAY, 0, NULL},
	{"mtu", INTEGER, 0, NULL},      {"advmss", INTEGER, 0, NULL},
	{"priority", INTEGER, 0, NULL}, {"table", INTEGER, 0, NULL},
	{"scope", INTEGER, 0, NULL},    {0},
};

/* ip4 or ip6. */
static const struct result_field family_fields[] = {
	{"ip", CIDR, 0, NULL},
	{"gateway", GATEWAY, 0, NULL},
	{"routes", OBJECTS, 0, route_fields},
	{0},
};

static const struct result_field ip_fields[] = {
	{"address", CIDR, 0, NULL},
	{"gateway", GATEWAY, 0, NULL},
	{"interface", INTEGER, 0, NULL},
	{"version", STRING, IN_0_3, NULL},
	{0},
};

static const struct result_field interface_fields[] = {
	{"name", STRING, 0, NULL},
	{"mac", STRING, 0, NULL},
	{"sandbox", STRING, 0, NULL},
	{"socketPath", STRING, IN_1_0, NULL},
	{"pciID", STRING, IN_1_0, NULL},
	{"mtu", INTEGER, IN_1_0, NULL},
	{0},
};

static const struct result_field result_fields[] = {
	{"dns", OBJECT, 0, dns_fields},
	{"ip4", OBJECT, IN_0_1, family_fields},
	{"ip6", OBJECT, IN_0_1, family_fields},
	{"interfaces", OBJECTS, IN_0_3 | IN_1_0, interface_fields},
	{"ips", OBJECTS, IN_0_3 | IN_1_0, ip_fields},
	{"routes", OBJECTS, IN_0_3 | IN_1_0, route_fields},
	{0},
};

/* What an object is compared with. */
struct shape {
	const struct result_field *fields;
	unsigned int family;
};

static int check_gateway(const json_t *object, const char *key, struct cni_error *err)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	const char *text = "";

	if (cni_json_get_string(object, key, &text, err))
		return -1;
	if (!*text || !cni_address_parse(text, address))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\" is \"%s\", which is no address", key, text);
}

/* Go's decoder leaves a string empty for null. */
static int check_strings(const json_t *object, const char *key, struct cni_error *err)
{
	json_t *array = NULL;
	const json_t *element;
	const char *ignored;
	size_t index;

	if (cni_json_get_array(object, key, &array, err))
		return -1;
	json_array_foreach (array, index, element) {
		if (!json_is_null(element) &&
		    cni_json_get_string_element(element, key, index, &ignored, err))
			return -1;
	}
	return 0;
}

static int check_shape(const json_t *object, void *context, struct cni_error *err);

static int check_field(const json_t *object, const struct result_field *field, unsigned int family,
		       struct cni_error *err)
{
	struct shape inside = {field->fields, family};
	struct cni_result_address address;
	json_t *value = NULL;
	json_int_t number;
	const char *text;

	switch (field->type) {
	case STRING:
		return cni_json_get_string(object, field->key, &text, err);
	case INTEGER:
		return cni_json_get_integer(object, field->key, &number, err);
	case CIDR:
		return cni_result_get_cidr(object, field->key, &address, err);
	case GATEWAY:
		return check_gateway(object, field->key, err);
	case STRINGS:
		return check_strings(object, field->key, err);
	case OBJECT:
		if (cni_json_get_object(object, field->key, &value, err))
			return -1;
		if (!value || !check_shape(value, &inside, err))
			return 0;
		return cni_error_wrap(err, "%s", field->key);
	default:
		return cni_json_each_object(object, field->key, check_shape, &inside, err);
	}
}

static int check_shape(const json_t *object, void *context, struct cni_error *err)
{
	const struct shape *shape = context;

	for (const struct result_field *field = shape->fields; field->key; field++)
		if ((!field->families || field->families & shape->family) &&
		    check_field(object, field, shape->family, err))
			return -1;
	return 0;
}

int result_validate(const json_t *result, const char *version, struct cni_error *err)
{
	struct shape shape = {result_fields, 1U << cni_version_family(version)};

	return check_shape(result, &shape, err);
}

/* A route as 0.2.0 knows it. */
static void append_route(json_t *routes, const json_t *route)
{
	json_array_append_new(routes, json_pack("{s:O*, s:O*}", "dst", cni_json_get(route, "dst"),
						"gw", cni_json_get(route, "gw")));
}

/* In the newest shape, ip4 and ip6 are entries of ips, and their routes are together. */
static json_t *raise_from_0_1(const json_t *result)
{
	const json_t *families[] = {cni_json_get(result, "ip4"), cni_json_get(result, "ip6")};
	cleanup_json json_t *ips = json_array();
	cleanup_json json_t *routes = json_array();
	const json_t *route;
	size_t index;

	for (int i = 0; i < 2; i++) {
		if (families[i])
			json_array_append_new(ips,
					      json_pack("{s:O*, s:O*}", "address",
							cni_json_get(families[i], "ip"), "gateway",
							cni_json_get(families[i], "gateway")));
		json_array_foreach (cni_json_get(families[i], "routes"), index, route)
			append_route(routes, route);
	}
	return json_pack("{s:O, s:O*, s:O*}", "ips", ips, "routes",
			 json_array_size(routes) ? routes : NULL, "dns",
			 cni_json_get(result, "dns"));
}

static bool is_ipv4(const json_t *object, const char *key)
{
	const char *text = json_string_value(cni_json_get(object, key));
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length;

	return text && !cni_address_parse_cidr(text, address, &prefix_length) &&
	       cni_address_is_ipv4(address);
}

static json_t *lower_to_0_3(const json_t *newest)
{
	static const char *const newer_keys[] = {"mtu", "socketPath", "pciID"};
	json_t *lowered = json_deep_copy(newest);
	json_t *entry;
	size_t index;

	json_array_foreach (cni_json_get(lowered, "ips"), index, entry)
		cni_json_set_new(entry, "version",
				 json_string(is_ipv4(entry, "address") ? "4" : "6"));
	json_array_foreach (cni_json_get(lowered, "interfaces"), index, entry) {
		for (size_t i = 0; i < sizeof(newer_keys) / sizeof(newer_keys[0]); i++)
			cni_json_delete(entry, newer_keys[i]);
	}
	return lowered;
}

/* ip4 or ip6, by the family of the entry of ips. */
static json_t *lower_ip(const json_t *newest, const json_t *ip)
{
	cleanup_json json_t *routes = json_array();
	const json_t *route;
	size_t index;

	json_array_foreach (cni_json_get(newest, "routes"), index, route) {
		if (is_ipv4(route, "dst") == is_ipv4(ip, "address"))
			append_route(routes, route);
	}
	return json_pack("{s:O*, s:O*, s:O*}", "ip", cni_json_get(ip, "address"), "gateway",
			 cni_json_get(ip, "gateway"), "routes",
			 json_array_size(routes) ? routes : NULL);
}

/* The first address of each family stays. */
static json_t *lower_to_0_1(const json_t *newest)
{
	json_t *lowered = json_object();
	json_t *dns = cni_json_get(newest, "dns");
	const json_t *ip;
	size_t index;

	json_array_foreach (cni_json_get(newest, "ips"), index, ip) {
		const char *key = is_ipv4(ip, "address") ? "ip4" : "ip6";

		if (!json_object_get(lowered, key))
			json_object_set_new(lowered, key, lower_ip(newest, ip));
	}
	if (dns)
		json_object_set(lowered, "dns", dns);
	return lowered;
}

/* By way of the newest shape, so that each older family needs one step up and one down. */
json_t *result_convert(const json_t *result, const char *from, const char *to,
		       struct cni_error *err)
{
	enum cni_version_family from_family = cni_version_family(from);
	enum cni_version_family to_family = cni_version_family(to);
	cleanup_json json_t *newest = NULL, *lowered = NULL;
	json_t *ip;
	size_t index;

	if (result_validate(result, from, err))
		return NULL;
	if (from_family == to_family)
		return cni_result_relabel(result, to);
	if (from_family != CNI_FAMILY_0_1 && to_family == CNI_FAMILY_0_1 &&
	    !json_array_size(cni_json_get(result, "ips"))) {
		cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			      "the result has no IP address, so it cannot be expressed in a "
			      "cniVersion before 0.3.0");
		return NULL;
	}
	newest = from_family == CNI_FAMILY_0_1 ? raise_from_0_1(result) : json_deep_copy(result);
	if (from_family == CNI_FAMILY_0_3)
		json_array_foreach (cni_json_get(newest, "ips"), index, ip)
			cni_json_delete(ip, "version");
	if (to_family == CNI_FAMILY_1_0)
		return cni_result_relabel(newest, to);
	lowered = to_family == CNI_FAMILY_0_1 ? lower_to_0_1(newest) : lower_to_0_3(newest);
	return cni_result_relabel(lowered, to);
}

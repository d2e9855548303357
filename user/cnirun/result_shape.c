/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_shape.c - whether a plugin's result is valid.
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

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result_validate.c - whether a result is one, in the shape of its version.
 */
#include "cnirun/result_validate.h"

#include "cni/address.h"
#include "cni/json.h"
#include "cni/version.h"

typedef int (*check_object)(const json_t *object, struct cni_error *err);

/* `keys` ends with NULL, here and below. */
static int check_strings(const json_t *object, const char *const *keys, struct cni_error *err)
{
	const char *ignored;

	for (; *keys; keys++) {
		if (cni_json_get_string(object, *keys, &ignored, err))
			return -1;
	}
	return 0;
}

static int check_integers(const json_t *object, const char *const *keys, struct cni_error *err)
{
	json_int_t ignored;

	for (; *keys; keys++) {
		if (cni_json_get_integer(object, *keys, &ignored, err))
			return -1;
	}
	return 0;
}

static int check_array(const json_t *object, const char *key, check_object check,
		       struct cni_error *err)
{
	json_t *array = NULL;
	const json_t *element;
	size_t index;

	if (cni_json_get_array(object, key, &array, err))
		return -1;
	json_array_foreach (array, index, element) {
		if (cni_json_check_element(element, key, index, err))
			return -1;
		if (check(element, err))
			return cni_error_wrap(err, "%s[%zu]", key, index);
	}
	return 0;
}

static int check_cidr(const json_t *object, const char *key, struct cni_error *err)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	uint8_t prefix_length;
	const char *text = NULL;

	if (cni_json_get_string(object, key, &text, err))
		return -1;
	if (!text)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"%s\" is missing",
				     key);
	if (!cni_address_parse_cidr(text, address, &prefix_length))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "\"%s\" is \"%s\", which is no address with a prefix length, such as "
			     "10.1.0.5/24",
			     key, text);
}

/* Missing, null and "" are none. */
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

static int check_route(const json_t *route, struct cni_error *err)
{
	static const char *const numbers[] = {"mtu", "advmss", "priority", "table", "scope", NULL};

	if (check_cidr(route, "dst", err) || check_gateway(route, "gw", err))
		return -1;
	return check_integers(route, numbers, err);
}

static int check_ip(const json_t *ip, struct cni_error *err)
{
	static const char *const numbers[] = {"interface", NULL};

	if (check_cidr(ip, "address", err) || check_gateway(ip, "gateway", err))
		return -1;
	return check_integers(ip, numbers, err);
}

static int check_ip_0_3(const json_t *ip, struct cni_error *err)
{
	static const char *const texts[] = {"version", NULL};

	return check_ip(ip, err) || check_strings(ip, texts, err) ? -1 : 0;
}

static int check_interface_0_3(const json_t *interface, struct cni_error *err)
{
	static const char *const texts[] = {"name", "mac", "sandbox", NULL};

	return check_strings(interface, texts, err);
}

static int check_interface(const json_t *interface, struct cni_error *err)
{
	static const char *const texts[] = {"socketPath", "pciID", NULL};
	static const char *const numbers[] = {"mtu", NULL};

	if (check_interface_0_3(interface, err) || check_strings(interface, texts, err))
		return -1;
	return check_integers(interface, numbers, err);
}

/* ip4 or ip6 of 0.2.0 and before. */
static int check_family(const json_t *result, const char *key, struct cni_error *err)
{
	json_t *family = NULL;

	if (cni_json_get_object(result, key, &family, err))
		return -1;
	if (!family)
		return 0;
	if (check_cidr(family, "ip", err) || check_gateway(family, "gateway", err) ||
	    check_array(family, "routes", check_route, err))
		return cni_error_wrap(err, "%s", key);
	return 0;
}

/* Go's decoder leaves a string empty for null. */
static int check_texts(const json_t *object, const char *key, struct cni_error *err)
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

static int check_dns(const json_t *result, struct cni_error *err)
{
	static const char *const texts[] = {"domain", NULL};
	json_t *dns = NULL;

	if (cni_json_get_object(result, "dns", &dns, err))
		return -1;
	if (check_strings(dns, texts, err) || check_texts(dns, "nameservers", err) ||
	    check_texts(dns, "search", err) || check_texts(dns, "options", err))
		return cni_error_wrap(err, "dns");
	return 0;
}

int result_validate(const json_t *result, const char *version, struct cni_error *err)
{
	enum cni_version_family family = cni_version_family(version);
	bool newest = family == CNI_FAMILY_1_0;

	if (check_dns(result, err))
		return -1;
	if (family == CNI_FAMILY_0_1)
		return check_family(result, "ip4", err) || check_family(result, "ip6", err) ? -1
											    : 0;
	if (check_array(result, "interfaces", newest ? check_interface : check_interface_0_3,
			err) ||
	    check_array(result, "ips", newest ? check_ip : check_ip_0_3, err))
		return -1;
	return check_array(result, "routes", check_route, err);
}

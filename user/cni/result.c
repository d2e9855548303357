/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * result.c - results of every CNI version, read into one plain form.
 */
#include "cni/result.h"

#include <stdlib.h>
#include <string.h>

#include "cni/json.h"
#include "cni/version.h"

/* The family in which the result is written: it may carry another label than the
 * configuration, but not another shape. */
static int check_family(const json_t *json, const char *version, struct cni_error *err)
{
	const char *found = "";

	if (cni_json_get_string(json, "cniVersion", &found, err))
		return -1;
	if (!*found)
		return 0;
	if (cni_version_is_supported(found) &&
	    cni_version_family(found) == cni_version_family(version))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "a result of cniVersion \"%s\" cannot be used with a configuration of "
			     "cniVersion \"%s\": all plugins of the list must speak one version",
			     found, version);
}

static int read_cidr(struct cni_result_address *address, const json_t *object, const char *key,
		     struct cni_error *err)
{
	const char *text = NULL;

	if (cni_json_get_string(object, key, &text, err))
		return -1;
	if (!text)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"%s\" is missing",
				     key);
	if (cni_address_parse_cidr(text, address->address, &address->prefix_length))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is \"%s\", which is no address with a prefix length, "
				     "such as 10.1.0.5/24",
				     key, text);
	return 0;
}

static int read_ip4_ip6(struct cni_result *result, const json_t *json, struct cni_error *err)
{
	static const char *const keys[] = {"ip4", "ip6"};

	result->addresses = calloc(2, sizeof(*result->addresses));
	if (!result->addresses)
		return cni_error_no_memory(err);
	for (size_t i = 0; i < 2; i++) {
		struct cni_result_address *address = &result->addresses[result->address_count];
		json_t *object = NULL;

		if (cni_json_get_object(json, keys[i], &object, err))
			return -1;
		if (!object)
			continue;
		if (read_cidr(address, object, "ip", err))
			return cni_error_wrap(err, "%s", keys[i]);
		address->interface = -1;
		result->address_count++;
	}
	return 0;
}

static int read_interface(struct cni_result_interface *interface, const json_t *entry,
			  struct cni_error *err)
{
	*interface = (struct cni_result_interface){.name = "", .mac = "", .sandbox = ""};
	if (cni_json_get_string(entry, "name", &interface->name, err) ||
	    cni_json_get_string(entry, "mac", &interface->mac, err) ||
	    cni_json_get_string(entry, "sandbox", &interface->sandbox, err))
		return -1;
	return 0;
}

static int read_interfaces(struct cni_result *result, const json_t *json, struct cni_error *err)
{
	json_t *array = NULL;
	json_t *entry;
	size_t index;

	if (cni_json_get_array(json, "interfaces", &array, err))
		return -1;
	if (!json_array_size(array))
		return 0;
	result->interfaces = calloc(json_array_size(array), sizeof(*result->interfaces));
	if (!result->interfaces)
		return cni_error_no_memory(err);
	json_array_foreach (array, index, entry) {
		if (cni_json_check_element(entry, "interfaces", index, err))
			return -1;
		if (read_interface(&result->interfaces[index], entry, err))
			return cni_error_wrap(err, "interfaces[%zu]", index);
		result->interface_count++;
	}
	return 0;
}

/* An index out of range names nothing; libcni's plugins take the address all the same. */
static int read_ip(struct cni_result *result, const json_t *entry, struct cni_error *err)
{
	struct cni_result_address *address = &result->addresses[result->address_count];
	json_int_t interface = -1;

	if (read_cidr(address, entry, "address", err) ||
	    cni_json_get_integer(entry, "interface", &interface, err))
		return -1;
	if (interface < 0 || (size_t)interface >= result->interface_count)
		interface = -1;
	address->interface = (int)interface;
	result->address_count++;
	return 0;
}

static int read_ips(struct cni_result *result, const json_t *json, struct cni_error *err)
{
	json_t *array = NULL;
	json_t *entry;
	size_t index;

	if (cni_json_get_array(json, "ips", &array, err))
		return -1;
	if (!json_array_size(array))
		return 0;
	result->addresses = calloc(json_array_size(array), sizeof(*result->addresses));
	if (!result->addresses)
		return cni_error_no_memory(err);
	json_array_foreach (array, index, entry) {
		if (cni_json_check_element(entry, "ips", index, err))
			return -1;
		if (read_ip(result, entry, err))
			return cni_error_wrap(err, "ips[%zu]", index);
	}
	return 0;
}

static int read_shape(struct cni_result *result, const json_t *json, enum cni_version_family family,
		      struct cni_error *err)
{
	if (family == CNI_FAMILY_0_1)
		return read_ip4_ip6(result, json, err);
	if (read_interfaces(result, json, err))
		return -1;
	return read_ips(result, json, err);
}

int cni_result_read(struct cni_result *result, const json_t *json, const char *version,
		    struct cni_error *err)
{
	if (check_family(json, version, err) ||
	    read_shape(result, json, cni_version_family(version), err)) {
		cni_result_release(result);
		return cni_error_wrap(err, "prevResult");
	}
	return 0;
}

void cni_result_release(struct cni_result *result)
{
	free(result->interfaces);
	free(result->addresses);
	*result = (struct cni_result){0};
}

bool cni_result_address_is_on(const struct cni_result *result,
			      const struct cni_result_address *address, const char *ifname)
{
	const struct cni_result_interface *interface;

	if (address->interface < 0)
		return true;
	interface = &result->interfaces[address->interface];
	return *interface->sandbox && !strcmp(interface->name, ifname);
}

const struct cni_result_address *cni_result_first_address(const struct cni_result *result,
							  bool ipv4, const char *ifname)
{
	for (size_t i = 0; i < result->address_count; i++) {
		const struct cni_result_address *address = &result->addresses[i];

		if (cni_address_is_ipv4(address->address) == ipv4 &&
		    cni_result_address_is_on(result, address, ifname))
			return address;
	}
	return NULL;
}

json_t *cni_result_relabel(const json_t *json, const char *version, struct cni_error *err)
{
	json_t *copy = json_copy((json_t *)json); /* shallow: the rest is shared, unchanged */

	if (!copy) {
		cni_error_no_memory(err);
		return NULL;
	}
	if (cni_json_set_new(copy, "cniVersion", json_string(version), err)) {
		json_decref(copy);
		return NULL;
	}
	return copy;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* result.c - results of every CNI version, read into one plain form. */
#include "cni/result.h"

#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/json.h"
#include "cni/version.h"

/* Reads the key, and sets all but the interface. */
static int get_cidr(const json_t *object, const char *key, struct cni_result_address *address,
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

/* ip4 or ip6 of 0.2.0 and before. */
static int read_family(struct cni_result *result, const json_t *json, const char *key,
		       struct cni_error *err)
{
	struct cni_result_address *address = &result->addresses[result->address_count];
	json_t *object = NULL;

	if (cni_json_get_object(json, key, &object, err))
		return -1;
	if (!object)
		return 0;
	address->interface = -1;
	result->address_count++;
	return get_cidr(object, "ip", address, err) ? cni_error_wrap(err, "%s", key) : 0;
}

static int read_interface(const json_t *entry, void *context, struct cni_error *err)
{
	struct cni_result *result = context;
	struct cni_result_interface *interface = &result->interfaces[result->interface_count++];

	*interface = (struct cni_result_interface){.name = "", .mac = "", .sandbox = ""};
	if (cni_json_get_string(entry, "name", &interface->name, err) ||
	    cni_json_get_string(entry, "mac", &interface->mac, err) ||
	    cni_json_get_string(entry, "sandbox", &interface->sandbox, err))
		return -1;
	return 0;
}

/* libcni's plugins accept an address whose index is out of range, too. */
static int read_ip(const json_t *entry, void *context, struct cni_error *err)
{
	struct cni_result *result = context;
	struct cni_result_address *address = &result->addresses[result->address_count++];
	json_int_t interface = -1;

	if (get_cidr(entry, "address", address, err) ||
	    cni_json_get_integer(entry, "interface", &interface, err))
		return -1;
	if (interface < 0 || (size_t)interface >= result->interface_count)
		interface = -1;
	address->interface = (int)interface;
	return 0;
}

static int read_result(struct cni_result *result, const json_t *json, const char *version,
		       struct cni_error *err)
{
	size_t interfaces = json_array_size(cni_json_get(json, "interfaces"));
	size_t ips = json_array_size(cni_json_get(json, "ips"));
	enum cni_version_family family = cni_version_family(version);
	const char *found = "";

	if (cni_json_get_string(json, "cniVersion", &found, err))
		return -1;
	/* It may carry another version than the configuration, but must be of the same family. */
	if (*found && (!cni_version_is_supported(found) || cni_version_family(found) != family))
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"a result of cniVersion \"%s\" cannot be used with a configuration of "
			"cniVersion \"%s\": all plugins of the list must speak one version",
			found, version);
	/* ip4 and ip6 need two addresses; calloc() of nothing may return NULL. */
	result->interfaces = or_exit(calloc(interfaces + 1, sizeof(*result->interfaces)));
	result->addresses = or_exit(calloc(ips + 2, sizeof(*result->addresses)));
	if (family == CNI_FAMILY_0_1)
		return read_family(result, json, "ip4", err) ||
				       read_family(result, json, "ip6", err)
			       ? -1
			       : 0;
	if (cni_json_each_object(json, "interfaces", read_interface, result, err))
		return -1;
	return cni_json_each_object(json, "ips", read_ip, result, err);
}

int cni_result_read(struct cni_result *result, const json_t *json, const char *version,
		    struct cni_error *err)
{
	if (!read_result(result, json, version, err))
		return 0;
	cni_result_release(result);
	return -1;
}

void cni_result_release(struct cni_result *result)
{
	free(result->interfaces);
	free(result->addresses);
	*result = (struct cni_result){0};
}

static int check_route(const json_t *route, void *context, struct cni_error *err)
{
	struct cni_result_address destination;

	return get_cidr(route, "dst", &destination, err);
}

static int check_routes(const json_t *object, struct cni_error *err)
{
	return cni_json_each_object(object, "routes", check_route, NULL, err);
}

int cni_result_validate(const json_t *json, const char *version, struct cni_error *err)
{
	static const char *const families[] = {"ip4", "ip6"};
	struct cni_result result = {0};

	if (cni_result_read(&result, json, version, err))
		return -1;
	cni_result_release(&result);
	if (cni_version_family(version) != CNI_FAMILY_0_1)
		return check_routes(json, err);
	for (size_t i = 0; i < 2; i++)
		if (check_routes(cni_json_get(json, families[i]), err))
			return cni_error_wrap(err, "%s", families[i]);
	return 0;
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
	for_each (address, result->addresses, result->address_count)
		if (cni_address_is_ipv4(address->address) == ipv4 &&
		    cni_result_address_is_on(result, address, ifname))
			return address;
	return NULL;
}

json_t *cni_result_relabel(const json_t *json, const char *version)
{
	/* A shallow copy, as only a key of the top level changes. */
	json_t *copy = json_copy((json_t *)json);

	cni_json_set_new(copy, "cniVersion", json_string(version));
	return copy;
}

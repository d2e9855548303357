/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* in_use.c - subnets and bridges of interfaces and of Podman's networks. */
#include "netavark/in_use.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "lib/array.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/memory.h"
#include "lib/socket_address.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cnirun/directory.h"
#include "netavark/bridge.h"

#define NETWORKS "/etc/containers/networks"
#define FIRST_OCTET 89
#define IPV4_SUBNETS ((256U - FIRST_OCTET) * 256U)
#define IPV6_TRIES 1000U

void in_use_add_subnet(struct in_use *used, const struct prefix *prefix, char *user)
{
	*ARRAY_ADD(used->subnets, used->subnet_count) = (struct used_subnet){*prefix, user};
}

/* False: it is an address of another kind. */
static bool read_interface(const struct ifaddrs *one, struct prefix *prefix)
{
	uint8_t mask[CNI_ADDRESS_SIZE];
	int length = 0;

	if (!one->ifa_addr || !one->ifa_netmask ||
	    !socket_address_read(one->ifa_addr, prefix->address) ||
	    !socket_address_read(one->ifa_netmask, mask))
		return false;
	if (cni_address_is_ipv4(prefix->address))
		memset(mask, 0xff, PREFIX_IPV4_BITS / 8);
	for (size_t i = 0; i < sizeof(mask); i++)
		length += __builtin_popcount(mask[i]);
	prefix->length = (uint8_t)length;
	return true;
}

static void find_on_interfaces(struct in_use *used)
{
	struct ifaddrs *all = NULL;
	struct prefix prefix;

	if (getifaddrs(&all))
		return;
	for (const struct ifaddrs *one = all; one; one = one->ifa_next)
		if (read_interface(one, &prefix))
			in_use_add_subnet(used, &prefix,
					  cni_format("that of interface %s", one->ifa_name));
	freeifaddrs(all);
}

static void find_in_file(struct in_use *used, const char *path)
{
	cleanup_error struct cni_error ignored = {0};
	size_t length, index;
	cleanup_free char *text = directory_read_file(path, &length, &ignored);
	cleanup_json json_t *root =
		text ? cni_json_parse_object(text, length, path, &ignored) : NULL;
	struct network network;
	struct subnet subnet;
	json_t *element;

	if (!root || network_read(&network, root, &ignored))
		return;
	if (*network.bridge)
		*ARRAY_ADD(used->bridges, used->bridge_count) = (struct used_bridge){
			or_exit(strdup(network.bridge)), cni_format("network %s", network.name)};
	json_array_foreach (network.subnets, index, element)
		if (!subnet_read(&subnet, element, index, &ignored))
			in_use_add_subnet(used, &subnet.prefix,
					  cni_format("that of network %s", network.name));
}

void in_use_find(struct in_use *used)
{
	static const char *const suffixes[] = {".json", NULL};
	cleanup_directory struct directory networks = {0};
	cleanup_error struct cni_error ignored = {0};

	find_on_interfaces(used);
	if (directory_list(&networks, NETWORKS, suffixes, &ignored))
		return;
	for (size_t i = 0; i < networks.count; i++)
		find_in_file(used, networks.paths[i]);
}

void in_use_release(struct in_use *used)
{
	for (size_t i = 0; i < used->subnet_count; i++)
		free(used->subnets[i].user);
	for (size_t i = 0; i < used->bridge_count; i++) {
		free(used->bridges[i].name);
		free(used->bridges[i].user);
	}
	free(used->subnets);
	free(used->bridges);
	*used = (struct in_use){0};
}

const char *in_use_subnet(const struct in_use *used, const struct prefix *prefix)
{
	for (size_t i = 0; i < used->subnet_count; i++)
		if (prefix_overlaps(&used->subnets[i].prefix, prefix))
			return used->subnets[i].user;
	return NULL;
}

const char *in_use_bridge(const struct in_use *used, const char *name)
{
	for (size_t i = 0; i < used->bridge_count; i++)
		if (!strcmp(used->bridges[i].name, name))
			return used->bridges[i].user;
	return bridge_exists(name) ? "an interface of the host" : NULL;
}

static char *ipv4_subnet(uint64_t number)
{
	unsigned int place = (unsigned int)(number % IPV4_SUBNETS);

	return cni_format("10.%u.%u.0/24", FIRST_OCTET + place / 256, place % 256);
}

static char *ipv6_subnet(uint64_t number)
{
	return cni_format("fd%02x:%x:%x:%x::/64", (unsigned int)(number >> 48 & 0xff),
			  (unsigned int)(number >> 32 & 0xffff),
			  (unsigned int)(number >> 16 & 0xffff), (unsigned int)(number & 0xffff));
}

char *in_use_choose_subnet(const struct in_use *used, bool ipv4, const char *id,
			   struct cni_error *err)
{
	uint64_t first = digest_add(DIGEST_OF_NOTHING, id, strlen(id));
	unsigned int tries = ipv4 ? IPV4_SUBNETS : IPV6_TRIES;

	for (unsigned int i = 0; i < tries; i++) {
		cleanup_free char *text = ipv4 ? ipv4_subnet(first + i) : ipv6_subnet(first + i);
		struct prefix prefix;

		if (!prefix_parse(text, &prefix) && !in_use_subnet(used, &prefix))
			return TAKE(text);
	}
	cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
		      "no %s subnet is free: choose one with --subnet", ipv4 ? "IPv4" : "IPv6");
	return NULL;
}

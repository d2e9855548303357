/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* create.c - completes a network that Podman is about to write down. */
#include "netavark/create.h"

#include <string.h>

#include "lib/cleanup.h"
#include "cni/json.h"
#include "netavark/bridge.h"
#include "netavark/network.h"
#include "netavark/network_options.h"
#include "netavark/plugin_list.h"
#include "netavark/used_subnets.h"

#define HOST_LOCAL "host-local"

static int choose_bridge(json_t *root, const struct network *network, struct cni_error *err)
{
	cleanup_free char *chosen = NULL;

	if (*network->bridge && bridge_exists(network->bridge))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "there is an interface %s already, and the network's bridge "
				     "must be its own: give another --interface-name",
				     network->bridge);
	if (*network->bridge)
		return 0;
	chosen = bridge_name_of(network->id);
	cni_json_set_new(root, "network_interface", json_string(chosen));
	return 0;
}

static int append_subnet(json_t *subnets, const struct used_subnets *used, bool ipv4,
			 const struct network *network, struct cni_error *err)
{
	cleanup_free char *text = used_subnets_choose(used, ipv4, network->id, err);

	return text ? json_array_append_new(subnets, json_pack("{s:s}", "subnet", text)) : -1;
}

static int check_subnet(const struct used_subnets *used, const struct subnet *subnet,
			struct cni_error *err)
{
	const struct used_subnet *other = used_subnets_overlap(used, subnet);

	if (!other)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "subnet %s overlaps with that of %s: give another --subnet",
			     subnet->text, other->user);
}

/* As Podman does for its own bridge networks: of IPv4 where no subnet was given, and both with
 * --ipv6. */
static int choose_subnets(json_t *root, const struct network *network, struct cni_error *err)
{
	cleanup_used_subnets struct used_subnets used = {0};
	cleanup_json json_t *subnets =
		network->subnets ? json_incref(network->subnets) : json_array();
	bool has[2] = {false, false};
	struct subnet subnet;
	json_t *element;
	size_t index;

	used_subnets_find(&used);
	json_array_foreach (subnets, index, element) {
		if (subnet_read(&subnet, element, index, err) || check_subnet(&used, &subnet, err))
			return -1;
		has[subnet_is_ipv4(&subnet)] = true;
	}
	if ((!json_array_size(subnets) || network->ipv6_enabled) && !has[true] &&
	    append_subnet(subnets, &used, true, network, err))
		return -1;
	if (network->ipv6_enabled && !has[false] &&
	    append_subnet(subnets, &used, false, network, err))
		return -1;
	cni_json_set_new(root, "subnets", TAKE(subnets));
	return 0;
}

static int check_ipam(const struct network *network, struct cni_error *err)
{
	if (!*network->ipam || !strcmp(network->ipam, HOST_LOCAL))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "--ipam-driver %s is not supported: ports are mapped to addresses "
			     "that Podman chooses (" HOST_LOCAL ")",
			     network->ipam);
}

/* Setup would fail with what this finds. */
static int check_plugins(const struct network *network, struct cni_error *err)
{
	cleanup_network_options struct network_options options = {0};
	cleanup_conflist struct conflist list = {0};
	cleanup_json json_t *no_addresses = json_array();

	if (network_options_read(&options, network->options, err) ||
	    plugin_list_make(&list, network, &options, no_addresses, err))
		return -1;
	return plugin_list_find(network, &options, err);
}

int create_network(json_t *root, struct cni_error *err)
{
	struct network network;

	if (network_read(&network, root, err) || check_ipam(&network, err) ||
	    check_plugins(&network, err) || choose_bridge(root, &network, err) ||
	    choose_subnets(root, &network, err))
		return -1;
	cni_json_set_new(root, "ipam_options", json_pack("{s:s}", "driver", HOST_LOCAL));
	/* netavark runs aardvark-dns for its own drivers alone. */
	if (!json_array_size(network.dns_servers))
		cni_json_set_new(root, "dns_enabled", json_false());
	return 0;
}

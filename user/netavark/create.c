/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* create.c - completes a network that Podman is about to write down. */
#include "netavark/create.h"

#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "lib/json.h"
#include "cnirun/output.h"
#include "netavark/bridge.h"
#include "netavark/in_use.h"
#include "netavark/names.h"
#include "netavark/network.h"
#include "netavark/network_options.h"
#include "netavark/plugin_list.h"

#define HOST_LOCAL "host-local"
#define BRIDGE_TRIES 1000

static int check_bridge(const struct network *network, const struct in_use *used,
			struct cni_error *err)
{
	const char *user = in_use_bridge(used, network->bridge);

	if (!user)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the name %s is that of %s, and the network's bridge must be its own: "
			     "give another --interface-name",
			     network->bridge, user);
}

static int choose_bridge(json_t *root, const struct network *network, const struct in_use *used,
			 struct cni_error *err)
{
	if (*network->bridge)
		return check_bridge(network, used, err);
	for (unsigned int i = 0; i < BRIDGE_TRIES; i++) {
		cleanup_free char *chosen = bridge_name_of(network->id, i);

		if (in_use_bridge(used, chosen))
			continue;
		cni_json_set_new(root, "network_interface", json_string(chosen));
		return 0;
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "no name for a bridge is free: give one by --interface-name");
}

static int append_subnet(json_t *subnets, const struct in_use *used, bool ipv4,
			 const struct network *network, struct cni_error *err)
{
	cleanup_free char *text = in_use_choose_subnet(used, ipv4, network->id, err);

	return text ? json_array_append_new(subnets, json_pack("{s:s}", "subnet", text)) : -1;
}

/* It is in use from then on, for those that follow. */
static int check_subnet(struct in_use *used, const struct subnet *subnet, struct cni_error *err)
{
	const char *user = in_use_subnet(used, &subnet->prefix);

	if (!user) {
		in_use_add_subnet(used, &subnet->prefix,
				  or_exit(strdup("another one of this network")));
		return 0;
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "subnet %s overlaps with %s: give another --subnet", subnet->text,
			     user);
}

/* Setup would fail. */
static int check_count(const struct network *network, unsigned int ipv4_subnets,
		       struct cni_error *err)
{
	if (ipv4_subnets < 2 || (network->internal && !network->dns_enabled))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%u IPv4 subnets: the CNI plugin bridge gives a bridge one IPv4 "
			     "address, so that there may be more only with --internal and "
			     "--disable-dns",
			     ipv4_subnets);
}

/* As Podman does for its own bridge networks: of IPv4 where no subnet was given, and both with
 * --ipv6. */
static int choose_subnets(json_t *root, const struct network *network, struct in_use *used,
			  struct cni_error *err)
{
	cleanup_json json_t *subnets =
		network->subnets ? json_incref(network->subnets) : json_array();
	unsigned int counts[2] = {0, 0};
	struct subnet subnet;
	json_t *element;
	size_t index;

	json_array_foreach (subnets, index, element) {
		if (subnet_read(&subnet, element, index, err) || check_subnet(used, &subnet, err))
			return -1;
		counts[prefix_is_ipv4(&subnet.prefix)]++;
	}
	if (check_count(network, counts[true], err) ||
	    ((!json_array_size(subnets) || network->ipv6_enabled) && !counts[true] &&
	     append_subnet(subnets, used, true, network, err)) ||
	    (network->ipv6_enabled && !counts[false] &&
	     append_subnet(subnets, used, false, network, err)))
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

/* Podman refuses name servers without dns_enabled: containers get these themselves then. */
static void choose_names(json_t *root, struct network *network)
{
	cleanup_error struct cni_error problem = {0};

	if (!network->dns_enabled || !names_check(&problem))
		return;
	output_warn("containers of network \"%s\" will not find each other by name: %s",
		    network->name, cni_error_message(&problem));
	network->dns_enabled = json_array_size(network->dns_servers);
	cni_json_set_new(root, "dns_enabled", json_boolean(network->dns_enabled));
}

int create_network(json_t *root, struct cni_error *err)
{
	cleanup_in_use struct in_use used = {0};
	struct network network;

	if (network_read(&network, root, err) || check_ipam(&network, err) ||
	    check_plugins(&network, err))
		return -1;
	choose_names(root, &network);
	in_use_find(&used);
	if (choose_bridge(root, &network, &used, err) || choose_subnets(root, &network, &used, err))
		return -1;
	cni_json_set_new(root, "ipam_options", json_pack("{s:s}", "driver", HOST_LOCAL));
	return 0;
}

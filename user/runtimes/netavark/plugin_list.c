/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* plugin_list.c - the CNI plugins that make a network of Podman's. */
#include "runtimes/netavark/plugin_list.h"

#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/text.h"
#include "lib/json.h"
#include "cni/execute.h"

/* The newest that the reference plugins of Debian 12 and 13 know. */
#define LIST_VERSION "1.0.0"
#define BRIDGE "bridge"
#define IPAM "static"
#define PORTMAP "bpf-portmap"
#define FIREWALL "firewall"
#define IPV6_MIN_MTU 1280U

/* As the plugin `static` has it. */
static int append_address(json_t *list, const struct network *network, const char *text,
			  struct cni_error *err)
{
	uint8_t address[CNI_ADDRESS_SIZE];
	struct subnet subnet;
	json_t *element;
	size_t index;

	if (cni_address_parse(text, address))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "static_ips: \"%s\" is no IP address", text);
	json_array_foreach (network->subnets, index, element) {
		cleanup_free char *cidr = NULL;

		if (subnet_read(&subnet, element, index, err))
			return -1;
		if (!prefix_contains(&subnet.prefix, address))
			continue;
		cidr = cni_format("%s/%d", text, prefix_own_length(&subnet.prefix));
		return json_array_append_new(list,
					     json_pack("{s:s, s:s*}", "address", cidr, "gateway",
						       *subnet.gateway ? subnet.gateway : NULL));
	}
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "static_ips: %s is in no subnet of network \"%s\"", text,
			     network->name);
}

static int append_addresses(json_t *list, const struct network *network, const json_t *addresses,
			    struct cni_error *err)
{
	const char *text = "";
	json_t *element;
	size_t index;

	json_array_foreach (addresses, index, element)
		if (cni_json_get_string_element(element, "static_ips", index, &text, err) ||
		    append_address(list, network, text, err))
			return -1;
	return 0;
}

static int append_default_routes(json_t *routes, const struct network *network,
				 struct cni_error *err)
{
	bool done[2] = {false, false};
	struct subnet subnet;
	json_t *element;
	size_t index;

	json_array_foreach (network->subnets, index, element) {
		bool ipv4;

		if (subnet_read(&subnet, element, index, err))
			return -1;
		ipv4 = prefix_is_ipv4(&subnet.prefix);
		if (*subnet.gateway && !done[ipv4])
			json_array_append_new(routes, json_pack("{s:s, s:s}", "dst",
								ipv4 ? "0.0.0.0/0" : "::/0", "gw",
								subnet.gateway));
		done[ipv4] |= *subnet.gateway;
	}
	return 0;
}

/* Returns whether the network has a subnet of the family; with an address, one that it is in. */
static bool has_subnet(const struct network *network, bool ipv4, const uint8_t *address)
{
	cleanup_error struct cni_error ignored = {0};
	struct subnet subnet;
	json_t *element;
	size_t index;

	json_array_foreach (network->subnets, index, element)
		if (!subnet_read(&subnet, element, index, &ignored) &&
		    prefix_is_ipv4(&subnet.prefix) == ipv4 &&
		    (!address || prefix_contains(&subnet.prefix, address)))
			return true;
	return false;
}

static int append_route(json_t *routes, const struct network *network, const json_t *route,
			size_t index, struct cni_error *err)
{
	const char *destination = "", *gateway = "";
	uint8_t address[CNI_ADDRESS_SIZE];
	struct prefix prefix;

	if (cni_json_check_element(route, "routes", index, err) ||
	    cni_json_get_string(route, "destination", &destination, err) ||
	    cni_json_get_string(route, "gateway", &gateway, err))
		return -1;
	if (prefix_parse(destination, &prefix) || cni_address_parse(gateway, address))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "routes[%zu]: \"%s\" by \"%s\" is no route: give a subnet "
				     "and a gateway",
				     index, destination, gateway);
	/* Subnets that are still to be chosen are not known. */
	if (json_array_size(network->subnets) &&
	    !has_subnet(network, prefix_is_ipv4(&prefix), address))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "routes[%zu]: the gateway %s is in no %s subnet of network "
				     "\"%s\", so that %s cannot be reached by it",
				     index, gateway, prefix_is_ipv4(&prefix) ? "IPv4" : "IPv6",
				     network->name, destination);
	if (cni_json_get(route, "metric"))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "routes[%zu]: the route to %s has a metric, which CNI plugins "
				     "do not set: leave it out",
				     index, destination);
	return json_array_append_new(routes,
				     json_pack("{s:s, s:s}", "dst", destination, "gw", gateway));
}

static int append_routes(json_t *routes, const struct network *network,
			 const struct network_options *options, struct cni_error *err)
{
	json_t *route;
	size_t index;

	if (!network->internal && !options->no_default_route &&
	    append_default_routes(routes, network, err))
		return -1;
	json_array_foreach (network->routes, index, route)
		if (append_route(routes, network, route, index, err))
			return -1;
	return 0;
}

/* The kernel takes IPv6 off an interface whose MTU is lower. */
static int check_mtu(const struct network *network, const struct network_options *options,
		     struct cni_error *err)
{
	if (!options->mtu || options->mtu >= IPV6_MIN_MTU ||
	    (!network->ipv6_enabled && !has_subnet(network, false, NULL)))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "option mtu=%u: IPv6 needs %u or more: give a larger one, or create "
			     "the network without IPv6",
			     options->mtu, IPV6_MIN_MTU);
}

static json_t *make_bridge(const struct network *network, const struct network_options *options,
			   json_t *addresses, json_t *routes)
{
	cleanup_json json_t *gateways = network_servers(network);
	json_t *bridge = json_pack("{s:s, s:s, s:b, s:{s:b}, s:{s:s, s:O, s:O}}", "type", BRIDGE,
				   "bridge", network->bridge, "isGateway",
				   json_array_size(gateways) > 0, "capabilities", "mac", true,
				   "ipam", "type", IPAM, "addresses", addresses, "routes", routes);

	if (options->mtu)
		json_object_set_new(bridge, "mtu", json_integer(options->mtu));
	return bridge;
}

/* That it has the capability bandwidth says that no other plugin limits any, so that the fast path
 * may be used. */
static json_t *make_portmap(const struct network_options *options)
{
	json_t *portmap = json_pack("{s:s, s:{s:b, s:b}, s:b}", "type", PORTMAP, "capabilities",
				    "portMappings", true, "bandwidth", true, "ipMasq", true);

	json_object_update(portmap, options->portmap);
	return portmap;
}

int plugin_list_make(struct conflist *list, const struct network *network,
		     const struct network_options *options, const json_t *addresses,
		     struct cni_error *err)
{
	cleanup_json json_t *chosen = json_array(), *routes = json_array(), *plugins = json_array();
	cleanup_json json_t *root = NULL;

	if (addresses && (check_mtu(network, options, err) ||
			  append_addresses(chosen, network, addresses, err) ||
			  append_routes(routes, network, options, err)))
		return -1;
	json_array_append_new(plugins, make_bridge(network, options, chosen, routes));
	if (!network->internal)
		json_array_append_new(plugins, make_portmap(options));
	if (options->isolate)
		json_array_append_new(plugins, json_pack("{s:s, s:s}", "type", FIREWALL,
							 "ingressPolicy", "same-bridge"));
	root = json_pack("{s:s, s:s, s:O}", "cniVersion", LIST_VERSION, "name", network->name,
			 "plugins", plugins);
	list->text = json_dumps(root, JSON_COMPACT);
	list->length = strlen(list->text);
	return conflist_read(list, root, NULL, "the network", err);
}

const char *plugin_list_bridge(const struct conflist *list)
{
	const char *name =
		json_string_value(json_object_get(json_array_get(list->plugins, 0), "bridge"));

	return name ? name : "";
}

bool plugin_list_is_isolated(const struct conflist *list)
{
	const json_t *plugin;
	size_t index;

	json_array_foreach (list->plugins, index, plugin)
		if (!strcmp(conflist_plugin_type(plugin), FIREWALL))
			return true;
	return false;
}

json_t *plugin_list_foresee(const struct conflist *list)
{
	const json_t *ipam = json_object_get(json_array_get(list->plugins, 0), "ipam");

	return json_pack("{s:s, s:O}", "cniVersion", LIST_VERSION, "ips",
			 json_object_get(ipam, "addresses"));
}

int plugin_list_find(const struct network *network, const struct network_options *options,
		     struct cni_error *err)
{
	const char *const types[] = {BRIDGE, IPAM, network->internal ? NULL : PORTMAP,
				     options->isolate ? FIREWALL : NULL};
	const char *path = network_options_cni_path(network->options);

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		cleanup_free char *file = types[i] ? execute_find(types[i], path, err) : NULL;

		if (types[i] && !file)
			return cni_error_set(
				err, CNI_ERROR_INVALID_CONFIGURATION,
				"there is no CNI plugin \"%s\" in %s: install it%s, or name its "
				"directory with -o cni_path=DIRECTORY",
				types[i], path,
				strcmp(types[i], PORTMAP) ? " (containernetworking-plugins)" : "");
	}
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.c - ports, addresses and names of a container, from netavark's words to those of CNI. */
#include "runtimes/netavark/request.h"

#include <string.h>

#include "cni/environment.h"
#include "cni/execute.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/text.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/netavark/network_options.h"

/* --- a network of Podman's, as a conflist ----------------------------------------------------- */

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
		if (!strcmp(plugin_type(plugin), FIREWALL))
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

#define PLUGIN_TIMEOUT 120 /* seconds, as cnirun has */
#define PORTS 65536
/* Twice what one address has for all protocols; more would only cost memory. */
#define MAX_PORTS ((size_t)6 * PORTS)
#define DEFAULT_PROTOCOL "tcp"

struct port_mapping {
	json_int_t host_port;
	json_int_t container_port;
	json_int_t range;
	const char *protocols;
	const char *host_ip;
};

static int read_mapping(struct port_mapping *mapping, const json_t *element, struct cni_error *err)
{
	*mapping = (struct port_mapping){.range = 1, .protocols = "", .host_ip = ""};
	if (cni_json_get_integer(element, "host_port", &mapping->host_port, err) ||
	    cni_json_get_integer(element, "container_port", &mapping->container_port, err) ||
	    cni_json_get_integer(element, "range", &mapping->range, err) ||
	    cni_json_get_string(element, "protocol", &mapping->protocols, err) ||
	    cni_json_get_string(element, "host_ip", &mapping->host_ip, err))
		return -1;
	mapping->range += !mapping->range;
	if (!*mapping->protocols)
		mapping->protocols = DEFAULT_PROTOCOL;
	if (mapping->host_port < 1 || mapping->container_port < 1 || mapping->range < 1 ||
	    mapping->host_port >= PORTS || mapping->container_port >= PORTS ||
	    mapping->range > PORTS - mapping->host_port ||
	    mapping->range > PORTS - mapping->container_port)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "host port %" JSON_INTEGER_FORMAT
				     " to container port %" JSON_INTEGER_FORMAT
				     ", %" JSON_INTEGER_FORMAT " of them: ports are 1 to 65535",
				     mapping->host_port, mapping->container_port, mapping->range);
	return 0;
}

static int append_range(json_t *ports, const struct port_mapping *mapping, const char *protocol,
			struct cni_error *err)
{
	if (json_array_size(ports) + (size_t)mapping->range > MAX_PORTS)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "a container has more than %zu host ports, which is the limit",
				     MAX_PORTS);
	for (json_int_t i = 0; i < mapping->range; i++)
		json_array_append_new(
			ports,
			json_pack("{s:I, s:I, s:s, s:s*}", "hostPort", mapping->host_port + i,
				  "containerPort", mapping->container_port + i, "protocol",
				  protocol, "hostIP", *mapping->host_ip ? mapping->host_ip : NULL));
	return 0;
}

/* "tcp,udp": both. */
static int append_mapping(const json_t *element, void *context, struct cni_error *err)
{
	struct port_mapping mapping;

	if (read_mapping(&mapping, element, err))
		return -1;
	for (const char *rest = mapping.protocols; rest;) {
		size_t length = strcspn(rest, ",");
		cleanup_free char *protocol = strndup(rest, length);

		if (append_range(context, &mapping, protocol, err))
			return -1;
		rest = rest[length] ? rest + length + 1 : NULL;
	}
	return 0;
}

/* As Podman 4 says it to CNI plugins, for messages. */
static json_t *make_args(const char *container_name)
{
	cleanup_error struct cni_error ignored = {0};

	return cni_validate_container_id(container_name, &ignored)
		       ? NULL
		       : json_pack("[[s,s],[s,s]]", "IgnoreUnknown", "1", "K8S_POD_NAME",
				   container_name);
}

static int get_network(const json_t *root, json_t **network, struct cni_error *err)
{
	*network = NULL;
	if (cni_json_get_object(root, "network", network, err))
		return -1;
	return *network ? 0 : cni_error_set(err, CNI_ERROR_DECODE, "\"network\" is missing");
}

int request_read_names(struct request *request, const json_t *root, const char *netns,
		       struct cni_error *err)
{
	json_t *network, *interface = NULL;
	const char *name = "";

	request->conf = (struct runtime_conf){
		.container_id = "",
		.ifname = "",
		.netns = netns,
		.timeout = PLUGIN_TIMEOUT,
		.cache_directory = REQUEST_STATE_DIRECTORY,
	};
	request->root = root;
	request->network_name = "";
	if (get_network(root, &network, err) ||
	    cni_json_get_string(network, "name", &request->network_name, err) ||
	    cni_json_get_string(root, "container_id", &request->conf.container_id, err) ||
	    cni_json_get_string(root, "container_name", &name, err) ||
	    cni_json_get_object(root, "network_options", &interface, err) ||
	    (interface &&
	     cni_json_get_string(interface, "interface_name", &request->conf.ifname, err)) ||
	    cni_validate_network_name(request->network_name, err) ||
	    runtime_conf_validate(&request->conf, err))
		return -1;
	request->conf.args = make_args(name);
	request->conf.plugin_path = network_options_cni_path(cni_json_get(network, "options"));
	return 0;
}

/* What Podman has chosen for the interface, and what was asked for it. */
static int read_interface(struct request *request, const json_t *root, json_t **addresses,
			  struct cni_error *err)
{
	json_t *interface = NULL, *options = NULL;
	const char *mac = "";

	if (cni_json_get_object(root, "network_options", &interface, err) ||
	    (interface && (cni_json_get_string(interface, "static_mac", &mac, err) ||
			   cni_json_get_array(interface, "static_ips", addresses, err) ||
			   cni_json_get_object(interface, "options", &options, err))))
		return cni_error_wrap(err, "network_options");
	if (json_object_size(options))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "unknown option \"%s\" for one container's interface: give "
				     "options to `podman network create -o`",
				     json_object_iter_key(json_object_iter(options)));
	if (!json_array_size(*addresses))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "static_ips is empty: Podman has chosen no address for the "
				     "container in network \"%s\"",
				     request->network_name);
	if (*mac)
		json_object_set_new(request->conf.capability_args, "mac", json_string(mac));
	return 0;
}

static int read_network(struct request *request, const json_t *root, struct cni_error *err)
{
	json_t *network;

	if (get_network(root, &network, err) || network_read(&request->network, network, err))
		return -1;
	if (*request->network.bridge)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "network \"%s\" has no network_interface: create it anew with "
			     "`podman network create`",
			     request->network_name);
}

static int read_ports(struct request *request, const json_t *root, struct cni_error *err)
{
	cleanup_json json_t *ports = json_array();

	if (cni_json_each_object(root, "port_mappings", append_mapping, ports, err))
		return -1;
	if (!json_array_size(ports))
		return 0;
	if (request->network.internal)
		output_warn("network \"%s\" is internal: no host port leads to the container",
			    request->network_name);
	json_object_set(request->conf.capability_args, "portMappings", ports);
	return 0;
}

static void append_name(json_t *names, const char *name)
{
	cleanup_error struct cni_error invalid = {0};

	if (!cni_validate_container_id(name, &invalid))
		json_array_append_new(names, json_string(name));
	else
		output_warn("the alias \"%s\" is left out: it has characters other than letters, "
			    "digits, '.', '-' and '_'",
			    name);
}

static int read_names(struct request *request, const json_t *root, struct cni_error *err)
{
	cleanup_json json_t *names = json_array();
	json_t *aliases = NULL, *element;
	const char *name = "";
	size_t index;

	if (!request->network.dns_enabled)
		return 0;
	if (cni_json_get_string(root, "container_name", &name, err) ||
	    cni_json_get_array(cni_json_get(root, "network_options"), "aliases", &aliases, err))
		return -1;
	append_name(names, name);
	json_array_foreach (aliases, index, element) {
		if (cni_json_get_string_element(element, "aliases", index, &name, err))
			return -1;
		append_name(names, name);
	}
	return json_object_set(request->conf.capability_args, REQUEST_NAMES, names);
}

int request_read(struct request *request, const json_t *root, const char *netns,
		 struct cni_error *err)
{
	cleanup_network_options struct network_options options = {0};
	json_t *addresses = NULL;

	if (request_read_names(request, root, netns, err))
		return -1;
	request->conf.capability_args = json_object();
	return read_network(request, root, err) || read_interface(request, root, &addresses, err) ||
			       network_options_read(&options, request->network.options, err) ||
			       read_ports(request, root, err) || read_names(request, root, err) ||
			       plugin_list_make(&request->list, &request->network, &options,
						addresses, err)
		       ? -1
		       : 0;
}

int request_make_list_for_del(struct conflist *list, const json_t *root, struct cni_error *err)
{
	cleanup_network_options struct network_options options = {0};
	cleanup_error struct cni_error problem = {0};
	struct network network;
	json_t *described;

	if (get_network(root, &described, err) || network_read(&network, described, err))
		return -1;
	if (network_options_read(&options, network.options, &problem)) {
		output_warn("going on without the options of bpf-portmap: %s",
			    cni_error_message(&problem));
		json_object_clear(options.portmap);
	}
	return plugin_list_make(list, &network, &options, NULL, err);
}

void request_release(struct request *request)
{
	conflist_release(&request->list);
	json_decref(request->conf.args);
	json_decref(request->conf.capability_args);
	*request = (struct request){0};
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* network.c - reads a network, and compares subnets. */
#include "netavark/network.h"

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "lib/json.h"

int network_read(struct network *network, const json_t *root, struct cni_error *err)
{
	json_t *ipam_options = NULL;

	*network = (struct network){.name = "", .id = "", .bridge = "", .ipam = ""};
	if (cni_json_get_string(root, "name", &network->name, err) ||
	    cni_json_get_string(root, "id", &network->id, err) ||
	    cni_json_get_string(root, "network_interface", &network->bridge, err) ||
	    cni_json_get_boolean(root, "internal", &network->internal, err) ||
	    cni_json_get_boolean(root, "ipv6_enabled", &network->ipv6_enabled, err) ||
	    cni_json_get_boolean(root, "dns_enabled", &network->dns_enabled, err) ||
	    cni_json_get_array(root, "subnets", &network->subnets, err) ||
	    cni_json_get_array(root, "routes", &network->routes, err) ||
	    cni_json_get_object(root, "options", &network->options, err) ||
	    cni_json_get_array(root, "network_dns_servers", &network->dns_servers, err) ||
	    cni_json_get_object(root, "ipam_options", &ipam_options, err) ||
	    (ipam_options && cni_json_get_string(ipam_options, "driver", &network->ipam, err)) ||
	    cni_validate_network_name(network->name, err))
		return cni_error_wrap(err, "the network");
	if (*network->bridge && cni_validate_ifname(network->bridge, err))
		return cni_error_wrap(err, "network_interface");
	return 0;
}

static json_t *find_gateways(const struct network *network, bool ipv4)
{
	cleanup_error struct cni_error ignored = {0};
	json_t *gateways = json_array(), *element;
	struct subnet subnet;
	size_t index;

	json_array_foreach (network->subnets, index, element)
		if (!subnet_read(&subnet, element, index, &ignored) && *subnet.gateway &&
		    prefix_is_ipv4(&subnet.prefix) == ipv4)
			json_array_append_new(gateways, json_string(subnet.gateway));
	return gateways;
}

json_t *network_servers(const struct network *network)
{
	cleanup_json json_t *ipv4 = find_gateways(network, true);

	return json_array_size(ipv4) ? TAKE(ipv4) : find_gateways(network, false);
}

int subnet_read(struct subnet *subnet, const json_t *element, size_t index, struct cni_error *err)
{
	uint8_t gateway[CNI_ADDRESS_SIZE];
	const char *text = "";

	if (cni_json_check_element(element, "subnets", index, err) ||
	    cni_json_get_string(element, "subnet", &text, err))
		return -1;
	*subnet = (struct subnet){.text = text, .gateway = ""};
	if (prefix_parse(text, &subnet->prefix))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "subnets[%zu]: \"%s\" is no subnet: give one as "
				     "10.89.0.0/24 or fd00:89::/64",
				     index, text);
	if (cni_json_get_string(element, "gateway", &subnet->gateway, err))
		return cni_error_wrap(err, "subnets[%zu]", index);
	if (*subnet->gateway && cni_address_parse(subnet->gateway, gateway))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "subnets[%zu]: the gateway \"%s\" is no IP address", index,
				     subnet->gateway);
	return 0;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.c - ports, addresses and names of a container, from netavark's words to those of CNI. */
#include "netavark/request.h"

#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "cni/json.h"
#include "cnirun/output.h"
#include "netavark/plugin_list.h"

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
				     "more than %zu host ports", MAX_PORTS);
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

/* The interface in the container, and its MAC address if one is demanded. */
static int read_interface(struct request *request, const json_t *root, json_t **addresses,
			  struct cni_error *err)
{
	json_t *options = NULL;
	const char *mac = "";

	request->conf.ifname = "";
	if (cni_json_get_object(root, "network_options", &options, err) ||
	    (options &&
	     (cni_json_get_string(options, "interface_name", &request->conf.ifname, err) ||
	      cni_json_get_string(options, "static_mac", &mac, err) ||
	      cni_json_get_array(options, "static_ips", addresses, err))))
		return cni_error_wrap(err, "network_options");
	if (*mac)
		json_object_set_new(request->conf.capability_args, "mac", json_string(mac));
	return 0;
}

/* As Podman 4 says it to CNI plugins, for messages. */
static int read_container(struct request *request, const json_t *root, struct cni_error *err)
{
	cleanup_error struct cni_error ignored = {0};
	const char *name = "";

	request->conf.container_id = "";
	if (cni_json_get_string(root, "container_id", &request->conf.container_id, err) ||
	    cni_json_get_string(root, "container_name", &name, err))
		return -1;
	if (!cni_validate_container_id(name, &ignored))
		request->conf.args =
			json_pack("[[s,s],[s,s]]", "IgnoreUnknown", "1", "K8S_POD_NAME", name);
	return 0;
}

static int read_common(struct request *request, const json_t *root, const char *netns,
		       json_t **addresses, struct cni_error *err)
{
	json_t *network = NULL;

	request->conf = (struct runtime_conf){
		.netns = netns,
		.timeout = PLUGIN_TIMEOUT,
		.cache_directory = REQUEST_STATE_DIRECTORY,
		.capability_args = json_object(),
	};
	if (cni_json_get_object(root, "network", &network, err))
		return -1;
	if (!network)
		return cni_error_set(err, CNI_ERROR_DECODE, "\"network\" is missing");
	if (network_read(&request->network, network, err) || read_container(request, root, err) ||
	    read_interface(request, root, addresses, err) ||
	    runtime_conf_validate(&request->conf, err))
		return -1;
	if (*request->network.bridge)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "network \"%s\" has no network_interface: create it anew with "
			     "`podman network create`",
			     request->network.name);
}

int request_read(struct request *request, const json_t *root, const char *netns,
		 struct cni_error *err)
{
	cleanup_json json_t *ports = json_array();
	json_t *addresses = NULL;

	if (read_common(request, root, netns, &addresses, err) ||
	    network_options_read(&request->options, request->network.options, err) ||
	    cni_json_each_object(root, "port_mappings", append_mapping, ports, err))
		return -1;
	request->conf.plugin_path = network_options_cni_path(&request->options);
	if (json_array_size(ports))
		json_object_set(request->conf.capability_args, "portMappings", ports);
	if (!json_array_size(addresses))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "static_ips is empty: Podman has chosen no address for the "
				     "container in network \"%s\"",
				     request->network.name);
	return plugin_list_make(&request->list, &request->network, &request->options, addresses,
				err);
}

int request_read_for_teardown(struct request *request, const json_t *root, const char *netns,
			      struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};
	json_t *addresses = NULL;

	if (read_common(request, root, netns, &addresses, err))
		return -1;
	if (network_options_read(&request->options, request->network.options, &problem)) {
		output_warn("going on without the options: %s", cni_error_message(&problem));
		json_object_clear(request->options.portmap);
	}
	request->conf.plugin_path = network_options_cni_path(&request->options);
	return plugin_list_make(&request->list, &request->network, &request->options, NULL, err);
}

void request_release(struct request *request)
{
	network_options_release(&request->options);
	conflist_release(&request->list);
	json_decref(request->conf.args);
	json_decref(request->conf.capability_args);
	*request = (struct request){0};
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.c - ports, addresses and names of a container, from netavark's words to those of CNI. */
#include "runtimes/netavark/request.h"

#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "cni/environment.h"
#include "lib/json.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/netavark/network_options.h"
#include "runtimes/netavark/plugin_list.h"

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

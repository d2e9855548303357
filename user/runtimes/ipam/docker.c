/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* docker.c - asks Docker's API which addresses its networks have. */
#include "runtimes/ipam/reconcile.h"

#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>

#include "lib/cleanup.h"
#include "lib/io.h"
#include "lib/text.h"
#include "lib/json.h"
#include "lib/address.h"
#include "runtimes/ipam/api.h"

#define ANSWER_SECONDS 20
#define END_OF_HEADERS "\r\n\r\n"

static bool has_status(const char *answer, const char *status)
{
	return !strncmp(answer, "HTTP/1.", 7) && !strncmp(answer + strcspn(answer, " "), status, 4);
}

/* By HTTP/1.0, whose answers end with the connection. JSON's null for what Docker does not have. */
static json_t *get(const char *socket, const char *path, struct cni_error *err)
{
	cleanup_free char *request = cni_format("GET %s HTTP/1.0\r\n\r\n", path);
	cleanup_close int fd = socket_connect(socket, err);
	const struct timeval limit = {.tv_sec = ANSWER_SECONDS};
	cleanup_free char *text = NULL;
	const char *body;
	size_t length;

	if (fd < 0)
		return NULL;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (cni_write_all(fd, request, strlen(request)))
		return cni_error_null(err, CNI_ERROR_IO, "cannot write to %s", socket);
	text = cni_read_all(fd, CNI_INPUT_LIMIT, socket, &length, err);
	if (!text)
		return NULL;
	body = strstr(text, END_OF_HEADERS);
	if (has_status(text, " 404"))
		return json_null();
	if (!has_status(text, " 200") || !body)
		return cni_error_null(err, CNI_ERROR_IO, "Docker refuses GET %s: \"%.*s\"", path,
				      (int)strcspn(text, "\r\n"), text);
	body += strlen(END_OF_HEADERS);
	return cni_json_parse(body, length - (size_t)(body - text), path, err);
}

/* `address` may have a length behind it. */
static void add_address(json_t *pool, const char *address, const char *whose)
{
	const char *subnet = json_string_value(cni_json_get(pool, "Subnet"));
	cleanup_free char *bare = NULL;
	uint8_t binary[CNI_ADDRESS_SIZE];
	char text[CNI_ADDRESS_TEXT_SIZE];
	struct prefix prefix;

	if (!address || !subnet || prefix_parse(subnet, &prefix))
		return;
	bare = strndup(address, strcspn(address, "/"));
	if (!bare || cni_address_parse(bare, binary) || !prefix_contains(&prefix, binary))
		return;
	json_object_set_new(json_object_get(pool, "addresses"), cni_address_format(binary, text),
			    json_string(whose));
}

static void add_containers(json_t *pool, const json_t *network)
{
	json_t *container;
	const char *id;

	json_object_foreach (cni_json_get(network, "Containers"), id, container) {
		const char *name = json_string_value(cni_json_get(container, "Name"));
		cleanup_free char *whose = cni_format("container %s", name ? name : id);

		add_address(pool, json_string_value(cni_json_get(container, "IPv4Address")), whose);
		add_address(pool, json_string_value(cni_json_get(container, "IPv6Address")), whose);
	}
}

/* Docker asks for no gateway where nothing would use it: 28 and later. That an older one did harms
 * nobody: no interface has that address. */
static bool is_without_gateway(const json_t *network, const json_t *config)
{
	const json_t *options = cni_json_get(network, "Options");
	const char *subnet = json_string_value(cni_json_get(config, "Subnet"));
	const char *driver = json_string_value(cni_json_get(network, "Driver"));
	const char *mode = json_string_value(
		cni_json_get(options, subnet && strchr(subnet, ':')
					      ? "com.docker.network.bridge.gateway_mode_ipv6"
					      : "com.docker.network.bridge.gateway_mode_ipv4"));
	const char *ipvlan = json_string_value(cni_json_get(options, "ipvlan_mode"));

	if (mode && !strcmp(mode, "isolated"))
		return true;
	if (!driver || (strcmp(driver, "macvlan") && strcmp(driver, "ipvlan")))
		return false;
	return json_is_true(cni_json_get(network, "Internal")) ||
	       (ipvlan && !strncmp(ipvlan, "l3", 2));
}

static json_t *read_pool(const json_t *network, const json_t *config)
{
	const char *gateway = json_string_value(cni_json_get(config, "Gateway"));
	json_t *pool = json_pack("{s:O*, s:O*, s:O*, s:O*, s:{}}", "Subnet",
				 cni_json_get(config, "Subnet"), "IPRange",
				 cni_json_get(config, "IPRange"), "Options",
				 cni_json_get(cni_json_get(network, "IPAM"), "Options"), "network",
				 cni_json_get(network, "Name"), "addresses");
	const char *name;
	json_t *address;

	if (!gateway && is_without_gateway(network, config))
		json_object_set_new(pool, "withoutGateway", json_true());
	add_containers(pool, network);
	json_object_foreach (cni_json_get(config, "AuxiliaryAddresses"), name, address) {
		cleanup_free char *whose = cni_format("auxiliary address %s", name);

		add_address(pool, json_string_value(address), whose);
	}
	if (gateway) {
		cleanup_free char *bare = strndup(gateway, strcspn(gateway, "/"));
		uint8_t binary[CNI_ADDRESS_SIZE];
		char text[CNI_ADDRESS_TEXT_SIZE];

		add_address(pool, gateway, "gateway");
		/* Docker keeps it as the user wrote it. */
		if (bare && !cni_address_parse(bare, binary))
			json_object_set_new(pool, "gateway",
					    json_string(cni_address_format(binary, text)));
	}
	return pool;
}

static int add_network(json_t *pools, const char *socket, const char *id, struct cni_error *err)
{
	cleanup_free char *path = cni_format("/networks/%s", id);
	cleanup_json json_t *network = get(socket, path, err);
	const json_t *config;
	size_t index;

	if (!network)
		return -1;
	/* One that was removed meanwhile, and a template for networks (--config-only), have no
	 * addresses. */
	if (json_is_null(network) || json_is_true(cni_json_get(network, "ConfigOnly")))
		return 0;
	json_array_foreach (cni_json_get(cni_json_get(network, "IPAM"), "Config"), index, config)
		json_array_append_new(pools, read_pool(network, config));
	return 0;
}

json_t *docker_pools(const char *socket, const char *driver, struct cni_error *err)
{
	cleanup_json json_t *networks = get(socket, "/networks", err);
	cleanup_json json_t *pools = json_array();
	const json_t *network;
	size_t index;

	if (!networks)
		return NULL;
	/* Without networks all addresses would be given back. */
	if (!json_is_array(networks))
		return cni_error_null(err, CNI_ERROR_DECODE,
				      "what listens at %s is not Docker: it lists no networks",
				      socket);
	json_array_foreach (networks, index, network) {
		const char *own =
			json_string_value(cni_json_get(cni_json_get(network, "IPAM"), "Driver"));
		const char *id = json_string_value(cni_json_get(network, "Id"));

		if (own && id && !strcmp(own, driver) && add_network(pools, socket, id, err))
			return NULL;
	}
	return TAKE(pools);
}

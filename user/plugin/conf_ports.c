/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * conf_ports.c - port mappings: reading them, and what they claim on the host.
 */
#include "plugin/conf_ports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cni/cleanup.h"
#include "cni/json.h"

#define MAX_PORT 65535
#define MAPPING_TEXT_SIZE 160
#define KUBELET_PORT 10250

const char *conf_protocol_name(enum protocol protocol)
{
	switch (protocol) {
	case PROTOCOL_TCP:
		return "tcp";
	case PROTOCOL_UDP:
		return "udp";
	case PROTOCOL_SCTP:
		return "sctp";
	default:
		return "unknown protocol";
	}
}

static int read_port(const json_t *entry, const char *key, uint16_t *port, struct cni_error *err)
{
	json_int_t value = 0;

	if (!cni_json_get(entry, key))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is missing, must be 1 to %d", key, MAX_PORT);
	if (cni_json_get_integer(entry, key, &value, err))
		return -1;
	if (value < 1 || value > MAX_PORT)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is %" JSON_INTEGER_FORMAT ", must be 1 to %d", key,
				     value, MAX_PORT);
	*port = (uint16_t)value;
	return 0;
}

static int read_protocol(const json_t *entry, enum protocol *protocol, struct cni_error *err)
{
	const char *name = "";

	if (cni_json_get_string(entry, "protocol", &name, err))
		return -1;
	if (!strcasecmp(name, "tcp"))
		*protocol = PROTOCOL_TCP;
	else if (!strcasecmp(name, "udp"))
		*protocol = PROTOCOL_UDP;
	else if (!strcasecmp(name, "sctp"))
		*protocol = PROTOCOL_SCTP;
	else if (!*name)
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"\"protocol\" is missing, must be \"tcp\", \"udp\" or \"sctp\"");
	else
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"protocol\" is \"%s\", must be \"tcp\", \"udp\" or \"sctp\"",
				     name);
	return 0;
}

bool conf_is_never_mapped(const uint8_t address[CNI_ADDRESS_SIZE])
{
	if (cni_address_is_ipv4(address))
		return address[12] >= 224; /* multicast, reserved, broadcast */
	return address[0] == 0xff || (address[0] == 0xfe && (address[1] & 0xc0) == 0x80);
}

static int check_host_address(const char *text, const uint8_t address[CNI_ADDRESS_SIZE],
			      struct cni_error *err)
{
	if (conf_is_never_mapped(address))
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"\"hostIP\" is \"%s\", where nothing can be mapped: multicast, "
			"broadcast and IPv6 link-local packets are left alone",
			text);
	return 0;
}

static int read_host_address(const json_t *entry, struct port_mapping *mapping,
			     struct cni_error *err)
{
	const char *text = "";

	mapping->kind = ANY_ADDRESS;
	if (cni_json_get_string(entry, "hostIP", &text, err))
		return -1;
	if (!*text)
		return 0;
	if (cni_address_parse(text, mapping->host_address))
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"\"hostIP\" is \"%s\", which is no IP address: give one without "
			"brackets, zone or prefix length; names are not resolved",
			text);
	if (!memcmp(mapping->host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE))
		mapping->kind = ANY_IPV4;
	else if (!memcmp(mapping->host_address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		mapping->kind = ANY_IPV6;
	else
		mapping->kind = ONE_ADDRESS;
	return mapping->kind == ONE_ADDRESS ? check_host_address(text, mapping->host_address, err)
					    : 0;
}

/* Only sockets of the host's own processes reach it, and only where they are helped to. */
static int check_loopback(const struct conf *conf, const struct port_mapping *mapping,
			  struct cni_error *err)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	if (mapping->kind != ONE_ADDRESS || !cni_address_is_loopback(mapping->host_address))
		return 0;
	cni_address_format(mapping->host_address, text);
	if (!conf->localhost)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"hostIP\" is \"%s\", where nobody would reach the port: "
				     "\"localhost\" is false; leave one of the two out",
				     text);
	if (mapping->protocol == PROTOCOL_SCTP)
		return cni_error_set(
			err, CNI_ERROR_INVALID_CONFIGURATION,
			"\"hostIP\" is \"%s\", where SCTP cannot be mapped: the kernel "
			"has no hook at SCTP sockets; give another address of the host",
			text);
	return 0;
}

static int read_mapping(const json_t *entry, struct port_mapping *mapping, struct cni_error *err)
{
	if (read_port(entry, "hostPort", &mapping->host_port, err) ||
	    read_port(entry, "containerPort", &mapping->container_port, err) ||
	    read_protocol(entry, &mapping->protocol, err))
		return -1;
	return read_host_address(entry, mapping, err);
}

/* Code 7 and not 101: it is the configuration that says no, however often it is tried. */
static int check_never_mapped(struct conf *conf, const struct port_mapping *mapping,
			      struct cni_error *err)
{
	const struct port_range *range = conf->never_ports;

	for (size_t i = 0; i < PORT_SET_RANGES; i++)
		if (range[i].first <= mapping->host_port && mapping->host_port <= range[i].last)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"hostPort\" is %u, one of \"neverPorts\", which are "
					     "never mapped: map another one",
					     mapping->host_port);
	if (conf->never_ports_given || mapping->host_port != KUBELET_PORT ||
	    mapping->protocol != PROTOCOL_TCP)
		return 0;
	return conf_warn(conf, err,
			 "hostPort %u is the kubelet's API, which nobody reaches from outside any "
			 "more where one runs: map another one; \"neverPorts\": [%u] refuses it, "
			 "[] allows it",
			 KUBELET_PORT, KUBELET_PORT);
}

static int read_mappings(struct conf *conf, const json_t *array, struct cni_error *err)
{
	json_t *entry;
	size_t index;

	conf->mappings = calloc(json_array_size(array), sizeof(*conf->mappings));
	if (!conf->mappings)
		return cni_error_no_memory(err);
	json_array_foreach (array, index, entry) {
		if (cni_json_check_element(entry, "runtimeConfig.portMappings", index, err))
			return -1;
		if (read_mapping(entry, &conf->mappings[index], err) ||
		    check_never_mapped(conf, &conf->mappings[index], err) ||
		    check_loopback(conf, &conf->mappings[index], err))
			return cni_error_wrap(err, "runtimeConfig.portMappings[%zu]", index);
		conf->mapping_count++;
	}
	return 0;
}

/* The kernel has no hook where SCTP sockets are bound. */
static int warn_of_unreserved(struct conf *conf, struct cni_error *err)
{
	for (size_t i = 0; conf->reserve_host_ports && i < conf->mapping_count; i++)
		if (conf->mappings[i].protocol == PROTOCOL_SCTP)
			return conf_warn(conf, err,
					 "\"reserveHostPorts\" has no effect on SCTP: processes of"
					 " the host can bind to port %u",
					 conf->mappings[i].host_port);
	return 0;
}

int conf_read_port_mappings(struct conf *conf, const json_t *runtime_config, struct cni_error *err)
{
	cleanup_free struct port_claim *claims = NULL;
	json_t *array = NULL;
	size_t count;

	if (cni_json_get_array(runtime_config, "portMappings", &array, err))
		return cni_error_wrap(err, "runtimeConfig");
	if (!json_array_size(array))
		return 0;
	if (read_mappings(conf, array, err) || warn_of_unreserved(conf, err))
		return -1;
	/* A contradiction is one whatever families the container turns out to have, so
	 * look for it as if it had both. */
	return conf_claim_ports(conf, cni_address_any_ipv4, cni_address_any_ipv6, &claims, &count,
				err);
}

static bool mapping_wants(const struct port_mapping *mapping, bool ipv4)
{
	switch (mapping->kind) {
	case ANY_ADDRESS:
		return true;
	case ANY_IPV4:
		return ipv4;
	case ANY_IPV6:
		return !ipv4;
	case ONE_ADDRESS:
		break;
	}
	return cni_address_is_ipv4(mapping->host_address) == ipv4;
}

static void claim_fill(struct port_claim *claim, const struct conf *conf, size_t index, bool ipv4,
		       const uint8_t *container_address)
{
	const struct port_mapping *mapping = &conf->mappings[index];
	const uint8_t *host_address = mapping->host_address;

	if (mapping->kind == ANY_ADDRESS)
		host_address = ipv4 ? cni_address_any_ipv4 : cni_address_any_ipv6;
	*claim = (struct port_claim){
		.key = {.protocol = mapping->protocol, .host_port = mapping->host_port},
		.container_port = mapping->container_port,
		.localhost = conf->localhost,
		.reserved_on_host = conf->reserve_host_ports,
		.mapping = (uint32_t)index,
	};
	memcpy(claim->key.host_address, host_address, CNI_ADDRESS_SIZE);
	memcpy(claim->container_address, container_address, CNI_ADDRESS_SIZE);
}

static int refuse_one_address(const struct port_mapping *mapping, bool ipv4, struct cni_error *err)
{
	char text[CNI_ADDRESS_TEXT_SIZE];

	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "%s port %u of hostIP %s cannot be mapped: the container has no %s "
			     "address",
			     conf_protocol_name(mapping->protocol), mapping->host_port,
			     cni_address_format(mapping->host_address, text),
			     ipv4 ? "IPv4" : "IPv6");
}

static int warn_of_skipped(struct conf *conf, bool ipv4, size_t skipped, struct cni_error *err)
{
	if (!skipped)
		return 0;
	return conf_warn(
		conf, err,
		"%zu port mapping%s with hostIP %s skipped: the container has no %s address",
		skipped, skipped == 1 ? "" : "s", ipv4 ? "0.0.0.0" : "::", ipv4 ? "IPv4" : "IPv6");
}

/* Appends what the mappings claim in one family. */
static int claim_family(struct conf *conf, bool ipv4, const uint8_t *container_address,
			struct port_claim *claims, size_t *count, struct cni_error *err)
{
	size_t skipped = 0;

	for (size_t i = 0; i < conf->mapping_count; i++) {
		const struct port_mapping *mapping = &conf->mappings[i];

		if (!mapping_wants(mapping, ipv4))
			continue;
		if (container_address)
			claim_fill(&claims[(*count)++], conf, i, ipv4, container_address);
		else if (mapping->kind == ONE_ADDRESS)
			return refuse_one_address(mapping, ipv4, err);
		else if (mapping->kind != ANY_ADDRESS)
			skipped++;
	}
	return warn_of_skipped(conf, ipv4, skipped, err);
}

static int claim_compare(const void *left, const void *right)
{
	const struct port_claim *a = left;
	const struct port_claim *b = right;

	return memcmp(&a->key, &b->key, sizeof(a->key));
}

/* As it was written: whoever gave no hostIP does not look for an entry with "::". */
static void describe_mapping(const struct port_mapping *mapping, char text[MAPPING_TEXT_SIZE])
{
	char address[CNI_ADDRESS_TEXT_SIZE] = "";

	if (mapping->kind != ANY_ADDRESS)
		cni_address_format(mapping->host_address, address);
	snprintf(text, MAPPING_TEXT_SIZE, "host port %u/%s, %s%s, to container port %u",
		 mapping->host_port, conf_protocol_name(mapping->protocol),
		 *address ? "hostIP " : "no hostIP", address, mapping->container_port);
}

static int refuse_contradiction(const struct conf *conf, uint32_t one, uint32_t other,
				struct cni_error *err)
{
	uint32_t first = one < other ? one : other, second = one < other ? other : one;
	char first_text[MAPPING_TEXT_SIZE], second_text[MAPPING_TEXT_SIZE];

	describe_mapping(&conf->mappings[first], first_text);
	describe_mapping(&conf->mappings[second], second_text);
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "runtimeConfig.portMappings[%u] (%s) and portMappings[%u] (%s) "
			     "contradict each other: remove one of the two",
			     first, first_text, second, second_text);
}

/* Leaves each key once. */
static int claims_unite(const struct conf *conf, struct port_claim *claims, size_t *count,
			struct cni_error *err)
{
	size_t kept = 0;

	qsort(claims, *count, sizeof(*claims), claim_compare);
	for (size_t i = 0; i < *count; i++) {
		if (!kept || claim_compare(&claims[kept - 1], &claims[i]))
			claims[kept++] = claims[i];
		else if (claims[kept - 1].container_port != claims[i].container_port)
			return refuse_contradiction(conf, claims[kept - 1].mapping,
						    claims[i].mapping, err);
	}
	*count = kept;
	return 0;
}

int conf_claim_ports(struct conf *conf, const uint8_t *container_ipv4,
		     const uint8_t *container_ipv6, struct port_claim **claims, size_t *claim_count,
		     struct cni_error *err)
{
	cleanup_free struct port_claim *built = NULL;
	size_t count = 0;

	*claims = NULL;
	*claim_count = 0;
	if (!conf->mapping_count)
		return 0;
	if (!container_ipv4 && !container_ipv6)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "port mappings need an IP address to lead to: prevResult has "
				     "none on this interface");
	built = calloc(conf->mapping_count, 2 * sizeof(*built)); /* one for each family */
	if (!built)
		return cni_error_no_memory(err);
	if (claim_family(conf, true, container_ipv4, built, &count, err) ||
	    claim_family(conf, false, container_ipv6, built, &count, err) ||
	    claims_unite(conf, built, &count, err))
		return -1;
	*claims = TAKE(built);
	*claim_count = count;
	return 0;
}

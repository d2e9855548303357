/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* request.c - what the runtime asks for one container: ports, bandwidth, and whose it is. */
#include "conf/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/memory.h"
#include "lib/ports.h"
#include "cni/environment.h"
#include "lib/json.h"
#include "conf/addresses.h"
#include "lib/text.h"

#define KUBELET_PORT 10250

static int read_port(const json_t *entry, const char *key, uint16_t *port, struct cni_error *err)
{
	struct given given = {entry, key, NULL};
	uint32_t value = 0;

	if (option_read_number(&given, (struct limits){1, UINT16_MAX}, &value, err))
		return -1;
	*port = (uint16_t)value;
	return value ? 0
		     : cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "\"%s\" is missing, must be 1 to %u", key, UINT16_MAX);
}

/* NULL, or why a port cannot be mapped at the address. */
static const char *find_address_fault(const struct conf *conf, const struct port_claim *claim)
{
	const uint8_t *address = claim->key.host_address;
	const struct policy *policy = &conf->policy;

	if (conf_is_never_mapped(address))
		return "where nothing can be mapped: multicast, broadcast and IPv6 link-local "
		       "packets are left alone";
	if (cni_address_is_loopback(address) && !conf->localhost)
		return "where nobody would reach the port: \"localhost\" is false; leave one of "
		       "the two out";
	if (!cni_address_is_any(address) &&
	    conf_ranges_hold(policy->excluded, policy->excluded_count, address))
		return "which \"excludeCIDRs\" keeps from being mapped: give another address, or "
		       "add it to \"excludeCIDRs\" as an exception, with \"!\" before it";
	return NULL;
}

static int read_host_address(const struct conf *conf, const json_t *entry, struct port_claim *claim,
			     struct cni_error *err)
{
	const char *text = "", *fault;

	if (cni_json_get_string(entry, "hostIP", &text, err))
		return -1;
	claim->without_host_address = !*text;
	if (!*text)
		return 0;
	fault = cni_address_parse(text, claim->key.host_address)
			? "which is no IP address: give one without brackets, zone or prefix "
			  "length; names are not resolved"
			: find_address_fault(conf, claim);
	if (!fault)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION, "\"hostIP\" is \"%s\", %s", text,
			     fault);
}

/* CNI_ERROR_INVALID_CONFIGURATION and not CNI_ERROR_PORT_TAKEN: it is the configuration that says
 * no, however often it is tried. */
static int check_host_port(const struct conf *conf, const struct port_claim *claim,
			   struct cni_error *err)
{
	uint16_t port = claim->key.host_port;

	for (size_t i = 0; i < MASQUERADE_RANGES; i++)
		if (conf->never_ports[i].first <= port && port <= conf->never_ports[i].last)
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "\"hostPort\" is %u, one of \"neverPorts\", which are "
					     "never mapped: map another one",
					     port);
	/* The kernel has no hook where SCTP sockets are bound. */
	if (conf->reserve_host_ports && claim->key.protocol == PROTOCOL_SCTP)
		conf_warn(conf->warnings,
			  "\"reserveHostPorts\" has no effect on SCTP: processes of the "
			  "host can bind to port %u",
			  port);
	if (!conf->never_ports_given && port == KUBELET_PORT && claim->key.protocol == PROTOCOL_TCP)
		conf_warn(conf->warnings,
			  "hostPort %u is the kubelet's API: on a node with a kubelet, nobody "
			  "reaches that from outside any more; map another port. "
			  "\"neverPorts\": [%u] refuses this one, [] allows it without a warning",
			  port, port);
	return 0;
}

/* Appends one claim, or one for each family. */
static int read_mapping(struct conf *conf, const json_t *entry, size_t index, struct cni_error *err)
{
	struct port_claim *claim = &conf->ports[conf->port_count];
	struct given protocol = {entry, "protocol", NULL};
	uint8_t chosen;

	*claim = (struct port_claim){
		.portmap.localhost = conf->localhost,
		.portmap.reserved_on_host = conf->reserve_host_ports,
		.mapping = (uint32_t)index,
	};
	if (read_port(entry, "hostPort", &claim->key.host_port, err) ||
	    read_port(entry, "containerPort", &claim->portmap.container_port, err) ||
	    option_read_choice(&protocol, mapped_protocols, &chosen, err))
		return -1;
	claim->key.protocol = protocol_parse(mapped_protocols[chosen]);
	if (read_host_address(conf, entry, claim, err) || check_host_port(conf, claim, err))
		return -1;
	claim->portmap.names_address = !cni_address_is_any(claim->key.host_address);
	conf->port_count++;
	if (claim->without_host_address) {
		claim[1] = claim[0];
		memcpy(claim[1].key.host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE);
		conf->port_count++;
	}
	return 0;
}

static int compare_claims(const void *left, const void *right)
{
	const struct port_claim *a = left, *b = right;

	return memcmp(&a->key, &b->key, sizeof(a->key));
}

/* Leaves each key once. Of two the one whose hostIP was written stays: it gets a warning where the
 * container lacks the family. */
static int unite_claims(struct port_claim *claims, size_t *count, struct cni_error *err)
{
	size_t kept = 0;

	qsort(claims, *count, sizeof(*claims), compare_claims);
	for (size_t i = 0; i < *count; i++) {
		struct port_claim *last = kept ? &claims[kept - 1] : NULL;
		const struct port_claim *first = last, *second = &claims[i];

		if (!last || compare_claims(last, &claims[i])) {
			claims[kept++] = claims[i];
			continue;
		}
		if (first->mapping > second->mapping) {
			first = &claims[i];
			second = last;
		}
		if (first->portmap.container_port != second->portmap.container_port)
			return cni_error_set(
				err, CNI_ERROR_INVALID_CONFIGURATION,
				"runtimeConfig.portMappings[%u] and [%u] contradict each "
				"other: host port %u/%s is mapped to container port %u and "
				"to %u; remove one",
				first->mapping, second->mapping, first->key.host_port,
				protocol_word(first->key.protocol), first->portmap.container_port,
				second->portmap.container_port);
		if (last->without_host_address)
			*last = claims[i];
	}
	*count = kept;
	return 0;
}

static int read_mappings(struct conf *conf, const json_t *runtime_config, struct cni_error *err)
{
	json_t *array = NULL, *entry;
	size_t index;

	if (cni_json_get_array(runtime_config, "portMappings", &array, err))
		return cni_error_wrap(err, "runtimeConfig");
	if (!json_array_size(array))
		return 0;
	conf->ports = or_exit(calloc(json_array_size(array), 2 * sizeof(*conf->ports)));
	json_array_foreach (array, index, entry) {
		if (cni_json_check_element(entry, "runtimeConfig.portMappings", index, err))
			return -1;
		if (read_mapping(conf, entry, index, err))
			return cni_error_wrap(err, "runtimeConfig.portMappings[%zu]", index);
	}
	return unite_claims(conf->ports, &conf->port_count, err);
}

static int read_bandwidth(struct conf *conf, const json_t *runtime_config, struct cni_error *err)
{
	static const char *const limits[] = {"egressRate", "egressBurst", "ingressRate",
					     "ingressBurst"};
	json_t *bandwidth = NULL;

	if (cni_json_get_object(runtime_config, "bandwidth", &bandwidth, err))
		return cni_error_wrap(err, "runtimeConfig");
	for (size_t i = 0; bandwidth && i < sizeof(limits) / sizeof(limits[0]); i++) {
		json_int_t value = 0;

		if (cni_json_get_integer(bandwidth, limits[i], &value, err))
			return cni_error_wrap(err, "runtimeConfig.bandwidth");
		conf->may_limit_bandwidth |= value != 0;
		conf->egress_limited |= value && i < 2;
	}
	return 0;
}

/* Appends the value of the key, as much as fits, and keeps the zero at the end.
 * False: CNI_ARGS do not have it, or it is empty. */
static bool append_argument(char *text, size_t size, const char *args, const char *key)
{
	size_t length, used = strlen(text);
	const char *value = cni_args_get(args, key, &length);

	for (size_t i = 0; value && i < length && used + 1 < size; i++)
		text[used++] = value[i] >= ' ' && value[i] <= '~' ? value[i] : '?';
	return value && length;
}

/* What Kubernetes' runtimes say, Nomad, and Podman (K8S_POD_NAME alone). People will read it, so
 * that whatever is not printable ASCII becomes a question mark, and what is too long is cut. */
static void read_workload(struct workload *workload, const char *args)
{
	char *name = workload->name, *namespace = workload->namespace;

	if (append_argument(name, sizeof(workload->name), args, "K8S_POD_NAME")) {
		workload->kind = WORKLOAD_CONTAINER;
		if (append_argument(namespace, sizeof(workload->namespace), args,
				    "K8S_POD_NAMESPACE"))
			workload->kind = WORKLOAD_POD;
	} else if (append_argument(name, sizeof(workload->name), args, "NOMAD_JOB_ID")) {
		workload->kind = WORKLOAD_NOMAD;
		append_argument(namespace, sizeof(workload->namespace), args, "NOMAD_NAMESPACE");
		if (cni_args_have_key(args, "NOMAD_GROUP_NAME") &&
		    strlen(name) + 1 < sizeof(workload->name)) {
			name[strlen(name)] = '/';
			append_argument(name, sizeof(workload->name), args, "NOMAD_GROUP_NAME");
		}
	}
}

/* A script has no CNI_ARGS that name what it runs: its list's "args" may. */
static void read_workload_name(struct workload *workload, const json_t *config)
{
	const json_t *ours = cni_json_get(cni_json_get(config, "args"), "bpf-portmap");
	const char *name = json_string_value(cni_json_get(ours, "workload"));

	if (workload->kind != WORKLOAD_NONE || !name || !*name)
		return;
	snprintf(workload->name, sizeof(workload->name), "%s", name);
	cni_printable(workload->name, "");
	workload->kind = WORKLOAD_CONTAINER;
}

int conf_parse(struct conf *conf, const json_t *config, const char *args, struct cni_error *err)
{
	json_t *capabilities = NULL, *runtime_config = NULL;
	bool declared = false;

	read_workload(&conf->workload, args);
	read_workload_name(&conf->workload, config);
	if (conf_parse_options(conf, config, err) ||
	    cni_json_get_object(config, "capabilities", &capabilities, err))
		return -1;
	if (capabilities && cni_json_get_boolean(capabilities, "bandwidth", &declared, err))
		return cni_error_wrap(err, "capabilities");
	/* Where our capabilities name bandwidth, runtimeConfig has all limits of a pod. */
	conf->may_limit_bandwidth = !declared && cni_args_have_key(args, "K8S_POD_NAME");
	if (cni_json_get_object(config, "runtimeConfig", &runtime_config, err))
		return -1;
	if (!runtime_config)
		return 0;
	if (read_bandwidth(conf, runtime_config, err))
		return -1;
	return read_mappings(conf, runtime_config, err);
}

int conf_claim_ports(struct conf *conf, const uint8_t *container_ipv4,
		     const uint8_t *container_ipv6, struct cni_error *err)
{
	char text[CNI_ADDRESS_TEXT_SIZE];
	size_t skipped = 0, kept = 0;

	if (conf->port_count && !container_ipv4 && !container_ipv6) {
		conf->port_count = 0;
		conf_warn(conf->warnings, "no port is mapped: prevResult has no IP address on this"
					  " interface for them to lead to; give the network"
					  " \"ipam\"");
	}
	for_each (claim, conf->ports, conf->port_count) {
		bool ipv4 = cni_address_is_ipv4(claim->key.host_address);
		const uint8_t *address = ipv4 ? container_ipv4 : container_ipv6;

		if (address) {
			memcpy(claim->portmap.container_address, address, CNI_ADDRESS_SIZE);
			conf->ports[kept++] = *claim;
		} else if (!cni_address_is_any(claim->key.host_address)) {
			return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
					     "%s port %u of hostIP %s cannot be mapped: the "
					     "container has no %s address",
					     protocol_word(claim->key.protocol),
					     claim->key.host_port,
					     cni_address_format(claim->key.host_address, text),
					     ipv4 ? "IPv4" : "IPv6");
		} else if (!claim->without_host_address) {
			skipped++;
		}
	}
	conf->port_count = kept;
	if (!skipped)
		return 0;
	conf_warn(conf->warnings,
		  "%zu port mapping%s with hostIP %s skipped: the container has no %s address",
		  skipped, skipped == 1 ? "" : "s",
		  container_ipv6 ? "0.0.0.0" : "::", container_ipv6 ? "IPv4" : "IPv6");
	return 0;
}

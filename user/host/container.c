/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* container.c - what one container asks for. */
#include "host/container.h"

#include <stdlib.h>
#include <string.h>

#include "cni/result.h"
#include "conf/request.h"
#include "datapath/records/attachments.h"
#include "lib/cleanup.h"
#include "lib/digest.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "lib/error.h"
#include "net/netns.h"

/* Reading more mappings costs more than it saves. */
#define MAX_GUESSED 128

/* All its addresses, also those without ports: what it sends from them may be masqueraded. */
static void claim_endpoints(struct container *container, const struct cni_result *result,
			    const char *ifname)
{
	struct attachment_claims *claims = &container->claims;
	size_t count = result->address_count;

	claims->endpoints = or_exit(calloc(count ? count : 1, sizeof(*claims->endpoints)));
	container->wants_nothing = !claims->port_count && !container->conf.strict;
	for (size_t i = 0; i < count; i++) {
		const struct cni_result_address *address = &result->addresses[i];
		struct endpoint_claim *claim = &claims->endpoints[claims->endpoint_count];

		if (!cni_result_address_is_on(result, address, ifname))
			continue;
		memcpy(claim->key.address, address->address, sizeof(claim->key.address));
		claim->endpoint.prefix_length = address->prefix_length;
		claim->endpoint.masquerade = cni_address_is_ipv4(address->address)
						     ? container->conf.masquerade4
						     : container->conf.masquerade6;
		claim->endpoint.strict = container->conf.strict;
		container->wants_nothing &= !claim->endpoint.masquerade;
		claims->endpoint_count++;
	}
}

static int parse_request(struct container *container, const struct cni_environment *environment,
			 const struct cni_network_config *config, struct cni_error *err)
{
	const char *id = environment->container_id, *ifname = environment->ifname;
	struct attachment_claims *claims = &container->claims;
	const struct cni_result_address *ipv4, *ipv6;
	struct conf *conf = &container->conf;
	cleanup_result struct cni_result result = {0};
	json_t *prev_result;

	container->environment = environment;
	container->network = config->name;
	claims->container = digest_add(DIGEST_OF_NOTHING, id, strlen(id));
	if (attachment_key_make(&claims->key, config->name, id, ifname, err) ||
	    cni_network_config_get_prev_result(config, &prev_result, err))
		return -1;
	if (cni_result_read(&result, prev_result, config->version, err))
		return cni_error_wrap(err, "prevResult");
	if (conf_parse(conf, config->root, environment->args, err))
		return -1;
	ipv4 = cni_result_first_address(&result, true, ifname);
	ipv6 = cni_result_first_address(&result, false, ifname);
	/* Without any address ADD does as portmap; with another interface's it is mistaken. */
	if (conf->port_count && result.address_count && !ipv4 && !ipv6)
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "port mappings need an IP address to lead to: prevResult has"
				     " none on interface %s",
				     ifname);
	if (conf_claim_ports(conf, ipv4 ? ipv4->address : NULL, ipv6 ? ipv6->address : NULL, err))
		return -1;
	claims->ports = conf->ports;
	claims->port_count = conf->port_count;
	claims->policy = &conf->policy;
	claims->workload = conf->workload;
	claim_endpoints(container, &result, ifname);
	return 0;
}

int container_read(struct container *container, const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err)
{
	int result = parse_request(container, environment, config, err);
	const json_t *line;
	size_t index;

	json_array_foreach (container->conf.warnings, index, line)
		warning("%s", json_string_value(line));
	return result;
}

const struct attachment_claims *container_guess(struct container *container,
						const struct cni_environment *environment,
						const struct cni_network_config *config)
{
	const json_t *runtime_config = cni_json_get(config->root, "runtimeConfig");
	const json_t *mappings = cni_json_get(runtime_config, "portMappings");

	if (json_array_size(mappings) > MAX_GUESSED ||
	    parse_request(container, environment, config, NULL))
		return NULL;
	return &container->claims;
}

void container_release(struct container *container)
{
	conf_release(&container->conf);
	free(container->claims.endpoints);
	*container = (struct container){0};
}

int container_refuse_own_netns(const struct cni_environment *environment, struct cni_error *err)
{
	if (environment->netns_override || !netns_is_own(environment->netns))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_NETNS,
			     "CNI_NETNS \"%s\" is the network namespace that the plugin runs in;"
			     " it must be the container's",
			     environment->netns);
}

int container_find_veth(struct container *container, struct cni_error *err)
{
	const struct cni_environment *environment = container->environment;
	cleanup_close int netns = netns_open(environment->netns, err);

	return netns < 0 ? -1
			 : veth_find_host_end(netns, environment->ifname, &container->veth, err);
}

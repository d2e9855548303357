/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* status.c - from a result of CNI to netavark's status. */
#include "netavark/status.h"

#include <string.h>

#include "lib/cleanup.h"
#include "cni/json.h"
#include "cni/result.h"
#include "netavark/names.h"

static const char *find_mac(const struct cni_result *result, const char *ifname)
{
	for (size_t i = 0; i < result->interface_count; i++)
		if (!strcmp(result->interfaces[i].name, ifname) && *result->interfaces[i].sandbox)
			return result->interfaces[i].mac;
	return "";
}

static json_t *list_subnets(const json_t *result)
{
	json_t *subnets = json_array(), *address;
	size_t index;

	json_array_foreach (cni_json_get(result, "ips"), index, address)
		json_array_append_new(
			subnets, json_pack("{s:O, s:O*}", "ipnet", cni_json_get(address, "address"),
					   "gateway", cni_json_get(address, "gateway")));
	return subnets;
}

json_t *status_make(const json_t *result, const struct request *request, bool has_names,
		    struct cni_error *err)
{
	json_t *given = request->network.dns_servers;
	cleanup_json json_t *servers = has_names ? network_servers(&request->network)
				       : given   ? json_incref(given)
						 : json_array();
	struct cni_result read = {0};
	json_t *status = NULL;

	if (!cni_result_read(&read, result, request->list.version, err))
		status = json_pack("{s:o, s:O, s:{s:{s:s, s:o}}}", "dns_search_domains",
				   has_names ? json_pack("[s]", NAMES_DOMAIN) : json_array(),
				   "dns_server_ips", servers, "interfaces", request->conf.ifname,
				   "mac_address", find_mac(&read, request->conf.ifname), "subnets",
				   list_subnets(result));
	cni_result_release(&read);
	return status;
}

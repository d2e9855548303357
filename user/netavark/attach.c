/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - setup and teardown, under the attachment's lock. */
#include "netavark/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/json.h"
#include "cni/environment.h"
#include "cni/result.h"
#include "cnirun/cache.h"
#include "cnirun/output.h"
#include "cnirun/plugin.h"
#include "netavark/detach.h"
#include "netavark/names.h"
#include "netavark/plugin_list.h"
#include "netavark/request.h"

static int add(const struct request *request, json_t **result, struct cni_error *err)
{
	const struct operation operation = {
		.command = "ADD", .list = &request->list, .conf = &request->conf};
	cleanup_json json_t *foreseen = plugin_list_foresee(&request->list);

	if (setenv(ENGINE_HOLDS_PORTS, "1", 1))
		return cni_error_set(err, CNI_ERROR_IO, "cannot set %s: %s", ENGINE_HOLDS_PORTS,
				     strerror(errno));
	/* First as an intent. */
	if (cache_write(&request->list, &request->conf, foreseen, err) ||
	    plugin_run_all(&operation, NULL, result, err))
		return -1;
	return cache_write(&request->list, &request->conf, *result, err);
}

/* Without names a container works in all else, so that a missing server stops none. */
static bool is_named(const struct request *request)
{
	cleanup_error struct cni_error problem = {0};

	if (!request->network.dns_enabled)
		return false;
	if (!names_add(request, &problem))
		return true;
	output_warn("containers of network \"%s\" do not find this one by name, nor it them: %s",
		    request->network_name, cni_error_message(&problem));
	return false;
}

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

/* What setup answers: `podman inspect` shows it, and Podman takes the container's name servers from
 * it. `has_names`: the network's name server knows the container, which then gets it in place of
 * the servers that the network has. */
static json_t *make_status(const json_t *result, const struct request *request, bool has_names,
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

static int attach(const struct request *request, attach_reply *reply, struct cni_error *err)
{
	cleanup_json json_t *result = NULL, *status = NULL;

	if (add(request, &result, err))
		return -1;
	status = make_status(result, request, is_named(request), err);
	return status ? reply(status, err) : -1;
}

int attach_setup(const json_t *root, const char *netns, attach_reply *reply, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;
	cleanup_cache_entry struct cache_entry earlier = {0};
	cleanup_conflist struct conflist list = {0};
	struct cni_error problem = {0};

	if (request_read(&request, root, netns, err))
		return -1;
	if (netns_is_gone(netns))
		return cni_error_set(err, CNI_ERROR_INVALID_NETNS, "%s is no network namespace",
				     netns);
	if (cache_lock_attachment(&lock, request.network_name, &request.conf, err) ||
	    detach_read_written(&earlier, &request, err))
		return -1;
	if (earlier.root)
		detach_forgotten(&list, request, "an earlier setup of the container");
	conflist_release(&list);
	if (!attach(&request, reply, err))
		return 0;
	names_remove(&request);
	if (detach(&list, &request, &problem)) {
		cni_error_wrap(&problem, "when cleaning up");
		cni_error_join(err, &problem);
	}
	leave_network(lock, &request, &request.list);
	return -1;
}

int attach_teardown(const json_t *root, const char *netns, struct cni_error *err)
{
	cleanup_request struct request request = {0};
	cleanup_cache_lock int lock = CACHE_LOCK_NONE;
	cleanup_conflist struct conflist list = {0};

	if (request_read_names(&request, root, netns, err) ||
	    cache_lock_attachment(&lock, request.network_name, &request.conf, err))
		return -1;
	names_remove(&request);
	if (detach(&list, &request, err))
		return -1;
	leave_network(lock, &request, &list);
	return 0;
}

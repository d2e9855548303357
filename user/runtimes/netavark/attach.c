/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attach.c - setup and teardown, under the attachment's lock. */
#include "runtimes/netavark/attach.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cni/environment.h"
#include "cni/result.h"
#include "lib/cleanup.h"
#include "lib/json.h"
#include "lib/memory.h"
#include "runtimes/cnirun/cache.h"
#include "runtimes/cnirun/output.h"
#include "runtimes/cnirun/plugin.h"
#include "runtimes/netavark/names.h"
#include "runtimes/netavark/network.h"
#include "runtimes/netavark/request.h"

/* Reads what setup has written down: none is no error, and something that is broken is as good as
 * none. CNI_ERROR_DECODE where it is another attachment's, CNI_ERROR_IO where it cannot be read. */
static int detach_read_written(struct cache_entry *entry, const struct request *request,
			       struct cni_error *err)
{
	struct cni_error problem = {0};

	if (!cache_read(entry, request->network_name, &request->conf, &problem))
		return 0;
	if (entry->is_of_another || problem.code == CNI_ERROR_IO) {
		*err = problem;
		return -1;
	}
	output_warn("going on without it: %s", cni_error_message(&problem));
	cni_error_release(&problem);
	cache_release(entry);
	return 0;
}

/* The list that setup has written down, since the network may have changed; without it, that of the
 * network as it is now. */
static int find_list(struct conflist *list, const struct cache_entry *entry, const json_t *root,
		     struct cni_error *err)
{
	cleanup_error struct cni_error problem = {0};

	if (!entry->root)
		return request_make_list_for_del(list, root, err);
	if (!cache_read_conflist(entry, list, &problem))
		return 0;
	output_warn("going by the network as it is now: %s", cni_error_message(&problem));
	conflist_release(list);
	return request_make_list_for_del(list, root, err);
}

/* Undoes what a setup has done, or may have, in the namespace that it wrote down unless the request
 * has one. Goes on after errors; what is written down stays then, for the next call. *list: the
 * list that it goes by, to be released also after a failure. The caller has the attachment's lock,
 * or the network's. */
static int detach(struct conflist *list, const struct request *request, struct cni_error *err)
{
	cleanup_cache_entry struct cache_entry entry = {0};
	struct runtime_conf conf = request->conf;
	const struct operation operation = {"DEL", list, &conf, NULL, true, NULL};

	if (detach_read_written(&entry, request, err) ||
	    find_list(list, &entry, request->root, err))
		return -1;
	if (!conf.netns)
		conf.netns = entry.netns;
	/* Plugins know what to do without one, but not with a file that is no namespace any more,
	 * as after `umount`. */
	if (!conf.netns || netns_is_gone(conf.netns))
		conf.netns = "";
	if (entry.root) {
		conf.args = entry.args;
		conf.capability_args = entry.capability_args;
	}
	if (plugin_run_all(&operation, entry.result, NULL, err))
		return -1;
	return cache_remove(request->network_name, &conf, err);
}

/* Does it where no teardown came for it: warns of a failure. `what` begins the warning. */
static void detach_forgotten(struct conflist *list, struct request request, const char *what)
{
	cleanup_error struct cni_error problem = {0};

	request.conf.netns = NULL;
	if (runtime_conf_validate(&request.conf, &problem) || detach(list, &request, &problem))
		output_warn("%s cannot be undone: %s", what, cni_error_message(&problem));
}

static bool is_isolated(const struct cache_entry *entry)
{
	cleanup_conflist struct conflist list = {0};
	cleanup_error struct cni_error ignored = {0};

	return !cache_read_conflist(entry, &list, &ignored) && plugin_list_is_isolated(&list);
}

/* What has been detached. */
struct left {
	const char *bridge;
	bool isolated; /* a container that was */
	bool gone;     /* one whose namespace is, so that its interface may go only now */
	size_t others; /* that are still attached */
	bool needed;   /* the rules, by one of these */
};

/* The rules for the bridge go with the last container that is isolated, since the network may not
 * be so any more. */
static void remove_unused_bridge(const struct left *left)
{
	size_t ports;

	if (left->gone)
		bridge_wait_for_ports(left->bridge, left->others);
	ports = bridge_exists(left->bridge) ? bridge_count_ports(left->bridge) : 0;
	/* With more ports than known containers, the setup of some is lost, which may be isolated.
	 */
	if (left->isolated && (!ports || (!left->needed && ports <= left->others)))
		bridge_remove_rules(left->bridge);
	if (!ports)
		bridge_remove(left->bridge);
}

/* The container's namespace has gone without a teardown, and its bridge may be that of a network
 * which had the name before. */
static void sweep_one(struct left *left, struct request request, const struct cache_entry *entry)
{
	cleanup_conflist struct conflist list = {0};
	struct left former = {.gone = true};

	request.conf.container_id = entry->container_id;
	request.conf.ifname = entry->ifname;
	detach_forgotten(&list, request, "the setup of a container that is gone");
	former.bridge = plugin_list_bridge(&list);
	former.isolated = plugin_list_is_isolated(&list);
	if (strcmp(former.bridge, left->bridge)) {
		remove_unused_bridge(&former);
	} else {
		left->gone = true;
		left->isolated |= former.isolated;
	}
}

/* Detaches containers whose namespace has gone. */
static void sweep(struct left *left, const struct request *request)
{
	const char *directory = request->conf.cache_directory;
	cleanup_cache_entries struct cache_entries entries = {0};
	cleanup_error struct cni_error problem = {0};

	if (cache_read_all(&entries, request->network_name, directory, &problem))
		output_warn("%s", cni_error_message(&problem));
	for_each (entry, entries.entries, entries.count) {
		if (entry->netns && netns_is_gone(entry->netns)) {
			sweep_one(left, *request, entry);
		} else {
			left->needed |= is_isolated(entry);
			left->others++;
		}
	}
	cache_sweep(request->network_name, directory);
}

/* When a container has left the network, detaches others whose namespace has gone without a
 * teardown; removes the bridge with the last container. `list` is what the container was detached
 * by. Does nothing, and gives the lock up, where another call is at work in the network, which may
 * need the bridge. */
static void leave_network(int lock, const struct request *request, const struct conflist *list)
{
	struct left left = {
		.bridge = plugin_list_bridge(list),
		.isolated = plugin_list_is_isolated(list),
		.gone = netns_is_gone(request->conf.netns),
	};

	if (!cache_lock_widen(lock))
		return;
	sweep(&left, request);
	remove_unused_bridge(&left);
}

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

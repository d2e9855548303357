/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * add.c - ADD: sets up all that the container asks for, or nothing. The steps stand in their order;
 * set_up() lists them.
 */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "lib/cleanup.h"
#include "lib/error.h"
#include "cni/reply.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment_add.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/attachments.h"
#include "datapath/records/containers.h"
#include "host/container.h"
#include "host/foreign_nat.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"
#include "net/link.h"
#include "net/processes.h"
#include "plugin/commands.h"

/* One run. */
struct add {
	struct container container;
	struct host host;
	struct attach_undo undo;
};

static void warn_about_egress_limit(const struct add *add)
{
	if (add->undo.qdisc && add->container.conf.egress_limited)
		warning("a limit is asked for what the container sends, and bpf-portmap had to add"
			" a clsact qdisc to %s: if a bandwidth plugin comes later in the conflist"
			" it fails, so put it before bpf-portmap, or use \"attach\": \"auto\""
			" (Linux 6.6)",
			add->container.veth.link.name);
}

static int attach_to_veth(struct add *add, const struct hook_changes *changes,
			  struct cni_error *err)
{
	const struct link_name veth = link_name_of(&add->container.veth.link);

	return attach_apply(&add->host.datapath, &veth, changes, &add->undo, err);
}

/* Prepares the host; then attaches to the veth and to sockets. That may take milliseconds, so the
 * veth comes before the lock that claiming takes: it concerns nobody else. */
static int attach_programs(struct add *add, struct cni_error *err)
{
	struct host *host = &add->host;
	struct container *container = &add->container;
	cleanup_plan struct plan plan = {0};

	if (container_prepare(container, host, &plan, err) ||
	    attach_to_veth(add, &plan.veth_hooks, err) ||
	    host_sockets_attach(host, &container->conf, err))
		return -1;
	plan_warn(&plan);
	if (plan.unmatched_uplinks && !container_wants_nothing(container))
		warning("%s", plan.unmatched_uplinks);
	warn_about_egress_limit(add);
	return 0;
}

/* How long the DEL of another container is waited for that has a port, in milliseconds, and what a
 * true conflict costs. After an error kubelet tries again only after 12 seconds, and Nomad in vain;
 * Nomad's tasks have 5 seconds to end (kill_timeout). */
#define WAIT_FOR_POD 5000
#define WAIT_FOR_ALLOCATION 10000
#define WAIT_FOR_STOPPED 5000
#define LOOK_EVERY 20

/* Returns whether another container has one of the ports, and is there. */
static bool find_in_the_way(const struct host *host, const struct container *container,
			    struct slot *slot, struct attachment *record)
{
	const struct objects *objects = &host->datapath.objects;
	const struct attachment_claims *claims = &container->claims;
	struct portmap portmap;

	for (size_t i = 0; i < claims->port_count; i++)
		/* Not this container on another network. */
		if (portmap_read(objects, &claims->ports[i].key, &portmap) &&
		    owner_read(objects, portmap.owner, slot) &&
		    slot->container != claims->container &&
		    slot_read_record(objects, portmap.owner.slot, slot, record) &&
		    !workload_is_same(&record->workload, &container->conf.workload) &&
		    attachment_has_veth(objects, record))
			return true;
	return false;
}

/* Before 1.9 Nomad says nothing but the allocation's ID. */
static bool is_allocation(const struct workload *workload, const struct attachment_key *key)
{
	return workload->kind == WORKLOAD_NOMAD ||
	       (workload->kind == WORKLOAD_NONE && attachment_has_uuid(key->name));
}

/*
 * Schedulers give no two pods, or no two allocations, of a node the same port, so that one that has
 * it is nearly always one that goes: it was deleted by force, or is a Deployment's, whose pods have
 * names of their own. It is being stopped, and nothing tells it from others until its DEL comes. Of
 * other engines' containers, one without processes is being stopped, or is forgotten. 0: it stays.
 */
static int milliseconds_to_wait(const struct container *container, const struct slot *slot,
				const struct attachment *record)
{
	const struct workload *own = &container->conf.workload, *its = &record->workload;
	struct attachment_key key;

	slot_get_key(slot, &key);
	if (own->kind == WORKLOAD_POD && its->kind == WORKLOAD_POD)
		return WAIT_FOR_POD;
	if (is_allocation(own, &container->claims.key) && is_allocation(its, &key))
		return WAIT_FOR_ALLOCATION;
	return slot_is_engines(slot, record) && !processes_are_in_netns(slot->netns_id)
		       ? WAIT_FOR_STOPPED
		       : 0;
}

/* Waits for its DEL, without the lock. Returns whether it came. */
static bool other_goes(const struct host *host, const struct container *container)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY * 1000000L};
	struct attachment record;
	struct slot slot;
	int left;

	if (!find_in_the_way(host, container, &slot, &record))
		return true;
	for (left = milliseconds_to_wait(container, &slot, &record); left > 0; left -= LOOK_EVERY) {
		nanosleep(&pause, NULL);
		if (!find_in_the_way(host, container, &slot, &record))
			return true;
	}
	return false;
}

/* Writes the record, the ports and the addresses: from here on packets are translated. */
static int claim_all(struct add *add, struct cni_error *err)
{
	const struct host *host = &add->host;
	const struct attachment_claims *claims = &add->container.claims;

	if (!attachment_add(&host->datapath.objects, claims, err))
		return 0;
	if (err->code != CNI_ERROR_PORT_TAKEN || !other_goes(host, &add->container))
		return -1;
	cni_error_release(err);
	return attachment_add(&host->datapath.objects, claims, err);
}

/* Between our look and the claim another command may have taken a ptp container's veth, which has
 * an address of the host, for an uplink. From the claim on nobody does. */
static void take_veth_back(const struct add *add)
{
	const struct host_veth *veth = &add->container.veth;
	const struct link_name at = link_name_of(&veth->link);

	if (!veth->bridge.ifindex)
		hooks_settle(&add->host.datapath, &at, &add->container.claims.interface, NULL);
}

/* Detaches what this ADD attached. A parallel ADD may have written an entry for the veth as an
 * uplink; without programs it would be false, so it goes too. */
static void detach_programs(const struct add *add)
{
	const struct objects *objects = &add->host.datapath.objects;
	uint32_t ifindex = add->container.veth.link.ifindex;
	cleanup_lock int lock = -1;
	struct interface now;

	/* Nothing was attached where the programs were not loaded, or there is no veth. */
	if (!ifindex || !datapath_is_usable(&add->host.datapath))
		return;
	lock = lock_take_claims(NULL);
	attach_rollback(ifindex, &add->undo);
	if (lock >= 0 && interface_read(objects, ifindex, &now) && !interface_is_containers(&now))
		map_delete(objects, MAP_INTERFACES, &ifindex, NULL);
}

static void undo_all(const struct add *add)
{
	const struct attachment_claims *claims = &add->container.claims;
	cleanup_error struct cni_error failure = {0};

	if (attachment_remove(&add->host.datapath.objects, &claims->key, claims, &failure))
		warning("cannot undo a failed ADD: %s", cni_error_message(&failure));
	bridge_entry_delete(claims->ifindex, claims->bridge_entry_mac);
	detach_programs(add);
}

static int set_up(struct add *add, struct cni_error *err)
{
	const struct container *container = &add->container;
	const struct host *host = &add->host;

	/* What rules of others have is written down before the container gets its ports: no
	 * connection is taken from them. */
	if (attach_programs(add, err) || host_sockets_refuse(host, container, err) ||
	    foreign_nat_check(host, container, err) || claim_all(add, err)) {
		detach_programs(add);
		return -1;
	}
	if (bridge_entry_add(container->claims.ifindex, container->claims.bridge_entry_mac))
		warning("cannot make the container's MAC a static entry of its bridge, which may"
			" send to all of its ports what is for the container: %s",
			strerror(errno));
	take_veth_back(add);
	abandoned_remove(&host->datapath);
	prerequisites_warn(host, container);
	host_sockets_warn(host, container);
	/* With reserveHostPorts no process can bind from the claim on, so this look is final. */
	if (host_sockets_refuse(host, container, err)) {
		undo_all(add);
		return -1;
	}
	return 0;
}

/* A container that wants nothing may still connect to another container on its bridge, and
 * br_netfilter's conntrack must see its packets as from_container leaves them. So it is set up
 * where the programs are loaded; a failure does not matter. Returns whether it is set up. */
static bool set_up_if_loaded(struct add *add)
{
	cleanup_error struct cni_error ignored = {0};

	return !host_open(&add->host, DATAPATH_WORK_LISTED, &ignored) &&
	       datapath_is_usable(&add->host.datapath) && !set_up(add, &ignored);
}

static int run_add(struct add *add, const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_json json_t *reply = NULL;
	bool is_set_up = true;

	if (container_refuse_own_netns(environment, err) ||
	    container_read(&add->container, environment, config, err))
		return -1;
	reply = cni_result_relabel(add->container.prev_result, config->version);
	if (container_wants_nothing(&add->container))
		is_set_up = set_up_if_loaded(add);
	else if (host_open(&add->host, DATAPATH_WORK_LISTED, err) || set_up(add, err))
		return -1;
	if (!cni_reply_result(reply, err))
		return 0;
	if (is_set_up)
		undo_all(add);
	return -1;
}

int command_add(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err)
{
	struct add add = {0};
	int result = run_add(&add, environment, config, err);

	container_release(&add.container);
	host_end(&add.host);
	return result;
}

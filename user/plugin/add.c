/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * add.c - ADD: sets up all that the container asks for, or nothing. The steps stand in their order;
 * set_up() lists them.
 */
#include <errno.h>
#include <string.h>

#include "lib/error.h"
#include "cni/reply.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/attachment.h"
#include "datapath/records/containers.h"
#include "datapath/records/port_wait.h"
#include "host/container.h"
#include "host/foreign_nat.h"
#include "host/host_sockets.h"
#include "host/interfaces.h"
#include "host/prerequisites.h"
#include "net/link.h"
#include "net/netlink.h"
#include "plugin/commands.h"

/* One run. */
struct add {
	struct container container;
	struct host host;
	struct attach_undo undo;
	bool has_programs; /* it may have attached some */
	bool has_claims;
};

/* Prepares the host; then attaches to the veth and to sockets. That may take milliseconds, so the
 * veth comes before the lock that claiming takes: it concerns nobody else. */
static int attach_programs(struct add *add, struct plan *plan, struct cni_error *err)
{
	struct container *container = &add->container;
	struct host *host = &add->host;

	/* A container that wants nothing may still connect to another container on its bridge, and
	 * br_netfilter's conntrack must see its packets as from_container leaves them. So it is set
	 * up where the programs are loaded; a failure does not matter. */
	if (host_open(host, DATAPATH_WORK_LISTED, err) ||
	    (container->wants_nothing && !datapath_is_usable(&host->datapath)))
		return -1;
	if (container_prepare(container, host, plan, err))
		return -1;
	add->has_programs = true;
	if (attach_apply(&host->datapath, &plan->veth_at, &plan->veth_hooks, &add->undo, err) ||
	    host_sockets_attach(host, &container->conf, err))
		return -1;
	plan_warn(plan);
	if (plan->unmatched_uplinks && !container->wants_nothing)
		warning("%s", plan->unmatched_uplinks);
	if (add->undo.qdisc && container->conf.egress_limited)
		warning("a limit is asked for what the container sends, and bpf-portmap had to add"
			" a clsact qdisc to %s: if a bandwidth plugin comes later in the conflist"
			" it fails, so put it before bpf-portmap, or use \"attach\": \"auto\""
			" (Linux 6.6)",
			plan->veth_at.name);
	return 0;
}

static int set_up(struct add *add, struct cni_error *err)
{
	const struct attachment_claims *claims = &add->container.claims;
	const struct objects *objects = &add->host.datapath.objects;
	const struct container *container = &add->container;
	const struct host *host = &add->host;
	cleanup_plan struct plan plan = {0};

	/* What rules of others have is written down before the container gets its ports: no
	 * connection is taken from them. */
	if (attach_programs(add, &plan, err) || host_sockets_refuse(host, container, err) ||
	    foreign_nat_check(host, container, err))
		return -1;
	/* Writes the record, the ports and the addresses: from here on packets are translated. */
	if (attachment_add(objects, claims, err)) {
		if (err->code != CNI_ERROR_PORT_TAKEN || !claims_wait_for_ports(objects, claims))
			return -1;
		cni_error_release(err);
		if (attachment_add(objects, claims, err))
			return -1;
	}
	add->has_claims = true;
	if (bridge_entry_add(claims->ifindex, claims->bridge_entry_mac))
		warning("cannot make the container's MAC a static entry of its bridge, which may"
			" send to all of its ports what is for the container: %s",
			strerror(errno));
	/* Between our look and the claim another command may have taken a ptp container's veth,
	 * which has an address of the host, for an uplink. From the claim on nobody does. */
	if (claims->interface.role == ROLE_ROUTED)
		hooks_settle(&host->datapath, &plan.veth_at, &claims->interface, NULL);
	abandoned_remove(&host->datapath);
	prerequisites_warn(host, container);
	host_sockets_warn(host, container);
	/* With reserveHostPorts no process can bind from the claim on, so this look is final. */
	return host_sockets_refuse(host, container, err);
}

/* Takes back what this ADD has done. A parallel ADD may have written an entry for the veth as an
 * uplink; without programs it would be false, so it goes too. */
static void undo(const struct add *add)
{
	const struct attachment_claims *claims = &add->container.claims;
	const struct objects *objects = &add->host.datapath.objects;
	cleanup_error struct cni_error failure = {0};
	cleanup_lock int lock = -1;
	struct interface now;

	netlink_close_own(); /* ADD may have failed because there was room for no other file */
	if (add->has_claims && attachment_remove(objects, &claims->key, claims, &failure))
		warning("cannot undo a failed ADD: %s", cni_error_message(&failure));
	if (add->has_claims)
		bridge_entry_delete(claims->ifindex, claims->bridge_entry_mac);
	if (!add->has_programs)
		return;
	lock = lock_take_claims(NULL);
	attach_rollback(claims->ifindex, &add->undo);
	if (lock >= 0 && interface_read(objects, claims->ifindex, &now) &&
	    !interface_is_containers(&now))
		interface_forget(objects, claims->ifindex, NULL);
}

static int run_add(struct add *add, const struct cni_environment *environment,
		   const struct cni_network_config *config, struct cni_error *err)
{
	cleanup_error struct cni_error failure = {0};
	int failed, result;

	if (container_refuse_own_netns(environment, err) ||
	    container_read(&add->container, environment, config, err))
		return -1;
	failed = set_up(add, &failure);
	if (failed && !add->container.wants_nothing)
		result = cni_error_move(err, &failure);
	else
		result = cni_reply_prev_result(config, err);
	if (failed || result)
		undo(add);
	return result;
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

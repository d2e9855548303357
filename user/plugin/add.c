/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* add.c - ADD: all that the container asks for, or nothing. */
#include "lib/cleanup.h"
#include "cni/reply.h"
#include "datapath/records/abandoned.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/networks.h"
#include "host/recover.h"
#include "lib/warning.h"
#include "host/absent_addresses.h"
#include "plugin/commands.h"
#include "host/container.h"
#include "host/fast_path.h"
#include "host/foreign_nat.h"
#include "host/forwarding.h"
#include "host/interfaces.h"
#include "host/localhost.h"
#include "host/named_uplinks.h"
#include "host/own_netns.h"
#include "host/predecessor.h"
#include "host/reservation.h"
#include "host/run_before.h"
#include "datapath/records/attachment_name.h"
#include "datapath/records/attachment_add.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/claims.h"

/* After the attachment is there: a network without any is forgotten by `attach`. */
static void remember_network(const struct host *host, const struct container *container)
{
	struct attachment_name name;

	if (attachment_name_split(container->claims.key.name, &name))
		network_remember(&host->datapath.objects, name.network, &container->conf);
}

static int claim(struct host *host, struct container *container, struct cni_error *err)
{
	const struct attachment_claims *claims = &container->claims;

	if (!attachment_add(&host->datapath, host->socket, claims, err))
		return 0;
	if (err->code != CNI_ERROR_PORT_TAKEN || !predecessor_goes(host, container))
		return -1;
	cni_error_release(err);
	return attachment_add(&host->datapath, host->socket, claims, err);
}

/* Before us it has made its qdisc by now. */
static void warn_about_egress_limit(const struct container *container,
				    const struct attach_undo *undo)
{
	if (undo->qdisc && container->conf.egress_limited)
		warning("a limit is asked for what the container sends, and bpf-portmap had to add"
			" a clsact qdisc to %s: if a bandwidth plugin comes later in the conflist"
			" it fails, so put it before bpf-portmap, or use \"attach\": \"auto\""
			" (Linux 6.6)",
			container->target.name);
}

/* Attaching may take milliseconds, so it comes before the lock that claiming takes. */
static int attach_and_claim(struct host *host, struct container *container,
			    const char *container_id, struct attach_undo *undo,
			    struct cni_error *err)
{
	if (interfaces_attach(host, &container->conf, &container->veth, true, err) ||
	    attach_interface(&host->datapath, host->socket, &container->target, undo, err))
		return -1;
	warn_about_egress_limit(container, undo);
	fast_path_decide(host, container, undo->qdisc);
	run_before_warn_container(host, container, undo->qdisc);
	if (reservation_set_up(host, &container->conf, err) ||
	    foreign_nat_check(host, container, false, err) ||
	    reservation_check(host, container, container_id, err))
		return -1;
	if (claim(host, container, err))
		return -1;
	remember_network(host, container);
	abandoned_remove(&host->datapath, host->socket, ABANDONED_NOTICED);
	return 0;
}

/* Others who took the veth for an uplink meanwhile may have lost their programs by it. */
static void take_back(struct host *host, const struct container *container,
		      const struct attach_undo *undo)
{
	const struct objects *objects = &host->datapath.objects;
	uint32_t ifindex = container->target.ifindex;
	struct cni_error ignored = {0};
	struct interface now;
	cleanup_lock int lock = lock_take(&ignored);

	cni_error_release(&ignored);
	attach_take_back(&host->datapath, &container->target, undo);
	if (lock >= 0 && interface_read(objects, ifindex, &now) && !interface_is_containers(&now))
		interface_delete(objects, ifindex);
}

static void tear_down(struct host *host, const struct container *container,
		      const struct attach_undo *undo)
{
	struct cni_error failure = {0};

	if (attachment_remove(&host->datapath, &container->claims.key, &container->claims,
			      &failure)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&failure));
		cni_error_release(&failure);
	}
	take_back(host, container, undo);
}

static int set_up(struct host *host, struct container *container,
		  const struct cni_environment *environment, struct attach_undo *undo,
		  struct cni_error *err)
{
	if (container_find_veth(container, environment, host, err) ||
	    datapath_prepare(&host->datapath, &host->addresses, container->conf.flow_entries, err))
		return -1;
	fast_path_choose_mode(host, container);
	absent_addresses_warn(host, container);
	localhost_set_up(host, &container->conf);
	if (attach_and_claim(host, container, environment->container_id, undo, err)) {
		take_back(host, container, undo);
		return -1;
	}
	forwarding_warn(host, container);
	named_uplinks_warn(host, container);
	if (!reservation_check(host, container, environment->container_id, err) &&
	    !foreign_nat_check(host, container, true, err))
		return 0;
	tear_down(host, container, undo);
	return -1;
}

/* Neither ports nor masquerade: nothing need be done for this container. But where others
 * have ports it may be their neighbour, and br_netfilter's conntrack must see what it
 * sends as from_container leaves it; so where the programs are loaded it gets one, if that
 * is to be had. Whether it did. */
static bool set_up_neighbour(struct host *host, struct container *container,
			     const struct cni_environment *environment, struct attach_undo *undo)
{
	struct cni_error failure = {0};
	bool done = !host_open_if_usable(host, &failure) && datapath_is_usable(&host->datapath) &&
		    !set_up(host, container, environment, undo, &failure);

	cni_error_release(&failure);
	return done;
}

static int set_up_and_reply(struct container *container, const struct cni_environment *environment,
			    const json_t *reply, struct cni_error *err)
{
	cleanup_host struct host host = {0};
	struct attach_undo undo = {0};
	bool done = true;

	if (container_wants_nothing(container))
		done = set_up_neighbour(&host, container, environment, &undo);
	else if (host_open(&host, PINS_TO_ADD, err) ||
		 set_up(&host, container, environment, &undo, err))
		return -1;
	if (!cni_reply_result(reply, err))
		return 0;
	if (done)
		tear_down(&host, container, &undo);
	return -1;
}

int command_add(const struct cni_environment *environment, const struct cni_network_config *config,
		struct cni_error *err)
{
	cleanup_container struct container container = {.netns = -1};
	cleanup_json json_t *reply = NULL;

	container_open_netns(&container, environment);
	if (own_netns_refuse_open(environment, container.netns, err) ||
	    container_read(&container, environment, config, err))
		return -1;
	reply = cni_result_relabel(container.prev_result, config->version, err);
	if (!reply)
		return -1;
	return set_up_and_reply(&container, environment, reply, err);
}

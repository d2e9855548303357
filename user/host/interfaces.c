/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - which of the host's interfaces the programs must be at. */
#include "host/interfaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "lib/memory.h"
#include "datapath/attach/attach.h"
#include "datapath/attach/attach_verify.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/host_addresses.h"
#include "datapath/records/owners.h"
#include "host/foreign_programs.h"
#include "host/uplinks.h"

/* With more addressed interfaces than this, ADD does not check each for programs of others. */
#define MANY_INTERFACES 8

/* One pass over the host's interfaces. */
struct pass {
	struct host *host;
	const struct conf *conf;
	bool repair;
	bool grown;     /* an interface was attached to, left alone or excluded */
	bool *excluded; /* result: for each of host->addresses.interfaces, whether it is excluded */
};

/* A gateway that is no bridge itself, but by which a bridge's frames reach the IP stack: a VLAN of
 * the bridge, or the other end of a veth that is a port of it, as the bridge plugin makes for
 * "vlan". */
static uint32_t bridge_behind(const struct host *host, const struct link *link)
{
	cleanup_error struct cni_error ignored = {0};
	struct link peer, master;

	if (!link->peer || link->peer_netns_id >= 0 ||
	    link_get(host->socket, link->peer, NULL, &peer, &ignored))
		return 0;
	if (link_is_kind(&peer, "bridge"))
		return peer.ifindex;
	if (!peer.master || link_get(host->socket, peer.master, NULL, &master, &ignored))
		return 0;
	return link_is_kind(&master, "bridge") ? master.ifindex : 0;
}

static int attach_and_write(struct host *host, const struct conf *conf, const struct link *link,
			    const struct interface *known, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct attach_undo ignored = {0};
	cleanup_lock int lock = -1;
	struct attach_target target;
	struct interface *interface = &target.interface, now;

	uplink_target(conf, link, &target);
	if (interface->role == ROLE_UPLINK)
		interface->bridge_ifindex = bridge_behind(host, link);
	/* "auto" asks for nothing, and `attach` does not know what the conflist asked for. */
	if (known && interface->attach_mode == ATTACH_AUTO)
		interface->attach_mode = known->attach_mode;
	if (attach_interface(&host->datapath, &target, &ignored, err))
		return -1;
	run_before_warn(host, link->ifindex, interface, false);
	interface_set_addresses(interface, address_list_find(&host->addresses, link->ifindex));
	if (interface->role == ROLE_BRIDGE)
		memcpy(interface->bridge_mac, link->mac, sizeof(interface->bridge_mac));
	if (known)
		interface->addresses_excluded = known->addresses_excluded;
	interface->without_fast_path =
		fast_path_is_barred_at_uplink(host, link->ifindex, interface);
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	/* A container's ADD beside us may have found that it is its own veth, and replaced what we
	 * attached, or taken it back with its own. Then there is nothing to write. */
	if (!attach_is_settled(&host->datapath, link->ifindex, interface) ||
	    attach_is_container_veth(link->ifindex) ||
	    (interface_read(objects, link->ifindex, &now) && interface_is_containers(&now)))
		return 0;
	return interface_write(objects, link->ifindex, interface, err);
}

/* `known`: the interface's entry in the map, or NULL. */
static int attach_link(struct host *host, const struct conf *conf, const struct link *link,
		       const struct interface *known, struct cni_error *err)
{
	struct cni_error failure = {0};

	if (attach_and_write(host, conf, link, known, &failure))
		return host_failed_at(host, link->ifindex, &failure, err);
	host_report(host, link->name,
		    known && known->role != ROLE_LEFT_ALONE ? "attached again" : "attached");
	return 0;
}

static int refresh_addresses(struct host *host, const struct addressed_interface *addressed,
			     struct interface *interface, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct interface before = *interface;
	cleanup_lock int lock = -1;

	interface_set_addresses(interface, addressed);
	if (!memcmp(&before, interface, sizeof(before)))
		return 0;
	/* A container's ADD or DEL beside us may change the entry. */
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	if (!interface_read(objects, addressed->ifindex, interface) ||
	    interface_is_containers(interface))
		return 0;
	interface_set_addresses(interface, addressed);
	return interface_write(objects, addressed->ifindex, interface, err);
}

/* None of its addresses is mapped, whatever its role. */
static int exclude(struct host *host, const struct link *link, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct interface interface;
	cleanup_lock int lock = lock_take(err);

	if (lock < 0)
		return -1;
	if (!interface_read(objects, link->ifindex, &interface))
		interface = (struct interface){.role = ROLE_LEFT_ALONE};
	if (interface_is_containers(&interface))
		return 0;
	interface.addresses_excluded = 1;
	host_report(host, link->name, "excluded");
	return interface_write(objects, link->ifindex, &interface, err);
}

static int take_step(const struct pass *pass, uint32_t ifindex, enum step step,
		     const struct interface *known, struct cni_error *err)
{
	const struct interface none = {.role = ROLE_LEFT_ALONE};
	struct host *host = pass->host;
	char why_not[WHY_NOT_SIZE];
	struct link link;

	if (link_get(host->socket, ifindex, NULL, &link, err))
		return -1;
	if (step == STEP_EXCLUDE)
		return link.ifindex ? exclude(host, &link, err) : 0;
	if (!uplink_is_possible(host, &link, why_not))
		return 0;
	if (step == STEP_ATTACH)
		return attach_link(host, pass->conf, &link, known, err);
	/* Containers get out there, as they are: from_container needs an entry for that. */
	return interface_write_new(&host->datapath.objects, ifindex, &none, err);
}

/* Decides what one interface is, and does it. `name` is NULL where the caller does not have it,
 * `addressed` where the interface has no address. */
static int classify(struct pass *pass, uint32_t ifindex, const char *name,
		    const struct addressed_interface *addressed, struct cni_error *err)
{
	const struct host *host = pass->host;
	struct interface entry, *known;
	char found[IF_NAMESIZE];
	enum step step;

	known = interface_read(&host->datapath.objects, ifindex, &entry) ? &entry : NULL;
	if (known && interface_is_containers(known))
		return 0;
	if (!name && !link_name(host->socket, ifindex, found))
		return 0;
	step = uplink_step(uplink_wish(pass->conf, name ?: found), known,
			   addressed && addressed->is_reachable);
	if (known && step == STEP_ATTACH)
		known->addresses_excluded = 0;
	if (addressed)
		pass->excluded[addressed - host->addresses.interfaces] =
			step == STEP_EXCLUDE || (known && known->addresses_excluded);
	if (step == STEP_KEEP && known && pass->repair &&
	    !attach_is_settled(&host->datapath, ifindex, known))
		step = STEP_ATTACH;
	if (step == STEP_KEEP) {
		/* Nothing changes but what the interface has: its addresses, and programs of others
		 * at it. */
		if (known && addressed && refresh_addresses(pass->host, addressed, known, err))
			return -1;
		return known && !(addressed && host->addresses.count > MANY_INTERFACES)
			       ? fast_path_refresh_uplink(pass->host, ifindex, known, err)
			       : 0;
	}
	pass->grown = true;
	return take_step(pass, ifindex, step, known, err);
}

static bool entry_has_mac(const struct interface *entry, const struct link *bridge)
{
	return !memcmp(entry->bridge_mac, bridge->mac, sizeof(entry->bridge_mac));
}

static bool port_is_of(const struct interface *port, const struct link *bridge)
{
	return port->bridge_ifindex == bridge->ifindex && entry_has_mac(port, bridge);
}

/* A bridge without a MAC of its own takes the lowest of its ports', which change. */
static int write_bridge_mac(struct host *host, uint32_t ifindex, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_lock int lock = lock_take(err);
	struct interface now;
	struct link bridge;

	/* Another run may have written a newer MAC, or removed the entry. */
	if (lock < 0 || link_get(host->socket, ifindex, NULL, &bridge, err))
		return -1;
	if (!bridge.ifindex || !interface_read(objects, ifindex, &now) || now.role != ROLE_BRIDGE)
		return 0;
	memcpy(now.bridge_mac, bridge.mac, sizeof(now.bridge_mac));
	return interface_write(objects, ifindex, &now, err);
}

/* Sees to programs at a bridge that has ports of containers, and to its entry. */
static int ensure_bridge(struct pass *pass, const struct link *bridge, struct cni_error *err)
{
	struct host *host = pass->host;
	struct interface entry, *known;

	known = interface_read(&host->datapath.objects, bridge->ifindex, &entry) ? &entry : NULL;
	if (known && known->role == ROLE_BRIDGE &&
	    (!pass->repair || attach_is_settled(&host->datapath, bridge->ifindex, known)))
		return entry_has_mac(known, bridge) ? 0
						    : write_bridge_mac(host, bridge->ifindex, err);
	pass->grown = true;
	return attach_link(host, pass->conf, bridge, known, err);
}

static int find_bridge(struct host *host, uint32_t port, struct link *bridge, struct cni_error *err)
{
	struct link link;

	return link_get(host->socket, port, NULL, &link, err) ||
			       link_get_bridge(host->socket, &link, bridge, err)
		       ? -1
		       : 0;
}

/* With the MAC of the bridge's entry, as ADD beside us would write it. The port's entry is the last
 * that is written: until it is right, a run that looks at it writes all again. */
static int write_port(struct host *host, uint32_t ifindex, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_lock int lock = lock_take(err);
	struct interface port, known;
	struct link bridge;

	if (lock < 0 || find_bridge(host, ifindex, &bridge, err))
		return -1;
	if (!interface_read(objects, ifindex, &port) || port.role != ROLE_PORT ||
	    !interface_read(objects, bridge.ifindex, &known) || known.role != ROLE_BRIDGE)
		return 0;
	port.bridge_ifindex = bridge.ifindex;
	memcpy(port.bridge_mac, known.bridge_mac, sizeof(port.bridge_mac));
	if (owner_set_gateway(objects, port.owner, port.bridge_ifindex, port.bridge_mac, err))
		return -1;
	return interface_write(objects, ifindex, &port, err);
}

/* A container's veth is in another bridge than it was added to, which may have the old one's name,
 * or the bridge has another MAC. One that is in no bridge is left as it is. */
static int follow_bridge(struct host *host, uint32_t ifindex, const struct interface *port,
			 void *context, struct cni_error *err)
{
	const struct conf conf = {.attach = port->attach_mode};
	struct pass pass = {.host = host, .conf = &conf};
	struct link bridge;

	if (port->role != ROLE_PORT)
		return 0;
	if (find_bridge(host, ifindex, &bridge, err))
		return -1;
	if (!bridge.ifindex)
		return 0;
	if (ensure_bridge(&pass, &bridge, err))
		return -1;
	return port_is_of(port, &bridge) ? 0 : write_port(host, ifindex, err);
}

/* The bridge of the container at hand. Where it is not as the entries say, that concerns other
 * containers too. */
static int attach_bridge(struct pass *pass, const struct host_veth *veth, struct cni_error *err)
{
	const struct objects *objects = &pass->host->datapath.objects;
	const struct address_list *addresses = &pass->host->addresses;
	const struct link *bridge = &veth->bridge;
	const struct addressed_interface *addressed;
	struct interface known, port;
	bool changed;

	if (!bridge->ifindex)
		return 0;
	if (!interface_read(objects, bridge->ifindex, &known))
		known = (struct interface){.role = ROLE_LEFT_ALONE};
	addressed = address_list_find(addresses, bridge->ifindex);
	if (addressed)
		pass->excluded[addressed - addresses->interfaces] = known.addresses_excluded;
	changed = known.role != ROLE_BRIDGE || !entry_has_mac(&known, bridge) ||
		  (interface_read(objects, veth->link.ifindex, &port) && port.role == ROLE_PORT &&
		   !port_is_of(&port, bridge));
	if (ensure_bridge(pass, bridge, err))
		return -1;
	return changed ? host_walk_interfaces(pass->host, follow_bridge, NULL, err) : 0;
}

int interfaces_attach(struct host *host, const struct conf *conf, const struct host_veth *veth,
		      bool repair, struct cni_error *err)
{
	cleanup_free bool *excluded = need(calloc(host->addresses.count + 1, sizeof(*excluded)));
	struct pass pass = {.host = host, .conf = conf, .repair = repair, .excluded = excluded};
	cleanup_free struct link_name *named = NULL;
	size_t count;

	for (size_t i = 0; i < host->addresses.count; i++) {
		const struct addressed_interface *addressed = &host->addresses.interfaces[i];

		if (addressed->ifindex != veth->link.ifindex &&
		    addressed->ifindex != veth->bridge.ifindex &&
		    classify(&pass, addressed->ifindex, NULL, addressed, err))
			return -1;
	}
	/* An uplink that "uplinks" names may have no address of its own (BGP unnumbered). */
	if (uplinks_list_named(host, conf, &named, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (!address_list_find(&host->addresses, named[i].ifindex) &&
		    classify(&pass, named[i].ifindex, named[i].name, NULL, err))
			return -1;
	if (attach_bridge(&pass, veth, err) ||
	    host_addresses_refresh(&host->datapath.objects, host->socket, &host->addresses,
				   excluded, err))
		return -1;
	/* Interfaces come and go together: where none came, none is looked for that went. */
	if (pass.grown)
		interfaces_sweep(host);
	return 0;
}

static int find_named(struct host *host, const char *name, struct link *link, struct cni_error *err)
{
	char why_not[WHY_NOT_SIZE];

	if (link_get(host->socket, 0, name, link, err))
		return -1;
	if (!uplink_is_possible(host, link, why_not))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "interface %s cannot be attached to: it %s", name, why_not);
	return 0;
}

int interfaces_check_named(struct host *host, const char *name, struct cni_error *err)
{
	struct link link;

	return find_named(host, name, &link, err);
}

int interfaces_attach_named(struct host *host, const char *name, struct cni_error *err)
{
	const struct conf defaults = {0};
	struct interface entry, *known;
	struct link link;

	if (find_named(host, name, &link, err))
		return -1;
	known = interface_read(&host->datapath.objects, link.ifindex, &entry) ? &entry : NULL;
	if (known && known->role != ROLE_LEFT_ALONE && !known->addresses_excluded &&
	    attach_is_settled(&host->datapath, link.ifindex, known))
		return 0;
	if (known)
		known->addresses_excluded = 0;
	return attach_link(host, &defaults, &link, known, err);
}

/* link->ifindex is 0 where there is nothing to verify or repair: the interface is gone, or its
 * entry has changed since it was read, or it is a container's by now, whose ADD is under way. */
static int get_link_if_unchanged(const struct host *host, uint32_t ifindex,
				 const struct interface *known, struct link *link,
				 struct cni_error *err)
{
	char why_not[WHY_NOT_SIZE];
	struct interface now;

	memset(link, 0, sizeof(*link));
	if (!interface_read(&host->datapath.objects, ifindex, &now) ||
	    !owner_is(now.owner, known->owner) || now.role != known->role)
		return 0;
	if (link_get(host->socket, ifindex, NULL, link, err))
		return -1;
	if (!interface_is_containers(known) && known->role != ROLE_LOOPBACK &&
	    !uplink_is_possible(host, link, why_not))
		memset(link, 0, sizeof(*link));
	return 0;
}

static int verify_interface(struct host *host, uint32_t ifindex, const struct interface *interface,
			    void *context, struct cni_error *err)
{
	char missing[MISSING_SIZE];
	struct link link;

	if (interface_is_containers(interface) ||
	    attach_verify(&host->datapath, ifindex, interface, missing))
		return 0;
	if (get_link_if_unchanged(host, ifindex, interface, &link, err))
		return -1;
	if (!link.ifindex)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "interface %s of the host: %s; the next ADD or `bpf-portmap attach`"
			     " repairs it",
			     link.name, missing);
}

int interfaces_verify(struct host *host, struct cni_error *err)
{
	return host_walk_interfaces(host, verify_interface, NULL, err);
}

static int repair_interface(struct host *host, uint32_t ifindex, const struct interface *interface,
			    void *context, struct cni_error *err)
{
	struct attach_target target = {.ifindex = ifindex, .interface = *interface};
	struct attach_undo ignored = {0};
	struct cni_error failure = {0};
	struct link link;

	if (follow_bridge(host, ifindex, interface, NULL, err))
		return -1;
	if (attach_is_settled(&host->datapath, ifindex, interface))
		return 0;
	if (get_link_if_unchanged(host, ifindex, interface, &link, err))
		return -1;
	if (!link.ifindex)
		return 0;
	target.name = link.name;
	if (attach_interface(&host->datapath, &target, &ignored, &failure))
		return host_failed_at(host, ifindex, &failure, err);
	host_report(host, link.name, "attached again");
	return 0;
}

int interfaces_repair(struct host *host, struct cni_error *err)
{
	return host_walk_interfaces(host, repair_interface, NULL, err);
}

/* Under the lock, for a container's ADD or DEL beside us may change the entry. */
static void forget(struct host *host, uint32_t ifindex, const struct link *link, const char *why)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_error struct cni_error ignored = {0};
	char what[WHY_NOT_SIZE + 16];
	struct interface now;
	cleanup_lock int lock = lock_take(&ignored);

	if (lock < 0 || !interface_read(objects, ifindex, &now) || interface_is_containers(&now))
		return;
	interface_delete(objects, ifindex);
	if (!link->ifindex)
		return;
	detach_all(ifindex, &now);
	/* A container's, whose ADD is under way: nothing of the host was left. */
	if (attach_is_container_veth(ifindex))
		return;
	snprintf(what, sizeof(what), "left: it %s", why);
	host_report(host, link->name, what);
}

/* A container's entry goes with its attachment. */
static int sweep_interface(struct host *host, uint32_t ifindex, const struct interface *interface,
			   void *context, struct cni_error *err)
{
	cleanup_error struct cni_error ignored = {0};
	char why_not[WHY_NOT_SIZE] = "is gone";
	struct link link;

	if (interface_is_containers(interface) ||
	    link_get(host->socket, ifindex, NULL, &link, &ignored))
		return 0;
	if (!link.ifindex ||
	    (interface->role != ROLE_LEFT_ALONE && interface->role != ROLE_LOOPBACK &&
	     !uplink_is_possible(host, &link, why_not)))
		forget(host, ifindex, &link, why_not);
	return 0;
}

void interfaces_sweep(struct host *host)
{
	cleanup_error struct cni_error ignored = {0};

	host_walk_interfaces(host, sweep_interface, NULL, &ignored);
}

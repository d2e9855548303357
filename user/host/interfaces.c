/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - which of the host's interfaces the programs must be at. */
#include "host/interfaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/cleanup.h"
#include "datapath/attach/attach.h"
#include "datapath/records/host_addresses.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "net/link_names.h"
#include "host/fast_path.h"
#include "host/run_before.h"
#include "host/uplinks.h"
#include "datapath/attach/attach_verify.h"

#define MANY_INTERFACES 8

static void fill_addresses(struct interface *interface, const struct addressed_interface *addressed)
{
	if (!addressed)
		return;
	memcpy(interface->address4, addressed->address4, sizeof(interface->address4));
	memcpy(interface->address6, addressed->address6, sizeof(interface->address6));
}

/* Under the lock: a container's ADD beside us may have found that it is its own veth, and
 * replaced what we attached or taken it back with its own. Then there is nothing to write. */
static int write_attached(struct host *host, const struct interface *interface, uint32_t ifindex,
			  struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);
	struct interface now;

	if (lock < 0)
		return -1;
	if (!attach_is_settled(&host->datapath, ifindex, interface) ||
	    attach_is_container_veth(ifindex) ||
	    (interface_read(&host->datapath.objects, ifindex, &now) &&
	     interface_is_containers(&now)))
		return 0;
	return interface_write(&host->datapath.objects, ifindex, interface, err);
}

static int attach_and_write(struct host *host, const struct attach_target *target,
			    const struct link *link, const struct interface *known,
			    struct cni_error *err)
{
	struct interface interface = target->interface;
	struct attach_undo ignored = {0};

	if (attach_interface(&host->datapath, host->socket, target, &ignored, err))
		return -1;
	run_before_warn(host, link->ifindex, &interface, false);
	fill_addresses(&interface, address_list_find(&host->addresses, link->ifindex));
	if (target->interface.role == ROLE_BRIDGE)
		memcpy(interface.bridge_mac, link->mac, sizeof(interface.bridge_mac));
	if (known)
		interface.addresses_excluded = known->addresses_excluded;
	interface.without_fast_path =
		fast_path_is_barred_at_uplink(host, link->ifindex, &interface);
	return write_attached(host, &interface, link->ifindex, err);
}

static bool link_is_gone(struct host *host, uint32_t ifindex)
{
	struct cni_error ignored = {0};
	struct link link;
	bool gone = !link_get(host->socket, ifindex, NULL, &link, &ignored) && !link.ifindex;

	cni_error_release(&ignored);
	return gone;
}

/* One that went away meanwhile is nobody's problem. */
static int attach_link(struct host *host, const struct conf *conf, const struct link *link,
		       const struct interface *known, struct cni_error *err)
{
	struct attach_target target;
	struct cni_error failure = {0};
	char why_not[WHY_NOT_SIZE];

	if (!uplink_is_possible(host, link, why_not))
		return 0;
	uplink_target(conf, link, &target);
	if (!attach_and_write(host, &target, link, known, &failure)) {
		host_report(host, link->name,
			    known && known->role != ROLE_EXCLUDED ? "attached again" : "attached");
		return 0;
	}
	if (link_is_gone(host, link->ifindex)) {
		cni_error_release(&failure);
		return 0;
	}
	*err = failure;
	return -1;
}

static int refresh_addresses(struct host *host, const struct addressed_interface *addressed,
			     struct interface *interface, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct interface before = *interface;
	cleanup_lock int lock = -1;

	fill_addresses(interface, addressed);
	if (!memcmp(&before, interface, sizeof(before)))
		return 0;
	/* A container's ADD or DEL beside us may change the entry. */
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	if (!interface_read(objects, addressed->ifindex, interface) ||
	    interface_is_containers(interface))
		return 0;
	fill_addresses(interface, addressed);
	return interface_write(objects, addressed->ifindex, interface, err);
}

/* A look at each of very many would cost ADD more than it may. */
static int refresh(struct host *host, const struct addressed_interface *addressed,
		   struct interface *known, struct cni_error *err)
{
	if (refresh_addresses(host, addressed, known, err))
		return -1;
	return host->addresses.count > MANY_INTERFACES
		       ? 0
		       : fast_path_refresh_uplink(host, addressed->ifindex, known, err);
}

/* Neither an uplink nor unseen: from_container lets containers out there as they are. What
 * could be no uplink anyway remains unseen. */
static int leave_alone(struct host *host, const struct link *link, struct cni_error *err)
{
	struct interface interface = {.role = ROLE_EXCLUDED};
	char why_not[WHY_NOT_SIZE];

	if (!uplink_is_possible(host, link, why_not))
		return 0;
	return interface_write_new(&host->datapath.objects, link->ifindex, &interface, err);
}

/* Whatever it is otherwise, none of its addresses is mapped. */
static int exclude(struct host *host, const struct link *link, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct interface interface;
	cleanup_lock int lock = lock_take(err);

	if (lock < 0)
		return -1;
	if (!interface_read(objects, link->ifindex, &interface))
		interface = (struct interface){.role = ROLE_EXCLUDED};
	if (interface_is_containers(&interface))
		return 0;
	interface.addresses_excluded = 1;
	host_report(host, link->name, "excluded");
	return interface_write(objects, link->ifindex, &interface, err);
}
static int take_step(struct host *host, const struct conf *conf, uint32_t ifindex, enum step step,
		     const struct interface *known, struct cni_error *err)
{
	struct link link;

	if (link_get(host->socket, ifindex, NULL, &link, err))
		return -1;
	if (!link.ifindex)
		return 0;
	switch (step) {
	case STEP_LEAVE_ALONE:
		return leave_alone(host, &link, err);
	case STEP_EXCLUDE:
		return exclude(host, &link, err);
	default:
		return attach_link(host, conf, &link, known, err);
	}
}

static bool is_settled(const struct host *host, uint32_t ifindex, const struct interface *known)
{
	return attach_is_settled(&host->datapath, ifindex, known);
}
static int attach_addressed(struct host *host, const struct conf *conf,
			    struct addressed_interface *addressed, bool repair, bool *grown,
			    struct cni_error *err)
{
	uint32_t ifindex = addressed->ifindex;
	struct interface entry, *known = NULL;
	char name[IF_NAMESIZE];
	enum step step;

	if (interface_read(&host->datapath.objects, ifindex, &entry))
		known = &entry;
	if ((known && interface_is_containers(known)) || !link_name(host->socket, ifindex, name))
		return 0;
	step = uplink_step(uplink_wish(conf, name), known, addressed->is_reachable);
	if (known && step == STEP_ATTACH)
		known->addresses_excluded = 0;
	addressed->is_excluded = step == STEP_EXCLUDE || (known && known->addresses_excluded);
	if (step == STEP_KEEP && known && repair && !is_settled(host, ifindex, known))
		step = STEP_ATTACH;
	if (step == STEP_KEEP)
		return known ? refresh(host, addressed, known, err) : 0;
	*grown = true;
	return take_step(host, conf, ifindex, step, known, err);
}

/* An uplink that "uplinks" names may have no address of its own (BGP unnumbered). */
static int attach_named(struct host *host, const struct conf *conf, const struct link_name *link,
			bool repair, struct cni_error *err)
{
	struct interface entry, *known = NULL;
	enum step step;

	if (uplink_wish(conf, link->name) != WISH_NAMED ||
	    address_list_find(&host->addresses, link->ifindex))
		return 0;
	if (interface_read(&host->datapath.objects, link->ifindex, &entry))
		known = &entry;
	if (known && interface_is_containers(known))
		return 0;
	step = uplink_step(WISH_NAMED, known, false);
	if (step == STEP_KEEP && repair && !is_settled(host, link->ifindex, known))
		step = STEP_ATTACH;
	if (step == STEP_ATTACH)
		return take_step(host, conf, link->ifindex, step, known, err);
	return known ? fast_path_refresh_uplink(host, link->ifindex, known, err) : 0;
}

/* All interfaces are listed only where somebody asks for what they are called. */
static int list_candidates(struct host *host, const struct interface_names *names,
			   struct link_name **links, size_t *count, struct cni_error *err)
{
	for (size_t i = 0; i < names->count; i++)
		if (conf_is_glob(names->patterns[i]))
			return link_names_read(host->socket, links, count, err);
	*links = calloc(names->count, sizeof(**links));
	if (!*links)
		return cni_error_no_memory(err);
	for (*count = 0; *count < names->count; (*count)++) {
		struct link_name *link = &(*links)[*count];

		link->ifindex = link_index(names->patterns[*count]);
		snprintf(link->name, sizeof(link->name), "%s", names->patterns[*count]);
	}
	return 0;
}

static int attach_unnumbered(struct host *host, const struct conf *conf, bool repair,
			     struct cni_error *err)
{
	cleanup_free struct link_name *links = NULL;
	size_t count;

	if (!conf->uplinks.count)
		return 0;
	if (list_candidates(host, &conf->uplinks, &links, &count, err))
		return -1;
	for (size_t i = 0; i < count; i++)
		if (links[i].ifindex && attach_named(host, conf, &links[i], repair, err))
			return -1;
	return 0;
}

struct mac_change {
	const struct objects *objects;
	const struct link *bridge;
};

static bool change_port(const void *key, const void *value, void *context)
{
	const struct mac_change *change = context;
	struct interface interface;
	struct cni_error ignored = {0};

	memcpy(&interface, value, sizeof(interface));
	if (interface.role != ROLE_PORT || interface.bridge_ifindex != change->bridge->ifindex)
		return true;
	memcpy(interface.bridge_mac, change->bridge->mac, sizeof(interface.bridge_mac));
	if (interface_write(change->objects, *(const uint32_t *)key, &interface, &ignored))
		cni_error_release(&ignored);
	return true;
}

/* A bridge without a MAC of its own takes the lowest of its ports', which change. */
static int follow_bridge_mac(struct host *host, const struct link *bridge,
			     const struct interface *known, struct cni_error *err)
{
	struct link again;
	struct mac_change change = {&host->datapath.objects, &again};
	cleanup_lock int lock = -1;
	struct interface now;

	if (!memcmp(known->bridge_mac, bridge->mac, sizeof(known->bridge_mac)))
		return 0;
	/* What others know better meanwhile, or have removed, must not be written again. */
	lock = lock_take(err);
	if (lock < 0 || link_get(host->socket, bridge->ifindex, NULL, &again, err))
		return -1;
	if (!again.ifindex || !interface_read(change.objects, bridge->ifindex, &now) ||
	    now.role != ROLE_BRIDGE)
		return 0;
	memcpy(now.bridge_mac, again.mac, sizeof(now.bridge_mac));
	if (interface_write(change.objects, bridge->ifindex, &now, err))
		return -1;
	maps_walk(change.objects->maps[MAP_INTERFACES], sizeof(uint32_t), sizeof(struct interface),
		  change_port, &change);
	return 0;
}

static void mark_excluded(struct host *host, uint32_t ifindex)
{
	for (size_t i = 0; i < host->addresses.count; i++)
		if (host->addresses.interfaces[i].ifindex == ifindex)
			host->addresses.interfaces[i].is_excluded = true;
}

static int attach_bridge(struct host *host, const struct conf *conf, const struct link *bridge,
			 bool repair, struct cni_error *err)
{
	struct interface entry, *known = NULL;

	if (!bridge->ifindex)
		return 0;
	if (interface_read(&host->datapath.objects, bridge->ifindex, &entry))
		known = &entry;
	if (known && known->addresses_excluded)
		mark_excluded(host, bridge->ifindex);
	if (known && known->role == ROLE_BRIDGE &&
	    (!repair || is_settled(host, bridge->ifindex, known)))
		return follow_bridge_mac(host, bridge, known, err);
	return attach_link(host, conf, bridge, known, err);
}

int interfaces_attach(struct host *host, const struct conf *conf, const struct host_veth *veth,
		      bool repair, struct cni_error *err)
{
	bool grown = false;

	for (size_t i = 0; i < host->addresses.count; i++) {
		struct addressed_interface *addressed = &host->addresses.interfaces[i];

		if (addressed->ifindex == veth->link.ifindex ||
		    addressed->ifindex == veth->bridge.ifindex)
			continue;
		if (attach_addressed(host, conf, addressed, repair, &grown, err))
			return -1;
	}
	if (attach_unnumbered(host, conf, repair, err) ||
	    attach_bridge(host, conf, &veth->bridge, repair, err) ||
	    host_addresses_refresh(&host->datapath.objects, host->socket, &host->addresses, err))
		return -1;
	/* Interfaces come and go together; when nothing comes, nothing is looked for. */
	if (grown)
		interfaces_sweep(host);
	return 0;
}

static int attach_anyway(struct host *host, const struct link *link, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct conf none = {0};
	struct interface known;

	if (!interface_read(objects, link->ifindex, &known))
		return attach_link(host, &none, link, NULL, err);
	if (known.role != ROLE_EXCLUDED && !known.addresses_excluded &&
	    is_settled(host, link->ifindex, &known))
		return 0;
	known.addresses_excluded = 0;
	return attach_link(host, &none, link, &known, err);
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
	struct link link;

	return find_named(host, name, &link, err) ? -1 : attach_anyway(host, &link, err);
}

int interfaces_refresh_addresses(struct host *host, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;

	host_addresses_mark_excluded(objects, &host->addresses);
	return host_addresses_refresh(objects, host->socket, &host->addresses, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - which of the host's interfaces the programs must be at. */
#include "plugin/interfaces.h"

#include <string.h>

#include "datapath/attach.h"
#include "datapath/lock.h"
#include "datapath/maps.h"

static bool belongs_to_container(const struct interface *interface)
{
	return interface->owner.slot != 0;
}

/* The option `attach` decides about containers; for the host's interfaces it is a wish,
 * as one container's list must not fail because of what is on them. */
static enum attach_way choose_way(const struct conf *conf, const struct link *link)
{
	/* A veth may come and go with a container that this plugin never sees. */
	if (conf->attach == ATTACH_CLSACT || link_is_kind(link, "veth"))
		return ATTACH_WAY_CLSACT;
	return ATTACH_WAY_TCX;
}

/* False: not one to attach to. */
static bool classify(struct host *host, const struct conf *conf, const struct link *link,
		     struct attach_target *target)
{
	struct cni_error ignored = {0};
	struct link master = {0};

	if (!link->ifindex || (link->flags & (IFF_LOOPBACK | IFF_SLAVE)))
		return false;
	/* The programs would look for the IP header in the wrong place. Not classified means
	 * that from_container lets nothing masqueraded out there. */
	if (link->header == LINK_HEADER_OTHER)
		return false;
	if (link->master && link_get(host->socket, link->master, NULL, &master, &ignored))
		cni_error_release(&ignored);
	if (link_is_kind(&master, "bridge"))
		return false;
	/* A ptp container's, whose own ADD is under way or whose DEL has begun. */
	if (link_is_kind(link, "veth") && attach_is_container_veth(link->ifindex))
		return false;
	*target = (struct attach_target){
		.ifindex = link->ifindex,
		.name = link->name,
		.interface.role = link_is_kind(link, "bridge") ? ROLE_BRIDGE : ROLE_UPLINK,
		.interface.without_link_header = link->header == LINK_HEADER_NONE,
		.way = choose_way(conf, link),
		.mode = ATTACH_AUTO,
	};
	return true;
}

static void fill_addresses(struct interface *interface, const struct addressed_interface *addressed)
{
	if (!addressed)
		return;
	memcpy(interface->address4, addressed->address4, sizeof(interface->address4));
	memcpy(interface->address6, addressed->address6, sizeof(interface->address6));
}

/* Whether a new entry replaces an older one is for the caller: a container's ADD, which
 * runs beside us, may have written its own meanwhile. */
static int attach_and_write(struct host *host, const struct attach_target *target,
			    const struct link *link, bool replace, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct interface interface = target->interface;
	struct attach_undo ignored = {0};

	if (attach_interface(&host->datapath, host->socket, target, &ignored, err))
		return -1;
	/* It has become one meanwhile. */
	if (attach_is_container_veth(link->ifindex))
		return 0;
	fill_addresses(&interface, address_list_find(&host->addresses, link->ifindex));
	if (target->interface.role == ROLE_BRIDGE)
		memcpy(interface.bridge_mac, link->mac, sizeof(interface.bridge_mac));
	if (replace)
		return interface_write(objects, link->ifindex, &interface, err);
	return interface_write_new(objects, link->ifindex, &interface, err);
}

/* One that went away meanwhile is nobody's problem. */
static int attach_link(struct host *host, const struct conf *conf, const struct link *link,
		       bool replace, struct cni_error *err)
{
	struct attach_target target;
	struct cni_error failure = {0};
	struct link again;

	if (!classify(host, conf, link, &target) ||
	    !attach_and_write(host, &target, link, replace, &failure))
		return 0;
	if (!link_get(host->socket, link->ifindex, NULL, &again, &failure) && !again.ifindex) {
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
	    belongs_to_container(interface))
		return 0;
	fill_addresses(interface, addressed);
	return interface_write(objects, addressed->ifindex, interface, err);
}

static int attach_addressed(struct host *host, const struct conf *conf,
			    const struct addressed_interface *addressed, bool repair, bool *grown,
			    struct cni_error *err)
{
	struct interface known;
	struct link link;
	bool is_known = interface_read(&host->datapath.objects, addressed->ifindex, &known);

	if (is_known && belongs_to_container(&known))
		return 0;
	if (is_known && (!repair || attach_is_settled(&host->datapath, addressed->ifindex, &known)))
		return refresh_addresses(host, addressed, &known, err);
	*grown = true;
	if (link_get(host->socket, addressed->ifindex, NULL, &link, err))
		return -1;
	return attach_link(host, conf, &link, is_known, err);
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
static int follow_bridge_mac(struct host *host, const struct link *bridge, struct interface *known,
			     struct cni_error *err)
{
	struct mac_change change = {&host->datapath.objects, bridge};
	cleanup_lock int lock = -1;

	if (!memcmp(known->bridge_mac, bridge->mac, sizeof(known->bridge_mac)))
		return 0;
	/* What a DEL removes meanwhile must not be written again. */
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	memcpy(known->bridge_mac, bridge->mac, sizeof(known->bridge_mac));
	if (interface_write(change.objects, bridge->ifindex, known, err))
		return -1;
	maps_walk(change.objects->maps[MAP_INTERFACES], sizeof(uint32_t), sizeof(struct interface),
		  change_port, &change);
	return 0;
}

static int attach_bridge(struct host *host, const struct conf *conf, const struct link *bridge,
			 bool repair, struct cni_error *err)
{
	struct interface known;
	bool is_known;

	if (!bridge->ifindex)
		return 0;
	is_known = interface_read(&host->datapath.objects, bridge->ifindex, &known);
	if (is_known && (!repair || attach_is_settled(&host->datapath, bridge->ifindex, &known)))
		return follow_bridge_mac(host, bridge, &known, err);
	return attach_link(host, conf, bridge, is_known, err);
}

int interfaces_attach(struct host *host, const struct conf *conf, const struct host_veth *veth,
		      bool repair, struct cni_error *err)
{
	bool grown = false;

	for (size_t i = 0; i < host->addresses.count; i++) {
		const struct addressed_interface *addressed = &host->addresses.interfaces[i];

		if (addressed->ifindex == veth->link.ifindex ||
		    addressed->ifindex == veth->bridge.ifindex)
			continue;
		if (attach_addressed(host, conf, addressed, repair, &grown, err))
			return -1;
	}
	if (attach_bridge(host, conf, &veth->bridge, repair, err))
		return -1;
	/* Interfaces come and go together; when nothing comes, nothing is looked for. */
	if (grown)
		interfaces_sweep(host);
	return 0;
}

struct survey {
	struct host *host;
	struct cni_error *err;
	int result;
};

static bool verify_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct survey *survey = context;
	uint32_t ifindex = *(const uint32_t *)key;
	char missing[256];
	struct link link;

	if (belongs_to_container(interface) ||
	    attach_verify(&survey->host->datapath, ifindex, interface, missing, sizeof(missing)))
		return true;
	if (!link_get(survey->host->socket, ifindex, NULL, &link, survey->err) && !link.ifindex)
		return true;
	survey->result = cni_error_set(survey->err, CNI_ERROR_KERNEL_REFUSED,
				       "interface %s of the host: %s; the next ADD repairs it",
				       link.name, missing);
	return false;
}

int interfaces_verify(struct host *host, struct cni_error *err)
{
	struct survey survey = {.host = host, .err = err};

	if (maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		      sizeof(struct interface), verify_interface, &survey))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot read the map interfaces");
	return survey.result;
}

static bool sweep_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct host *host = context;
	uint32_t ifindex = *(const uint32_t *)key;
	struct cni_error ignored = {0};
	struct link link;

	/* A container's goes with its attachment. */
	if (belongs_to_container(interface))
		return true;
	if (link_get(host->socket, ifindex, NULL, &link, &ignored))
		cni_error_release(&ignored);
	else if (!link.ifindex)
		interface_delete(&host->datapath.objects, ifindex);
	return true;
}

void interfaces_sweep(struct host *host)
{
	maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		  sizeof(struct interface), sweep_interface, host);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - the host's interfaces, as the living networks want them: a look at the host, its
 * plan, and the changes. */
#include "host/interfaces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/attach/hooks.h"
#include "datapath/records/attachment.h"
#include "datapath/records/networks.h"
#include "datapath/records/attachments.h"
#include "lib/memory.h"
#include "lib/error.h"
#include "lib/text.h"
#include "net/host_settings.h"
#include "plan/hooks.h"
#include "plan/uplinks.h"

/* For more interfaces the kernel is asked once about the qdiscs of all that there are. */
#define MANY_INTERFACES 8

/* The kernel takes a veth out of the map veths when it goes. Then its entry is there until its
 * container is removed, and another interface may have its number. */
static bool is_entry_of_another(const struct objects *objects, uint32_t ifindex,
				const struct interface *entry)
{
	uint32_t veth;

	return interface_is_containers(entry) &&
	       (!map_read(objects, MAP_VETHS, &entry->owner.slot, &veth) || veth != ifindex);
}

static struct interface_look *append_interface(struct host_look *looking, uint32_t ifindex)
{
	const struct objects *objects = &looking->host->datapath.objects;
	struct look *look = &looking->found;
	struct interface_look *interface = ARRAY_ADD(look->interfaces, look->count);

	*interface = (struct interface_look){.link.ifindex = ifindex};
	interface->is_known = interface_read(objects, ifindex, &interface->entry);
	if (is_entry_of_another(objects, ifindex, &interface->entry)) {
		interface->is_known = false;
		interface->entry = (struct interface){0};
	}
	return interface;
}

static struct interface_look *find_or_append(struct host_look *looking, uint32_t ifindex)
{
	struct look *look = &looking->found;

	for (size_t i = 0; i < look->count; i++)
		if (look->interfaces[i].link.ifindex == ifindex)
			return &look->interfaces[i];
	return append_interface(looking, ifindex);
}

/* What the map has for the container's network is replaced by what its conflist says. */
static int look_at_networks(struct host_look *looking, struct cni_error *err)
{
	const struct container *container = looking->at->container;
	struct known_networks *known = &looking->networks;
	const char *own = container ? container->network : "";
	struct look *look = &looking->found;

	if (networks_read(known, &looking->host->datapath, err))
		return -1;
	if (container)
		networks_add(known, own, &container->conf, container->veth.link.ifindex);
	for_each (one, known->list, known->count)
		if (!one->is_dead && strcmp(one->key.name, own) != 0)
			*ARRAY_ADD(look->networks, look->network_count) = (struct network_wish){
				.name = one->key.name,
				.number = one->network.number,
				.uplinks = one->network.uplinks,
				.excluded_interfaces = one->network.excluded_interfaces,
				.attach = one->network.attach,
			};
	if (container)
		*ARRAY_ADD(look->networks, look->network_count) = (struct network_wish){
			.name = own,
			.is_of_request = true,
			.number = known->network.number,
			.uplinks = container->conf.uplinks,
			.excluded_interfaces = container->conf.excluded_interfaces,
			.attach = container->conf.attach,
		};
	return 0;
}

static bool is_named(const struct look *look, const char *interface)
{
	for (size_t i = 0; i < look->network_count; i++)
		if (uplink_wish(&look->networks[i], interface) == WISH_NAMED)
			return true;
	return false;
}

/* An uplink that "uplinks" names may have no address of its own (BGP unnumbered). All interfaces
 * are listed only where there is a glob. */
static int add_named(struct host_look *looking, struct cni_error *err)
{
	const struct look *look = &looking->found;
	struct link_names links = {0};
	bool has_glob = false;
	int result = 0;

	for (size_t i = 0; i < look->network_count; i++)
		for_each_name (name, look->networks[i].uplinks) {
			uint32_t ifindex = conf_is_glob(name) ? 0 : if_nametoindex(name);

			has_glob |= conf_is_glob(name);
			if (ifindex)
				find_or_append(looking, ifindex);
		}
	if (has_glob)
		result = link_names_read(&links, err);
	for (size_t i = 0; i < links.count; i++)
		if (is_named(look, links.list[i].name))
			find_or_append(looking, links.list[i].ifindex);
	free(links.list);
	return result;
}

static int add_entries(struct host_look *looking, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = &looking->host->datapath.objects,
					     .map = MAP_INTERFACES};

	while (map_next(&walk, err))
		find_or_append(looking, *(const uint32_t *)walk.key);
	return walk.failed ? -1 : 0;
}

static void add_by_administrator(struct host_look *looking)
{
	for (char *const *name = looking->at->named; name && *name; name++) {
		struct interface_look *interface;
		uint32_t ifindex = if_nametoindex(*name);

		if (!ifindex)
			continue;
		interface = find_or_append(looking, ifindex);
		interface->is_named_now = true;
	}
}

static int add_all(struct host_look *looking, struct cni_error *err)
{
	const struct address_list *addresses = &looking->host->addresses;
	const struct container *container = looking->at->container;

	for (size_t i = 0; i < addresses->count; i++)
		append_interface(looking, addresses->interfaces[i].ifindex)->addressed =
			&addresses->interfaces[i];
	if (add_named(looking, err))
		return -1;
	add_by_administrator(looking);
	if (container) {
		find_or_append(looking, container->veth.link.ifindex);
		if (container->veth.bridge.ifindex)
			find_or_append(looking, container->veth.bridge.ifindex);
	}
	return looking->at->entries ? add_entries(looking, err) : 0;
}

static int read_link(struct interface_look *interface, struct cni_error *err)
{
	uint32_t ifindex = interface->link.ifindex;

	if (link_read(ifindex, &interface->link, err))
		return -1;
	interface->is_read = true;
	interface->is_gone = !interface->link.ifindex;
	interface->link.ifindex = ifindex;
	if (interface->is_gone)
		return 0;
	if (!interface_is_containers(&interface->entry))
		interface->bridge_behind = link_bridge_behind(&interface->link);
	return link_read(interface->link.master, &interface->master, err);
}

/* The container's own, which its ADD has read already. */
static bool take_link(const struct host_look *looking, struct interface_look *interface)
{
	const struct container *container = looking->at->container;

	if (!container)
		return false;
	if (interface->link.ifindex == container->veth.link.ifindex) {
		interface->link = container->veth.link;
		interface->master = container->veth.bridge;
	} else if (interface->link.ifindex == container->veth.bridge.ifindex) {
		interface->link = container->veth.bridge;
		if (interface->link.master)
			return false;
	} else {
		return false;
	}
	interface->is_read = true;
	return true;
}

/* Of what we know already the name is enough, unless all is looked at. */
static int look_at_link(const struct host_look *looking, struct interface_look *interface,
			struct cni_error *err)
{
	bool is_known = interface->is_known && (interface_is_served(&interface->entry) ||
						interface->entry.role == ROLE_LEFT_ALONE);

	if (take_link(looking, interface))
		return 0;
	if (interface_is_containers(&interface->entry) && !looking->at->veths)
		return 0;
	if (!is_known || looking->at->entries)
		return read_link(interface, err);
	interface->is_gone = !link_name(interface->link.ifindex, interface->link.name);
	return 0;
}

static enum ingress_qdisc find_qdisc(const struct host_look *looking, uint32_t ifindex)
{
	if (!looking->knows_qdiscs)
		return qdisc_at_ingress(ifindex);
	for (size_t i = 0; i < looking->qdiscs.count; i++)
		if (looking->qdiscs.list[i].ifindex == ifindex)
			return looking->qdiscs.list[i].qdisc;
	return INGRESS_QDISC_NONE;
}

static void look_at_hooks(const struct host_look *looking, struct interface_look *interface)
{
	const struct container *container = looking->at->container;
	bool is_own = container && interface->link.ifindex == container->veth.link.ifindex;

	if (interface->is_gone ||
	    (interface_is_containers(&interface->entry) && !is_own && !looking->at->veth_hooks))
		return;
	if (interface->entry.role == ROLE_LEFT_ALONE &&
	    !uplink_decide(&looking->found, interface).is_uplink)
		return;
	hooks_look(&interface->hooks, interface->link.ifindex,
		   find_qdisc(looking, interface->link.ifindex), &looking->host->datapath.objects);
	interface->has_hooks = true;
}

static int look_at_interfaces(struct host_look *looking, struct cni_error *err)
{
	struct look *look = &looking->found;

	if (look->count > MANY_INTERFACES)
		looking->knows_qdiscs = qdiscs_at_ingress(&looking->qdiscs);
	for (size_t i = 0; i < look->count; i++) {
		if (look_at_link(looking, &look->interfaces[i], err))
			return -1;
		look_at_hooks(looking, &look->interfaces[i]);
	}
	return 0;
}

static void look_at_container(struct host_look *looking)
{
	const struct container *container = looking->at->container;
	struct look *look = &looking->found;

	look->veth = container->veth;
	look->conf = &container->conf;
	look->adds = looking->at->adds;
}

/* Works with the addresses that the host has read. Release the look also after a failure.
 * CNI_ERROR_IO, CNI_ERROR_KERNEL_REFUSED. */
static int host_look(struct host_look *looking, struct host *host, const struct look_at *at,
		     struct cni_error *err)
{
	struct look *look = &looking->found;

	*looking = (struct host_look){.found = {.addresses = &host->addresses,
						.program_ids = host->datapath.objects.program_ids,
						.is_whole = at->entries},
				      .host = host,
				      .at = at};
	if (at->container)
		look_at_container(looking);
	look->has_ipsec_policies = forwarding_has_ipsec_policies();
	look->programs_see_qdiscs = host->datapath.sees_devices;
	if (look_at_networks(looking, err))
		return -1;
	if (looking->networks.has_news && at->stops_at_news)
		return 0;
	return add_all(looking, err) ? -1 : look_at_interfaces(looking, err);
}

void host_look_release(struct host_look *result)
{
	struct look *look = &result->found;

	for (size_t i = 0; i < look->count; i++)
		hooks_look_release(&look->interfaces[i].hooks);
	free(look->interfaces);
	free(look->networks);
	networks_release(&result->networks);
	free(result->qdiscs.list);
	*result = (struct host_look){0};
}

void plan_warn(const struct plan *plan)
{
	for (size_t i = 0; i < plan->warning_count; i++)
		warning("%s", plan->warnings[i]);
}

int host_plan(struct host_look *look, struct plan *plan, struct host *host,
	      const struct look_at *at, struct cni_error *err)
{
	return host_look(look, host, at, err) || plan_make(plan, &look->found, err) ? -1 : 0;
}

int interface_forget(const struct objects *objects, uint32_t ifindex, struct cni_error *err)
{
	struct meta meta;

	if (map_delete(objects, MAP_INTERFACES, &ifindex, err))
		return -1;
	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	meta.interfaces_forgotten++;
	return meta_write(objects, &meta, err);
}

/* Programs first, the entry last: until it is right, a run that looks makes the same change. */
static int make_change(struct host *host, const struct change *change, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	const struct interface *entry = &change->entry;
	struct attach_undo ignored = {0};

	if (attach_apply(&host->datapath, &change->at, &change->hooks, &ignored, err))
		return -1;
	if (change->kind == CHANGE_FORGET)
		return interface_forget(objects, change->at.ifindex, err);
	if (!change->writes_entry)
		return 0;
	if (entry->role == ROLE_PORT &&
	    owner_set_gateway(objects, entry->owner, entry->bridge_ifindex, entry->bridge_mac, err))
		return -1;
	return interface_write(objects, change->at.ifindex, entry, err);
}

static int make_changes(struct host *host, const struct plan *plan, struct cni_error *err)
{
	int result = 0;

	for_each (change, plan->changes, plan->count) {
		struct cni_error failure = {0};
		char name[IF_NAMESIZE];

		if (!make_change(host, change, &failure)) {
			if (*change->what)
				host_report(host, change->at.name, change->what);
		} else if (!link_name(change->at.ifindex, name)) {
			cni_error_release(&failure);
		} else {
			result = cni_error_chain(err, &failure);
		}
	}
	return result;
}

static int apply_plan(struct host *host, const struct host_look *look, const struct plan *plan,
		      struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	struct cni_error failure = {0};
	int result = make_changes(host, plan, err);

	if (networks_settle(&look->networks, objects, &failure))
		result = cni_error_chain(err, &failure);
	if (host_addresses_write(objects, &host->addresses, plan->excluded, &failure))
		result = cni_error_chain(err, &failure);
	return result;
}

/* Whether the bridge of the container at hand is another one than its containers know. */
static bool bridge_is_new(const struct host *host, const struct link *bridge)
{
	struct interface known;

	return bridge->ifindex &&
	       (!interface_read(&host->datapath.objects, bridge->ifindex, &known) ||
		known.role != ROLE_BRIDGE ||
		memcmp(known.bridge_mac, bridge->mac, LINK_MAC_SIZE) != 0);
}

int plan_refuse_damage(const struct plan *plan, struct cni_error *err)
{
	const struct change *damage = plan_find_damage(plan);

	if (!damage)
		return 0;
	if (interface_is_containers(&damage->entry))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the host's end %s of the container's veth: %s",
				     damage->at.name, damage->missing);
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "interface %s of the host: %s; the next ADD or `bpf-portmap repair`"
			     " repairs it",
			     damage->at.name, damage->missing);
}

static void keep_interfaces(struct host *host, const struct look *look, const struct plan *plan)
{
	host->interfaces = or_exit(calloc(host->addresses.count + 1, sizeof(*host->interfaces)));
	for (size_t i = 0; i < look->count; i++) {
		const struct addressed_interface *addressed = look->interfaces[i].addressed;
		size_t place = addressed ? (size_t)(addressed - host->addresses.interfaces)
					 : host->addresses.count;
		struct host_interface *kept = &host->interfaces[place];

		kept->excluded = plan->excluded[place];
		kept->served = plan->served[place];
		memcpy(kept->name, look->interfaces[i].link.name, sizeof(kept->name));
	}
}

static int settle_locked(struct host *host, const struct look_at *at, struct plan *plan,
			 struct cni_error *err)
{
	cleanup_look struct host_look look = {0};
	cleanup_lock int lock = lock_take_claims(err);

	/* The look before the lock may be older than what another process has done meanwhile. */
	if (lock < 0 || address_list_read(&host->addresses, err) ||
	    host_plan(&look, plan, host, at, err) ||
	    (at->refuses_damage && plan_refuse_damage(plan, err)))
		return -1;
	keep_interfaces(host, &look.found, plan);
	return apply_plan(host, &look, plan, err);
}

int host_settle(struct host *host, const struct look_at *at, struct plan *plan,
		struct cni_error *err)
{
	cleanup_look struct host_look look = {0};
	struct look_at first = *at, whole = *at;

	first.stops_at_news = true;
	free(TAKE(host->interfaces));
	if (host_look(&look, host, &first, err))
		return -1;
	if (!look.networks.has_news) {
		if (plan_make(plan, &look.found, err) ||
		    (at->refuses_damage && plan_refuse_damage(plan, err)))
			return -1;
		if (!plan->count && host_addresses_are_written(&host->datapath.objects,
							       &host->addresses, plan->excluded)) {
			keep_interfaces(host, &look.found, plan);
			return 0;
		}
		plan_release(plan);
	}
	whole.entries = true;
	whole.veths |= at->container && bridge_is_new(host, &at->container->veth.bridge);
	return settle_locked(host, &whole, plan, err);
}

int hooks_settle(const struct datapath *datapath, const struct link_name *at,
		 const struct interface *entry, struct cni_error *err)
{
	struct hooks_look hooks;
	const struct hooks_wanted wanted = {&hooks, datapath->objects.program_ids, entry, at->name};
	struct attach_undo ignored = {0};
	struct hook_changes changes;
	char missing[MISSING_SIZE];
	int result;

	hooks_look(&hooks, at->ifindex, qdisc_at_ingress(at->ifindex), &datapath->objects);
	result = plan_hooks(&changes, &wanted, missing, err) ||
		 attach_apply(datapath, at, &changes, &ignored, err);
	hooks_look_release(&hooks);
	return result ? -1 : 0;
}

int container_prepare(struct container *container, struct host *host, struct plan *plan,
		      struct cni_error *err)
{
	const struct look_at at = {.container = container, .adds = true};
	struct attachment_claims *claims = &container->claims;
	const struct host_veth *veth = &container->veth;

	if (container_find_veth(container, err) ||
	    host_make_ready(host, container->conf.flow_entries, err) ||
	    attachment_open_maps(&host->datapath.objects, err) || host_settle(host, &at, plan, err))
		return -1;
	claims->ifindex = veth->link.ifindex;
	claims->interface = plan->veth;
	claims->fast_path = plan->fast_path;
	claims->netns_id = veth->link.peer_netns_id;
	memcpy(claims->host_mac, veth->link.mac, LINK_MAC_SIZE);
	memcpy(claims->container_mac, veth->container_mac, LINK_MAC_SIZE);
	if (veth->bridge.ifindex)
		memcpy(claims->bridge_entry_mac, veth->container_mac, LINK_MAC_SIZE);
	return 0;
}

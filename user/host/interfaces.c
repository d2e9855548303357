/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces.c - the host's interfaces, as the living networks want them. */
#include "host/interfaces.h"

#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/host_addresses.h"
#include "datapath/records/attachments.h"
#include "lib/warning.h"
#include "plan/hooks.h"
#include "plan/uplinks.h"

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

/* Programs first, the entry last: until it is right, a run that looks makes the same change. */
static int make_change(struct host *host, const struct change *change, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	const struct interface *entry = &change->entry;
	struct attach_undo ignored = {0};

	if (attach_apply(&host->datapath, &change->at, &change->hooks, &ignored, err))
		return -1;
	if (change->kind == CHANGE_FORGET)
		return map_delete(objects, MAP_INTERFACES, &change->at.ifindex, err);
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

	for (size_t i = 0; i < plan->count; i++) {
		const struct change *change = &plan->changes[i];
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

	networks_settle(look->networks, look->network_count, objects);
	if (look->network_is_new &&
	    network_write(objects, &look->network_key, &look->network, &failure))
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
	plan->needs_witness = look.network_is_new;
	return apply_plan(host, &look, plan, err);
}

int host_settle(struct host *host, const struct look_at *at, struct plan *plan,
		struct cni_error *err)
{
	cleanup_look struct host_look look = {0};
	struct look_at first = *at, whole = *at;

	first.stops_at_news = true;
	if (host_look(&look, host, &first, err))
		return -1;
	if (!look.has_news_of_networks) {
		if (plan_make(plan, &look.found, err) ||
		    (at->refuses_damage && plan_refuse_damage(plan, err)))
			return -1;
		if (!plan->count && host_addresses_are_written(&host->datapath.objects,
							       &host->addresses, plan->excluded))
			return 0;
		plan_release(plan);
	}
	whole.entries = true;
	whole.veths |= at->container && bridge_is_new(host, &at->container->veth.bridge);
	return settle_locked(host, &whole, plan, err);
}

void network_has_container(const struct host *host, const struct container *container)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_error struct cni_error failure = {0};
	struct attachment record;
	struct network_key key;
	struct network entry;

	if (!attachment_read(objects, &container->claims.key, &record) ||
	    !network_make(&entry, &key, container->network, &container->conf))
		return;
	entry.witness = record.owner;
	entry.number = network_number_of(objects, container->network);
	if (network_write(objects, &key, &entry, &failure))
		warning("%s", cni_error_message(&failure));
}

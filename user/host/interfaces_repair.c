/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces_repair.c - verifies, repairs and deletes entries of the map interfaces. */
#include "host/interfaces_repair.h"

#include <stdio.h>
#include <string.h>

#include "datapath/attach/attach.h"
#include "datapath/attach/attach_verify.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "host/uplinks.h"

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
	if (!interface_is_containers(known) && !uplink_is_possible(host, link, why_not))
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

	if (attach_is_settled(&host->datapath, ifindex, interface))
		return 0;
	if (get_link_if_unchanged(host, ifindex, interface, &link, err))
		return -1;
	if (!link.ifindex)
		return 0;
	target.name = link.name;
	if (attach_interface(&host->datapath, host->socket, &target, &ignored, &failure))
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
	    (interface->role != ROLE_LEFT_ALONE && !uplink_is_possible(host, &link, why_not)))
		forget(host, ifindex, &link, why_not);
	return 0;
}

void interfaces_sweep(struct host *host)
{
	cleanup_error struct cni_error ignored = {0};

	host_walk_interfaces(host, sweep_interface, NULL, &ignored);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* interfaces_repair.c - whether what has been classified is still so: verifying, repairing,
 * forgetting. */
#include <stdio.h>
#include <string.h>

#include "datapath/attach/attach.h"
#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "net/link_names.h"
#include "host/interfaces.h"
#include "host/uplinks.h"
#include "datapath/attach/attach_verify.h"

struct survey {
	struct host *host;
	struct cni_error *err;
	int result;
};

/* Nobody need complain of, or mend, what is not as it was read any more: what is gone, and what
 * was the host's and is a container's by now, whose ADD is under way. Then link->ifindex is 0. */
static int get_link_if_unchanged(struct host *host, uint32_t ifindex, const struct interface *known,
				 struct link *link, struct cni_error *err)
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

static bool verify_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct survey *survey = context;
	uint32_t ifindex = *(const uint32_t *)key;
	char missing[256];
	struct link link;

	if (interface_is_containers(interface) ||
	    attach_verify(&survey->host->datapath, ifindex, interface, missing, sizeof(missing)))
		return true;
	survey->result =
		get_link_if_unchanged(survey->host, ifindex, interface, &link, survey->err);
	if (!survey->result && link.ifindex)
		survey->result = cni_error_set(survey->err, CNI_ERROR_KERNEL_REFUSED,
					       "interface %s of the host: %s; the next ADD or"
					       " `bpf-portmap attach` repairs it",
					       link.name, missing);
	return !survey->result;
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

/* One that went away meanwhile is nobody's problem. */
static int attach_again(struct host *host, const struct attach_target *target,
			struct cni_error *err)
{
	struct attach_undo ignored = {0};
	struct cni_error failure = {0};
	char name[IF_NAMESIZE];

	if (!attach_interface(&host->datapath, host->socket, target, &ignored, &failure)) {
		host_report(host, target->name, "attached again");
		return 0;
	}
	if (!link_name(host->socket, target->ifindex, name)) {
		cni_error_release(&failure);
		return 0;
	}
	*err = failure;
	return -1;
}

static int repair_interface(struct host *host, uint32_t ifindex, const struct interface *known,
			    struct cni_error *err)
{
	struct attach_target target;
	struct link link;

	if (get_link_if_unchanged(host, ifindex, known, &link, err))
		return -1;
	if (!link.ifindex)
		return 0;
	target = (struct attach_target){
		.ifindex = ifindex,
		.name = link.name,
		.interface = *known,
	};
	return attach_again(host, &target, err);
}

static bool repair_known(const void *key, const void *value, void *context)
{
	const struct interface *known = value;
	struct survey *survey = context;
	uint32_t ifindex = *(const uint32_t *)key;

	if (attach_is_settled(&survey->host->datapath, ifindex, known))
		return true;
	survey->result = repair_interface(survey->host, ifindex, known, survey->err);
	return !survey->result;
}

int interfaces_repair(struct host *host, struct cni_error *err)
{
	struct survey survey = {.host = host, .err = err};

	if (maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		      sizeof(struct interface), repair_known, &survey))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot read the map interfaces");
	return survey.result;
}

/* Under the lock, for a container's ADD or DEL beside us may change the entry. */
static void forget(struct host *host, uint32_t ifindex, const struct link *link, const char *why)
{
	const struct objects *objects = &host->datapath.objects;
	struct cni_error ignored = {0};
	char what[WHY_NOT_SIZE + 16];
	struct interface now;
	cleanup_lock int lock = lock_take(&ignored);

	if (lock < 0) {
		cni_error_release(&ignored);
		return;
	}
	if (!interface_read(objects, ifindex, &now) || interface_is_containers(&now))
		return;
	interface_delete(objects, ifindex);
	if (!link->ifindex)
		return;
	attach_leave(ifindex, &now);
	/* A container's, whose ADD is under way: nothing of the host was left. */
	if (attach_is_container_veth(ifindex))
		return;
	snprintf(what, sizeof(what), "left: it %s", why);
	host_report(host, link->name, what);
}

static bool sweep_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct host *host = context;
	uint32_t ifindex = *(const uint32_t *)key;
	struct cni_error ignored = {0};
	char why_not[WHY_NOT_SIZE] = "is gone";
	struct link link;

	/* A container's goes with its attachment. */
	if (interface_is_containers(interface))
		return true;
	if (link_get(host->socket, ifindex, NULL, &link, &ignored))
		cni_error_release(&ignored);
	else if (!link.ifindex ||
		 (interface->role != ROLE_EXCLUDED && !uplink_is_possible(host, &link, why_not)))
		forget(host, ifindex, &link, why_not);
	return true;
}

void interfaces_sweep(struct host *host)
{
	maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		  sizeof(struct interface), sweep_interface, host);
}

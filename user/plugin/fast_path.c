/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* fast_path.c - where packets must not skip the IP stack. */
#include "plugin/fast_path.h"

#include <stdio.h>
#include <string.h>

#include "datapath/bypass.h"
#include "datapath/lock.h"
#include "datapath/maps.h"
#include "net/link_names.h"

void fast_path_decide(const struct host *host, struct container *container, bool new_qdisc)
{
	const struct host_veth *veth = &container->veth;

	if (container->claims.fast_path == FAST_PATH_OFF)
		return;
	container->claims.interface.without_fast_path =
		bypass_at_link(&host->datapath, host->socket, &veth->link, new_qdisc) ||
		(veth->bridge.ifindex &&
		 bypass_at_link(&host->datapath, host->socket, &veth->bridge, false));
}

bool fast_path_is_barred_at_uplink(const struct host *host, uint32_t ifindex,
				   const struct interface *interface)
{
	return interface->role == ROLE_UPLINK &&
	       bypass_at_ingress(&host->datapath, host->socket, ifindex);
}

static void report(const struct host *host, uint32_t ifindex, const char *what)
{
	char name[IF_NAMESIZE];

	if (link_name(host->socket, ifindex, name))
		host_report(host, name, what);
}

/* Writes down whether packets of this interface may not skip the stack, if that has changed. */
static int bar(struct host *host, uint32_t ifindex, const struct interface *known, bool barred,
	       const char *what, struct cni_error *err)
{
	const struct objects *objects = &host->datapath.objects;
	cleanup_lock int lock = -1;
	struct interface now;

	if (barred == (known->without_fast_path != 0))
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	/* A container's ADD or DEL beside us may have changed the entry. */
	if (!interface_read(objects, ifindex, &now) || now.role != known->role ||
	    memcmp(&now.owner, &known->owner, sizeof(now.owner)) != 0)
		return 0;
	now.without_fast_path = barred;
	report(host, ifindex, barred ? what : "with the fast path again");
	return interface_write(objects, ifindex, &now, err);
}

int fast_path_refresh_uplink(struct host *host, uint32_t ifindex, const struct interface *known,
			     struct cni_error *err)
{
	return bar(host, ifindex, known, fast_path_is_barred_at_uplink(host, ifindex, known),
		   "without the fast path: somebody's program hangs behind ours", err);
}

struct survey {
	struct host *host;
	bool with_containers;
	struct cni_error *err;
	int result;
};

static int look_at(struct host *host, uint32_t ifindex, struct link *link, const char **found,
		   struct cni_error *err)
{
	*found = NULL;
	if (link_get(host->socket, ifindex, NULL, link, err))
		return -1;
	if (link->ifindex)
		*found = bypass_at_link(&host->datapath, host->socket, link, false);
	return 0;
}

int fast_path_refresh_container(struct host *host, uint32_t ifindex,
				const struct interface *interface, struct cni_error *err)
{
	struct link where = {0};
	const char *found;
	char what[128];

	if (look_at(host, ifindex, &where, &found, err))
		return -1;
	if (!found && interface->role == ROLE_PORT &&
	    look_at(host, interface->bridge_ifindex, &where, &found, err))
		return -1;
	snprintf(what, sizeof(what), "without the fast path: somebody has %s at %s", found ?: "",
		 where.name);
	return bar(host, ifindex, interface, found, what, err);
}

static bool refresh_interface(const void *key, const void *value, void *context)
{
	const struct interface *interface = value;
	struct survey *survey = context;
	uint32_t ifindex = *(const uint32_t *)key;

	if (!interface_is_containers(interface))
		survey->result =
			fast_path_refresh_uplink(survey->host, ifindex, interface, survey->err);
	else if (survey->with_containers)
		survey->result =
			fast_path_refresh_container(survey->host, ifindex, interface, survey->err);
	return !survey->result;
}

static int refresh_all(struct host *host, bool with_containers, struct cni_error *err)
{
	struct survey survey = {.host = host, .with_containers = with_containers, .err = err};

	if (maps_walk(host->datapath.objects.maps[MAP_INTERFACES], sizeof(uint32_t),
		      sizeof(struct interface), refresh_interface, &survey))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "cannot read the map interfaces");
	return survey.result;
}

int fast_path_refresh_uplinks(struct host *host, struct cni_error *err)
{
	return refresh_all(host, false, err);
}

int fast_path_refresh(struct host *host, struct cni_error *err)
{
	return refresh_all(host, true, err);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* predecessor.c - a port that an older sandbox of the same pod still has. */
#include "host/predecessor.h"

#include <string.h>
#include <time.h>

#include "datapath/records/owners.h"
#include "datapath/records/attachment_name.h"

#define WAIT_MILLISECONDS 2000
#define LOOK_EVERY_MILLISECONDS 20

/* Of an owner who is there, and is not this container on another network. */
static bool is_predecessor(const struct host *host, const struct container *container,
			   const struct slot *slot)
{
	const struct objects *objects = &host->datapath.objects;
	struct attachment_key key;
	struct attachment record;

	slot_get_key(slot, &key);
	return !attachments_are_of_one_container(key.name, container->claims.key.name) &&
	       attachment_read(objects, &key, &record) &&
	       !memcmp(&record.workload, &container->conf.workload, sizeof(record.workload)) &&
	       attachment_has_veth(objects, host->socket, &record);
}

static bool has_a_port(const struct host *host, const struct container *container)
{
	const struct objects *objects = &host->datapath.objects;
	struct portmap portmap;
	struct slot slot;

	for (size_t i = 0; i < container->claims.port_count; i++)
		if (portmap_read(objects, &container->claims.ports[i].key, &portmap) &&
		    owner_read(objects, portmap.owner, &slot) &&
		    is_predecessor(host, container, &slot))
			return true;
	return false;
}

bool predecessor_goes(const struct host *host, const struct container *container)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY_MILLISECONDS * 1000000L};

	if (container->conf.workload.kind != WORKLOAD_POD || !has_a_port(host, container))
		return false;
	for (int i = 0; i < WAIT_MILLISECONDS / LOOK_EVERY_MILLISECONDS; i++) {
		nanosleep(&pause, NULL);
		if (!has_a_port(host, container))
			return true;
	}
	return false;
}

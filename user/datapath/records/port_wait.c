/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* port_wait.c - an ADD waits for the ports of a container that is about to go. */
#include "datapath/records/port_wait.h"

#include <time.h>

#include "datapath/records/containers.h"
#include "net/processes.h"

/* How long the DEL of another container is waited for that has a port, in milliseconds, and what a
 * true conflict costs. After an error kubelet tries again only after 12 seconds, and Nomad in vain;
 * Nomad's tasks have 5 seconds to end (kill_timeout). */
#define WAIT_FOR_POD 5000
#define WAIT_FOR_ALLOCATION 10000
#define WAIT_FOR_STOPPED 5000
#define LOOK_EVERY 20

/* Returns whether another container has one of the ports, and is there. */
static bool find_in_the_way(const struct objects *objects, const struct attachment_claims *claims,
			    struct slot *slot, struct attachment *record)
{
	struct portmap portmap;

	for (size_t i = 0; i < claims->port_count; i++)
		/* Not this container on another network. */
		if (portmap_read(objects, &claims->ports[i].key, &portmap) &&
		    owner_read(objects, portmap.owner, slot) &&
		    slot->container != claims->container &&
		    slot_read_record(objects, portmap.owner.slot, slot, record) &&
		    !workload_is_same(&record->workload, &claims->workload) &&
		    attachment_has_veth(objects, record))
			return true;
	return false;
}

/* Before 1.9 Nomad says nothing but the allocation's ID. */
static bool is_allocation(const struct workload *workload, const struct attachment_key *key)
{
	return workload->kind == WORKLOAD_NOMAD ||
	       (workload->kind == WORKLOAD_NONE && attachment_has_uuid(key->name));
}

/*
 * Schedulers give no two pods, or no two allocations, of a node the same port, so that one that has
 * it is nearly always one that goes: it was deleted by force, or is a Deployment's, whose pods have
 * names of their own. It is being stopped, and nothing tells it from others until its DEL comes. Of
 * other engines' containers, one without processes is being stopped, or is forgotten. 0: it stays.
 */
static int milliseconds_to_wait(const struct attachment_claims *claims, const struct slot *slot,
				const struct attachment *record)
{
	const struct workload *own = &claims->workload, *its = &record->workload;
	struct attachment_key key;

	slot_get_key(slot, &key);
	if (own->kind == WORKLOAD_POD && its->kind == WORKLOAD_POD)
		return WAIT_FOR_POD;
	if (is_allocation(own, &claims->key) && is_allocation(its, &key))
		return WAIT_FOR_ALLOCATION;
	return slot_is_engines(slot, record) && !processes_are_in_netns(slot->netns_id)
		       ? WAIT_FOR_STOPPED
		       : 0;
}

bool claims_wait_for_ports(const struct objects *objects, const struct attachment_claims *claims)
{
	const struct timespec pause = {.tv_nsec = LOOK_EVERY * 1000000L};
	struct attachment record;
	struct slot slot;
	int left;

	if (!find_in_the_way(objects, claims, &slot, &record))
		return true;
	for (left = milliseconds_to_wait(claims, &slot, &record); left > 0; left -= LOOK_EVERY) {
		nanosleep(&pause, NULL);
		if (!find_in_the_way(objects, claims, &slot, &record))
			return true;
	}
	return false;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* nat_ports.c - the map of mapped ports that the host's own NAT takes. */
#include "datapath/records/nat_ports.h"

#include <stdlib.h>
#include <string.h>

#include "datapath/load/maps.h"
#include "datapath/records/bitmaps.h"
#include "lib/address.h"
#include "lib/memory.h"

void nat_ports_add(struct nat_port_list *ports, const struct portmap_key *key, uint32_t hooks)
{
	*ARRAY_ADD(ports->list, ports->count) =
		(struct nat_port_entry){.key = *key, .taken.hooks = hooks};
}

void nat_ports_release(struct nat_port_list *ports)
{
	free(ports->list);
	*ports = (struct nat_port_list){0};
}

/* The programs look it up in the same way. */
uint32_t nat_port_hooks(const struct objects *objects, const struct portmap_key *key)
{
	struct portmap_key any = *key;
	struct nat_port taken;

	memcpy(any.host_address,
	       cni_address_is_ipv4(key->host_address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	return map_read(objects, MAP_NAT_PORTS, key, &taken) ||
			       map_read(objects, MAP_NAT_PORTS, &any, &taken)
		       ? taken.hooks
		       : 0;
}

static bool is_about(const struct nat_ports_change *change, const struct portmap_key *key)
{
	if (!change->keys)
		return true;
	for (size_t i = 0; i < change->key_count; i++)
		if (change->keys[i].host_port == key->host_port &&
		    change->keys[i].protocol == key->protocol)
			return true;
	return false;
}

static const struct nat_port_entry *find(const struct nat_port_list *ports,
					 const struct portmap_key *key)
{
	for (size_t i = 0; i < ports->count; i++)
		if (!memcmp(&ports->list[i].key, key, sizeof(*key)))
			return &ports->list[i];
	return NULL;
}

static int delete_unwanted(const struct objects *objects, const struct nat_port_list *wanted,
			   const struct nat_ports_change *change, struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_NAT_PORTS};

	while (!change->keeps && map_next(&walk, err)) {
		if (!is_about(change, walk.key) || find(wanted, walk.key))
			continue;
		if (change->report)
			change->report(walk.key, false, change->context);
		if (!change->dry_run && map_delete(objects, MAP_NAT_PORTS, walk.key, err))
			return -1;
	}
	return walk.failed ? -1 : 0;
}

int nat_ports_write(const struct objects *objects, struct nat_port_list *wanted,
		    const struct nat_ports_change *change, struct cni_error *err)
{
	struct nat_port known;

	if (delete_unwanted(objects, wanted, change, err))
		return -1;
	for_each (entry, wanted->list, wanted->count) {
		if (map_read(objects, MAP_NAT_PORTS, &entry->key, &known) &&
		    !memcmp(&known, &entry->taken, sizeof(known)))
			continue;
		if (change->report)
			change->report(&entry->key, true, change->context);
		/* The bit comes first: without it nobody looks for the entry. */
		if (!change->dry_run &&
		    (bitmaps_mark_nat_port(objects, entry->key.host_port, err) ||
		     map_write(objects, MAP_NAT_PORTS, &entry->key, &entry->taken, err)))
			return -1;
	}
	return 0;
}

static void count_change(const struct portmap_key *key, bool is_taken, void *context)
{
	(*(size_t *)context)++;
}

bool nat_ports_are_written(const struct objects *objects, struct nat_port_list *wanted,
			   const struct nat_ports_change *change)
{
	struct nat_ports_change look = *change;
	size_t changes = 0;

	look.dry_run = true;
	look.report = count_change;
	look.context = &changes;
	return !nat_ports_write(objects, wanted, &look, NULL) && !changes;
}

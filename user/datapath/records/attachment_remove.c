/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_remove.c - removing an attachment and what it owns in the maps. */
#include "datapath/records/attachment_remove.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/containers.h"
#include "datapath/records/owners.h"
#include "lib/cleanup.h"
#include "datapath/records/describe.h"
#include "lib/warning.h"

/* More ports than that are found as fast by walking through all. */
#define MAX_LIKELY 256

/* The search for an owner's ports, or for its endpoints. */
struct search {
	struct release *release;
	enum map_number map;
	map_visitor *visit;
	struct owner owner;
	uint32_t left; /* to be found */
	struct portmap_key ports[PORT_BATCH];
	uint32_t port_count; /* found, but not yet deleted */
};

static int delete_ports(struct search *search, struct cni_error *err)
{
	const struct objects *objects = search->release->objects;
	uint32_t found = search->port_count, deleted = found;

	search->port_count = 0;
	if (!found ||
	    !bpf_map_delete_batch(map_fd(objects, MAP_PORTMAPS), search->ports, &deleted, NULL))
		return 0;
	/* A batch ends at a key that is not there any more. */
	for (uint32_t i = 0; i < found; i++)
		if (map_delete(objects, MAP_PORTMAPS, &search->ports[i], err))
			return -1;
	return 0;
}

static enum walk release_port(const void *key, const void *value, void *context,
			      struct cni_error *err)
{
	const struct portmap *portmap = value;
	struct search *search = context;

	if (!owner_is(portmap->owner, search->owner))
		return WALK_ON;
	udp_ports_add(&search->release->udp_ports, key);
	memcpy(&search->ports[search->port_count++], key, sizeof(search->ports[0]));
	if (search->port_count == PORT_BATCH && delete_ports(search, err))
		return WALK_FAILED;
	return --search->left ? WALK_ON : WALK_ENOUGH;
}

static enum walk release_endpoint(const void *key, const void *value, void *context,
				  struct cni_error *err)
{
	const struct endpoint *endpoint = value;
	struct search *search = context;

	if (!owner_is(endpoint->owner, search->owner))
		return WALK_ON;
	if (container_return_address(search->release->objects, key, endpoint, err))
		return WALK_FAILED;
	return --search->left ? WALK_ON : WALK_ENOUGH;
}

/* Looks at the keys that the owner probably has, each of which begins an element of an array, and
 * then through the map until the last entry is found. */
static int search_map(struct search *search, const void *likely, size_t count, size_t size,
		      struct cni_error *err)
{
	const struct objects *objects = search->release->objects;
	enum walk result = search->left ? WALK_ON : WALK_ENOUGH;
	const char *key = likely;
	union {
		struct portmap portmap;
		struct endpoint endpoint;
	} value;

	for (size_t i = 0; i < count && result == WALK_ON; i++, key += size)
		if (map_read(objects, search->map, key, &value))
			result = search->visit(key, &value, search, err);
	/* A walk would count them again. */
	if (result == WALK_FAILED || delete_ports(search, err))
		return -1;
	if (result == WALK_ON && map_walk(objects, search->map, search->visit, search, err))
		return -1;
	return delete_ports(search, err);
}

static int release_entries(struct release *release, const struct attachment *record,
			   struct cni_error *err)
{
	static const struct attachment_claims unknown;
	bool claimed_all = record->state == ATTACHMENT_READY;
	const struct attachment_claims *likely =
		claimed_all && release->likely ? release->likely : &unknown;
	struct search ports = {
		.release = release,
		.map = MAP_PORTMAPS,
		.visit = release_port,
		.owner = record->owner,
		.left = claimed_all ? record->host_ports : UINT32_MAX,
	};
	struct search endpoints = {
		.release = release,
		.map = MAP_ENDPOINTS,
		.visit = release_endpoint,
		.owner = record->owner,
		.left = claimed_all ? record->endpoints : UINT32_MAX,
	};

	if (search_map(&ports, likely->ports,
		       likely->port_count <= MAX_LIKELY ? likely->port_count : 0,
		       sizeof(*likely->ports), err))
		return -1;
	return search_map(&endpoints, likely->endpoints, likely->endpoint_count,
			  sizeof(*likely->endpoints), err);
}

/* The program stays at the veth and drops what the container still sends, until the veth goes:
 * nothing leaves without being translated in between. Where the interface is in another network,
 * too, that one's attachment has it from now on. */
static int release_interface(const struct objects *objects, const struct slot *slot,
			     struct owner owner, struct cni_error *err)
{
	struct interface interface;

	if (!interface_read(objects, slot->ifindex, &interface) ||
	    !owner_is(interface.owner, owner))
		return 0;
	if (container_find_other(objects, slot, owner.slot, &interface.owner))
		return interface_write(objects, slot->ifindex, &interface, err);
	return map_delete(objects, MAP_INTERFACES, &slot->ifindex, err);
}

/* Makes the slot dead first, then deletes the rest. */
static int release_owned(struct release *release, const struct attachment *record,
			 struct slot *slot, struct cni_error *err)
{
	const struct objects *objects = release->objects;

	if (container_leave(objects, slot, record->owner, &release->udp_ports, err))
		return -1;
	slot->live = false;
	if (slot_write(objects, record->owner.slot, slot, err) ||
	    release_entries(release, record, err) ||
	    map_delete(objects, MAP_POLICIES, &record->owner.slot, err))
		return -1;
	return release_interface(objects, slot, record->owner, err);
}

void release_finish(const struct release *release, int *lock)
{
	lock_release(lock);
	udp_clients_end(release->objects, &release->udp_ports);
}

int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err)
{
	static const struct slot empty;
	const struct objects *objects = release->objects;
	cleanup_error struct cni_error ignored = {0};
	struct attachment record;
	struct slot slot;
	bool has_slot;

	if (!attachment_read(objects, key, &record))
		return 0;
	/* ADD writes the slot before the record, so without one there is nothing else. */
	has_slot = owner_read(objects, record.owner, &slot);
	if ((has_slot && release_owned(release, &record, &slot, err)) ||
	    map_delete(objects, MAP_ATTACHMENTS, key, err))
		return -1;
	/* A slot that no record points to is free anyway. */
	if (has_slot)
		slot_write(objects, record.owner.slot, &empty, &ignored);
	return 0;
}

int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	struct release release = {.objects = objects, .likely = likely};
	cleanup_lock int lock = lock_take_claims(err);
	int result;

	if (lock < 0)
		return -1;
	result = attachment_remove_locked(&release, key, err);
	release_finish(&release, &lock);
	return result;
}

int attachment_remove_stale(const struct objects *objects, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err)
{
	struct release release = {.objects = objects};
	cleanup_lock int lock = lock_take_claims(err);
	struct attachment record;
	int result = 0;

	if (lock < 0)
		return -1;
	*was_there = attachment_read(objects, &entry->key, &record) &&
		     owner_is(record.owner, entry->attachment.owner);
	if (*was_there)
		result = attachment_remove_locked(&release, &entry->key, err);
	release_finish(&release, &lock);
	return result;
}

bool attachment_is_abandoned(const struct objects *objects, struct netlink *socket,
			     const struct attachment_entry *entry)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_lock int lock = lock_take_claims(&ignored);
	struct slot slot;

	return lock >= 0 && (!owner_read(objects, entry->attachment.owner, &slot) ||
			     !attachment_has_veth(objects, socket, &entry->attachment));
}

/* Called before looking, because the programs note again what they meet from now on. */
static int forget_notice(const struct datapath *datapath, enum abandoned_which which, bool *noticed,
			 struct cni_error *err)
{
	cleanup_lock int lock = -1;
	struct meta meta;

	*noticed = which == ABANDONED_ALL;
	if (!meta_read(&datapath->objects, &meta) || !meta.owner_gone)
		return 0;
	*noticed = true;
	lock = lock_take_claims(err);
	if (lock < 0)
		return -1;
	if (!meta_read(&datapath->objects, &meta))
		return 0;
	meta.owner_gone = 0;
	return meta_write(&datapath->objects, &meta, err);
}

void abandoned_remove(const struct datapath *datapath, struct netlink *socket,
		      enum abandoned_which which)
{
	const struct objects *objects = &datapath->objects;
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error failure = {0};
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool noticed, was_there;
	size_t count = 0;
	int failed = forget_notice(datapath, which, &noticed, &failure);

	if (!failed && noticed)
		failed = attachment_list(datapath, &entries, &count, &failure);
	for (size_t i = 0; !failed && i < count; i++) {
		/* Without the lock: a veth that is gone does not come back for the same owner. */
		if (attachment_has_veth(objects, socket, &entries[i].attachment))
			continue;
		/* Before its record goes, which names the pod. */
		describe_attachment(objects, entries[i].key.name, who);
		failed = attachment_remove_stale(objects, &entries[i], &was_there, &failure);
		if (!failed && was_there)
			warning("removed what %s had left: its veth is gone, and DEL was "
				"not called",
				who);
	}
	if (failed)
		warning("cannot remove what containers without a veth have left behind: %s",
			cni_error_message(&failure));
}

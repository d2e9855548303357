/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_remove.c - removing an attachment and what it owns in the maps. */
#include "datapath/records/attachment.h"

#include <bpf/bpf.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/containers.h"
#include "lib/cleanup.h"
#include "datapath/records/attachments.h"
#include "lib/error.h"

/* More ports than that are found as fast by walking through all. */
#define MAX_LIKELY 256

/* The search for an owner's ports, or for its endpoints. */
struct search {
	struct release *release;
	enum map_number map;
	int (*release_entry)(struct search *search, const void *key, const void *value,
			     struct cni_error *err);
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

/* A port that another container has taken over stays with that one. */
static int release_port(struct search *search, const void *key, const void *value,
			struct cni_error *err)
{
	struct portmap_succession entry = *(const struct portmap_succession *)value;
	const struct portmap *own = succession_find(&entry, search->owner);

	if (!own)
		return 0;
	search->left -= !own->of_any_address;
	if (!owner_is(entry.now.owner, search->owner)) {
		succession_remove(&entry, search->owner);
		return map_write(search->release->objects, MAP_PORTMAPS, key, &entry, err);
	}
	memcpy(&search->ports[search->port_count++], key, sizeof(search->ports[0]));
	return search->port_count == PORT_BATCH ? delete_ports(search, err) : 0;
}

static int release_endpoint(struct search *search, const void *key, const void *value,
			    struct cni_error *err)
{
	const struct endpoint *endpoint = value;

	if (!owner_is(endpoint->owner, search->owner))
		return 0;
	search->left--;
	return container_return_address(search->release->objects, key, endpoint, err);
}

/* Looks at the keys that the owner probably has, each of which begins an element of an array, and
 * then through the map until the last entry is found. */
static int search_map(struct search *search, const void *likely, size_t count, size_t size,
		      struct cni_error *err)
{
	cleanup_walk struct map_walk walk = {.objects = search->release->objects,
					     .map = search->map};
	const char *key = likely;
	union {
		struct portmap_succession portmap;
		struct endpoint endpoint;
	} value;

	for (size_t i = 0; i < count && search->left; i++, key += size)
		if (map_read(walk.objects, search->map, key, &value) &&
		    search->release_entry(search, key, &value, err))
			return -1;
	/* A walk would count them again. */
	if (delete_ports(search, err))
		return -1;
	while (search->left && map_next(&walk, err))
		if (search->release_entry(search, walk.key, walk.value, err))
			return -1;
	return walk.failed ? -1 : delete_ports(search, err);
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
		.release_entry = release_port,
		.owner = record->owner,
		.left = claimed_all ? record->host_ports : UINT32_MAX,
	};
	struct search endpoints = {
		.release = release,
		.map = MAP_ENDPOINTS,
		.release_entry = release_endpoint,
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

/* Gives its ports to whom they belong now, makes the slot dead, then deletes the rest. */
static int release_owned(struct release *release, const struct attachment *record,
			 struct slot *slot, struct cni_error *err)
{
	const struct objects *objects = release->objects;

	if (container_leave(objects, slot, record->owner, err) ||
	    (record->replaces && replacements_give_back(objects, record->owner, err)))
		return -1;
	slot->live = false;
	if (slot_write(objects, record->owner.slot, slot, err) ||
	    release_entries(release, record, err) ||
	    /* ADD writes the slot before the policy. */
	    (slot->has_policy && map_delete(objects, MAP_POLICIES, &record->owner.slot, err)))
		return -1;
	return release_interface(objects, slot, record->owner, err);
}

int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err)
{
	static const struct slot empty;
	const struct objects *objects = release->objects;
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
		slot_write(objects, record.owner.slot, &empty, NULL);
	return 0;
}

int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	struct release release = {.objects = objects, .likely = likely};
	cleanup_lock int lock = lock_take_claims(err);

	return lock < 0 ? -1 : attachment_remove_locked(&release, key, err);
}

int attachment_remove_stale(const struct objects *objects, const struct attachment_entry *entry,
			    bool *was_there, struct cni_error *err)
{
	struct release release = {.objects = objects};
	cleanup_lock int lock = lock_take_claims(err);
	struct attachment record;

	if (lock < 0)
		return -1;
	*was_there = attachment_read(objects, &entry->key, &record) &&
		     owner_is(record.owner, entry->attachment.owner);
	return *was_there ? attachment_remove_locked(&release, &entry->key, err) : 0;
}

bool attachment_is_abandoned(const struct objects *objects, const struct attachment_entry *entry)
{
	cleanup_lock int lock = lock_take_claims(NULL);
	struct slot slot;

	return lock >= 0 && (!owner_read(objects, entry->attachment.owner, &slot) ||
			     !attachment_has_veth(objects, &entry->attachment));
}

/* Called before looking, because the programs note again what they meet from now on. */
static int forget_notice(const struct datapath *datapath, bool *noticed, struct cni_error *err)
{
	cleanup_lock int lock = -1;
	struct meta meta;

	*noticed = meta_read(&datapath->objects, &meta) && meta.owner_gone;
	if (!*noticed)
		return 0;
	lock = lock_take_claims(err);
	if (lock < 0)
		return -1;
	if (!meta_read(&datapath->objects, &meta))
		return 0;
	meta.owner_gone = 0;
	return meta_write(&datapath->objects, &meta, err);
}

void abandoned_remove(const struct datapath *datapath)
{
	const struct objects *objects = &datapath->objects;
	cleanup_free struct attachment_entry *entries = NULL;
	cleanup_error struct cni_error failure = {0};
	char who[DESCRIBED_ATTACHMENT_SIZE];
	bool noticed, was_there;
	size_t count = 0;
	int failed = forget_notice(datapath, &noticed, &failure);

	if (!failed && noticed)
		failed = attachment_list(datapath, &entries, &count, &failure);
	for (size_t i = 0; !failed && i < count; i++) {
		/* Without the lock: a veth that is gone does not come back for the same owner. */
		if (attachment_has_veth(objects, &entries[i].attachment))
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

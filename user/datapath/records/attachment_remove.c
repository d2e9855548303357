/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_remove.c - removing an attachment, whole or damaged. */
#include "datapath/records/attachment_remove.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/containers.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"
#include "lib/cleanup.h"
#include "datapath/records/describe.h"
#include "lib/warning.h"

/* More ports than that are found as fast by walking through all. */
#define MAX_LIKELY 256

/* The search for an owner's ports, or for its endpoints. */
struct search {
	struct release *release;
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
	    !bpf_map_delete_batch(objects->maps[MAP_PORTMAPS], search->ports, &deleted, NULL))
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

static int release_ports(struct release *release, const struct attachment *record,
			 struct cni_error *err)
{
	const struct attachment_claims *likely = release->likely;
	bool claimed_all = record->state == ATTACHMENT_READY;
	struct search search = {
		.release = release,
		.owner = record->owner,
		.left = claimed_all ? record->host_ports : UINT32_MAX,
	};
	enum walk result = WALK_ON;
	struct portmap portmap;

	if (!search.left)
		return 0;
	if (claimed_all && likely && likely->port_count <= MAX_LIKELY) {
		for (size_t i = 0; i < likely->port_count && result == WALK_ON; i++)
			if (portmap_read(release->objects, &likely->ports[i].key, &portmap))
				result =
					release_port(&likely->ports[i].key, &portmap, &search, err);
		/* A walk would count them again. */
		if (delete_ports(&search, err))
			return -1;
	}
	if (result == WALK_ON &&
	    map_walk(release->objects, MAP_PORTMAPS, release_port, &search, err))
		result = WALK_FAILED;
	return result == WALK_FAILED ? -1 : delete_ports(&search, err);
}

static int release_endpoints(struct release *release, const struct attachment *record,
			     struct cni_error *err)
{
	const struct attachment_claims *likely = release->likely;
	bool claimed_all = record->state == ATTACHMENT_READY && record->endpoints;
	struct search search = {
		.release = release,
		.owner = record->owner,
		.left = claimed_all ? record->endpoints : UINT32_MAX,
	};
	enum walk result = WALK_ON;
	struct endpoint endpoint;

	for (size_t i = 0; claimed_all && likely && i < likely->endpoint_count && result == WALK_ON;
	     i++)
		if (endpoint_read(release->objects, &likely->endpoints[i].key, &endpoint))
			result = release_endpoint(&likely->endpoints[i].key, &endpoint, &search,
						  err);
	if (result == WALK_ON)
		return map_walk(release->objects, MAP_ENDPOINTS, release_endpoint, &search, err);
	return result == WALK_FAILED ? -1 : 0;
}

/* The program stays at the veth and drops what the container still sends, until the veth goes:
 * nothing leaves without being translated in between. Where the interface is in another network,
 * too, that one's attachment has it from now on. */
static int release_interface(const struct objects *objects, uint32_t ifindex, struct owner owner,
			     struct cni_error *err)
{
	struct interface interface;
	struct slot slot;

	if (!interface_read(objects, ifindex, &interface) || !owner_is(interface.owner, owner))
		return 0;
	if (owner_read(objects, owner, &slot) &&
	    container_find_other(objects, &slot, owner.slot, &interface.owner))
		return interface_write(objects, ifindex, &interface, err);
	interface_delete(objects, ifindex);
	return 0;
}

static int release_owned(struct release *release, const struct attachment *record,
			 struct cni_error *err)
{
	const struct objects *objects = release->objects;
	struct slot slot;

	if (container_leave(objects, record->owner, &release->udp_ports, err) ||
	    owner_set_live(objects, record->owner, false, err) ||
	    release_ports(release, record, err) || release_endpoints(release, record, err) ||
	    policy_delete(objects, record->owner, err))
		return -1;
	if (release_interface(objects, record->ifindex, record->owner, err))
		return -1;
	return owner_read(objects, record->owner, &slot) && slot.ifindex != record->ifindex
		       ? release_interface(objects, slot.ifindex, record->owner, err)
		       : 0;
}

void release_finish(const struct release *release, int *lock)
{
	lock_release(lock);
	udp_clients_end(release->objects, &release->udp_ports);
}

int attachment_remove_locked(struct release *release, const struct attachment_key *key,
			     struct cni_error *err)
{
	const struct objects *objects = release->objects;
	struct attachment record;

	if (!attachment_read(objects, key, &record))
		return 0;
	if (release_owned(release, &record, err) || map_delete(objects, MAP_ATTACHMENTS, key, err))
		return -1;
	owner_free(objects, record.owner);
	return 0;
}

int attachment_remove(const struct objects *objects, const struct attachment_key *key,
		      const struct attachment_claims *likely, struct cni_error *err)
{
	struct release release = {.objects = objects, .likely = likely};
	cleanup_lock int lock = -1;
	struct attachment record;
	int result;

	/* Only a look-up that finds nothing means that nothing is there. */
	if (!attachment_read(objects, key, &record))
		return errno == ENOENT ? 0 : map_refuse_read(MAP_ATTACHMENTS, err);
	lock = lock_take_claims(err);
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

bool attachment_is_abandoned_locked(const struct objects *objects, struct nl_sock *socket,
				    const struct attachment_entry *entry)
{
	return !attachment_has_veth(objects, socket, &entry->attachment);
}

bool attachment_is_abandoned(const struct objects *objects, struct nl_sock *socket,
			     const struct attachment_entry *entry)
{
	cleanup_error struct cni_error ignored = {0};
	cleanup_lock int lock = lock_take_claims(&ignored);

	return lock >= 0 && attachment_is_abandoned_locked(objects, socket, entry);
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

void abandoned_remove(const struct datapath *datapath, struct nl_sock *socket,
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

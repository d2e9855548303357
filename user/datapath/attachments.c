/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments.c - making and removing what an attachment owns in the maps. */
#include "datapath/attachments.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "datapath/lock.h"
#include "datapath/maps.h"
#include "datapath/masquerade_ports.h"
#include "datapath/owners.h"
#include "datapath/policies.h"
#include "datapath/refusal.h"
#include "datapath/udp_clients.h"
#include "datapath/warning.h"
#include "net/link.h"

int attachment_key_make(struct attachment_key *key, const char *network, const char *container_id,
			const char *ifname, struct cni_error *err)
{
	int length;

	memset(key, 0, sizeof(*key));
	length = snprintf(key->name, sizeof(key->name), "%s/%s/%s", network, container_id, ifname);
	if (length >= 0 && (size_t)length < sizeof(key->name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_ENVIRONMENT,
			     "network name, CNI_CONTAINERID and CNI_IFNAME are %d bytes together,"
			     " at most %zu are possible",
			     length - 2, sizeof(key->name) - 3);
}

bool attachment_name_split(const char key[ATTACHMENT_KEY_SIZE], struct attachment_name *name)
{
	char *container_id, *ifname;

	memcpy(name->text, key, ATTACHMENT_KEY_SIZE);
	name->text[ATTACHMENT_KEY_SIZE] = '\0';
	container_id = strchr(name->text, '/');
	ifname = container_id ? strchr(container_id + 1, '/') : NULL;
	if (!ifname)
		return false;
	*container_id = *ifname = '\0';
	name->network = name->text;
	name->container_id = container_id + 1;
	name->ifname = ifname + 1;
	return true;
}

bool attachments_are_of_one_container(const char one[ATTACHMENT_KEY_SIZE],
				      const char other[ATTACHMENT_KEY_SIZE])
{
	struct attachment_name one_name, other_name;

	return attachment_name_split(one, &one_name) && attachment_name_split(other, &other_name) &&
	       !strcmp(one_name.container_id, other_name.container_id);
}

struct removal {
	const struct objects *objects;
	struct owner owner;
	uint32_t left; /* stop after so many */
	int failure;   /* errno */
	struct portmap_key ports[PORT_BATCH];
	uint32_t port_count;
	struct noticed noticed;
	bool udp_clients;
};

static void delete_ports(struct removal *removal)
{
	int map = removal->objects->maps[MAP_PORTMAPS];
	uint32_t count = removal->port_count;

	/* A batch ends at a key that somebody else has deleted, so then each for itself. */
	if (count && bpf_map_delete_batch(map, removal->ports, &count, NULL))
		for (uint32_t i = 0; i < removal->port_count; i++)
			if (bpf_map_delete_elem(map, &removal->ports[i]) && errno != ENOENT)
				removal->failure = errno;
	removal->port_count = 0;
}

static bool remove_portmap(const void *key, const void *value, void *context)
{
	const struct portmap *portmap = value;
	struct removal *removal = context;

	if (!owner_is(portmap->owner, removal->owner))
		return true;
	if (udp_clients_are_known(&removal->noticed, key))
		removal->udp_clients = true;
	memcpy(&removal->ports[removal->port_count++], key, sizeof(removal->ports[0]));
	if (removal->port_count == PORT_BATCH)
		delete_ports(removal);
	return --removal->left > 0;
}

static bool remove_endpoint(const void *key, const void *value, void *context)
{
	const struct endpoint *endpoint = value;
	struct removal *removal = context;

	if (owner_is(endpoint->owner, removal->owner) &&
	    bpf_map_delete_elem(removal->objects->maps[MAP_ENDPOINTS], key) && errno != ENOENT)
		removal->failure = errno;
	return true;
}

static int remove_ports(const struct objects *objects, const struct attachment *record,
			bool *udp_clients, struct cni_error *err)
{
	/* All that it claimed, if it claimed them all. */
	bool known = record->state == ATTACHMENT_READY;
	struct removal removal = {
		.objects = objects,
		.owner = record->owner,
		.left = known ? record->host_ports : UINT32_MAX,
	};

	if (!removal.left)
		return 0;
	noticed_read(objects, &removal.noticed);
	if (maps_walk(objects->maps[MAP_PORTMAPS], sizeof(struct portmap_key),
		      sizeof(struct portmap), remove_portmap, &removal))
		removal.failure = errno;
	delete_ports(&removal);
	*udp_clients |= removal.udp_clients;
	if (removal.failure)
		return refusal_set(err, removal.failure, "cannot delete from the map portmaps");
	return 0;
}

static int remove_endpoints(const struct objects *objects, const struct attachment *record,
			    struct cni_error *err)
{
	struct removal removal = {.objects = objects, .owner = record->owner};

	if (maps_walk(objects->maps[MAP_ENDPOINTS], sizeof(struct endpoint_key),
		      sizeof(struct endpoint), remove_endpoint, &removal))
		removal.failure = errno;
	if (removal.failure)
		return refusal_set(err, removal.failure, "cannot delete from the map endpoints");
	return 0;
}

/* The program stays on the veth and drops what the container still sends, until the
 * veth goes: nothing leaves un-NATed in between. */
static void remove_interface(const struct objects *objects, const struct attachment *record)
{
	struct interface interface;

	if (interface_read(objects, record->ifindex, &interface) &&
	    owner_is(interface.owner, record->owner))
		bpf_map_delete_elem(objects->maps[MAP_INTERFACES], &record->ifindex);
}

static int remove_locked(const struct objects *objects, const struct attachment_key *key,
			 bool *udp_clients, struct cni_error *err)
{
	struct attachment record;

	if (!attachment_read(objects, key, &record))
		return 0;
	if (owner_set_live(objects, record.owner, false, err) ||
	    remove_ports(objects, &record, udp_clients, err) ||
	    remove_endpoints(objects, &record, err) || policy_delete(objects, record.owner, err))
		return -1;
	remove_interface(objects, &record);
	if (bpf_map_delete_elem(objects->maps[MAP_ATTACHMENTS], key) && errno != ENOENT)
		return refusal_set(err, errno, "cannot delete from the map attachments");
	owner_free(objects, record.owner);
	return 0;
}

/* What takes milliseconds is not done under the lock. */
static void follow_udp_clients(const struct objects *objects, bool known, int *lock)
{
	lock_release(lock);
	if (known)
		udp_clients_reconnect(objects);
}

/* Only a look-up that finds nothing means that nothing is there. */
static int exists(const struct objects *objects, const struct attachment_key *key, bool *found,
		  struct cni_error *err)
{
	struct attachment record;

	*found = attachment_read(objects, key, &record);
	if (*found || errno == ENOENT)
		return 0;
	return refusal_set(err, errno, "cannot read the map attachments");
}

int attachment_remove(const struct datapath *datapath, const struct attachment_key *key,
		      struct cni_error *err)
{
	cleanup_lock int lock = -1;
	bool found, udp_clients = false;
	int result;

	if (exists(&datapath->objects, key, &found, err))
		return -1;
	if (!found)
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	result = remove_locked(&datapath->objects, key, &udp_clients, err);
	follow_udp_clients(&datapath->objects, udp_clients, &lock);
	return result;
}

int attachment_remove_stale(const struct datapath *datapath, const struct attachment_entry *entry,
			    struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);
	struct attachment record;
	bool udp_clients = false;
	int result;

	if (lock < 0)
		return -1;
	if (!attachment_read(&datapath->objects, &entry->key, &record) ||
	    !owner_is(record.owner, entry->attachment.owner))
		return 0;
	result = remove_locked(&datapath->objects, &entry->key, &udp_clients, err);
	follow_udp_clients(&datapath->objects, udp_clients, &lock);
	return result;
}

static int write_slot(const struct objects *objects, const struct attachment_claims *claims,
		      struct owner owner, struct cni_error *err)
{
	struct slot slot = {.generation = owner.generation, .ifindex = claims->ifindex};

	memcpy(slot.host_mac, claims->host_mac, sizeof(slot.host_mac));
	memcpy(slot.attachment, claims->key.name, sizeof(slot.attachment));
	return slot_write(objects, owner.slot, &slot, err);
}

static int add_locked(const struct objects *objects, struct nl_sock *socket,
		      const struct attachment_claims *claims, struct cni_error *err)
{
	struct attachment record = {
		.since = (uint64_t)time(NULL),
		.ifindex = claims->ifindex,
		.state = ATTACHMENT_ADDING,
		.host_ports = (uint32_t)claims->port_count,
	};

	memcpy(record.host_mac, claims->host_mac, sizeof(record.host_mac));
	if (masquerade_ports_refresh(objects, err) || owner_allocate(objects, &record.owner, err) ||
	    write_slot(objects, claims, record.owner, err) ||
	    attachment_write(objects, &claims->key, &record, err) ||
	    policy_write(objects, record.owner, claims->policy, err) ||
	    claims_write(objects, socket, claims, &record, err) ||
	    owner_set_live(objects, record.owner, true, err))
		return -1;
	record.state = ATTACHMENT_READY;
	return attachment_write(objects, &claims->key, &record, err);
}

static int require_veth(struct nl_sock *socket, uint32_t ifindex, struct cni_error *err)
{
	struct link veth;

	if (link_get(socket, ifindex, NULL, &veth, err))
		return -1;
	if (veth.ifindex)
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the host's end of the container's veth (interface number %u)"
			     " went away during ADD",
			     ifindex);
}

static bool has_udp_clients(const struct objects *objects, const struct attachment_claims *claims)
{
	struct noticed noticed;

	noticed_read(objects, &noticed);
	for (size_t i = 0; i < claims->port_count; i++)
		if (claims->ports[i].localhost &&
		    udp_clients_are_known(&noticed, &claims->ports[i].key))
			return true;
	return false;
}

static int replace_locked(const struct objects *objects, struct nl_sock *socket,
			  const struct attachment_claims *claims, bool *udp_clients,
			  struct cni_error *err)
{
	struct cni_error undoing = {0};

	/* What it had before goes first, so that a killed re-ADD leaves one owner to find. */
	if (remove_locked(objects, &claims->key, udp_clients, err))
		return -1;
	if (!add_locked(objects, socket, claims, err)) {
		*udp_clients |= claims->port_count && has_udp_clients(objects, claims);
		return 0;
	}
	if (remove_locked(objects, &claims->key, udp_clients, &undoing)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&undoing));
		cni_error_release(&undoing);
	}
	return -1;
}

int attachment_add(const struct datapath *datapath, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err)
{
	cleanup_lock int lock = lock_take(err);
	bool udp_clients = false;
	int result;

	/* Before it may claim anything: the container may have been deleted meanwhile. */
	if (lock < 0 || require_veth(socket, claims->ifindex, err))
		return -1;
	result = replace_locked(&datapath->objects, socket, claims, &udp_clients, err);
	follow_udp_clients(&datapath->objects, udp_clients, &lock);
	return result;
}

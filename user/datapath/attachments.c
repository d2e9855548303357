/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments.c - what an attachment owns in the maps. */
#include "datapath/attachments.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datapath/lock.h"
#include "datapath/maps.h"
#include "datapath/owners.h"
#include "datapath/refusal.h"
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

/* --- removing ----------------------------------------------------------------------- */

struct removal {
	const struct objects *objects;
	struct owner owner;
	uint32_t left; /* stop after so many */
	int failure;   /* errno */
};

static bool remove_portmap(const void *key, const void *value, void *context)
{
	const struct portmap *portmap = value;
	struct removal *removal = context;

	if (!owner_is(portmap->owner, removal->owner))
		return true;
	if (bpf_map_delete_elem(removal->objects->maps[MAP_PORTMAPS], key) && errno != ENOENT)
		removal->failure = errno;
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
			struct cni_error *err)
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
	if (maps_walk(objects->maps[MAP_PORTMAPS], sizeof(struct portmap_key),
		      sizeof(struct portmap), remove_portmap, &removal))
		removal.failure = errno;
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
			 struct cni_error *err)
{
	struct attachment record;

	if (!attachment_read(objects, key, &record))
		return 0;
	if (owner_set_live(objects, record.owner, false, err) ||
	    remove_ports(objects, &record, err) || remove_endpoints(objects, &record, err))
		return -1;
	remove_interface(objects, &record);
	if (bpf_map_delete_elem(objects->maps[MAP_ATTACHMENTS], key) && errno != ENOENT)
		return refusal_set(err, errno, "cannot delete from the map attachments");
	owner_free(objects, record.owner);
	return 0;
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
	bool found;

	if (exists(&datapath->objects, key, &found, err))
		return -1;
	if (!found)
		return 0;
	lock = lock_take(err);
	if (lock < 0)
		return -1;
	return remove_locked(&datapath->objects, key, err);
}

/* --- adding ------------------------------------------------------------------------- */

static const char *protocol_name(enum protocol protocol)
{
	return protocol == PROTOCOL_UDP ? "udp" : "tcp";
}

static void describe_port(const struct portmap_key *key, char *text, size_t size)
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	const char *where = cni_address_format(key->host_address, address);

	if (!memcmp(key->host_address, cni_address_any_ipv4, CNI_ADDRESS_SIZE))
		where = "any IPv4 address";
	else if (!memcmp(key->host_address, cni_address_any_ipv6, CNI_ADDRESS_SIZE))
		where = "any IPv6 address";
	snprintf(text, size, "host port %u/%s of %s", key->host_port, protocol_name(key->protocol),
		 where);
}

static void describe_time(uint64_t seconds, char *text, size_t size)
{
	time_t time = (time_t)seconds;
	struct tm parts;

	if (!gmtime_r(&time, &parts) || !strftime(text, size, "%Y-%m-%dT%H:%M:%SZ", &parts))
		snprintf(text, size, "an unknown time");
}

/* "container x, interface eth0, network y" from "y/x/eth0". */
static void describe_attachment(const char *name, char *text, size_t size)
{
	char parts[ATTACHMENT_KEY_SIZE];
	char *container, *ifname;

	snprintf(parts, sizeof(parts), "%s", name);
	container = strchr(parts, '/');
	ifname = container ? strchr(container + 1, '/') : NULL;
	if (!ifname) {
		snprintf(text, size, "an unknown attachment");
		return;
	}
	*container = *ifname = '\0';
	snprintf(text, size, "container %s, interface %s, network %s", container + 1, ifname + 1,
		 parts);
}

static int refuse_port(const struct objects *objects, const struct portmap_key *key,
		       const struct slot *owner, struct cni_error *err)
{
	char port[128], who[ATTACHMENT_KEY_SIZE + 64], since[32] = "an unknown time";
	struct attachment_key owner_key = {0};
	struct attachment record;

	memcpy(owner_key.name, owner->attachment, sizeof(owner_key.name));
	if (attachment_read(objects, &owner_key, &record))
		describe_time(record.since, since, sizeof(since));
	describe_port(key, port, sizeof(port));
	describe_attachment(owner->attachment, who, sizeof(who));
	return cni_error_set(err, CNI_ERROR_PORT_TAKEN,
			     "%s is taken by %s, since %s; choose another host port or hostIP, or"
			     " delete that container",
			     port, who, since);
}

static void warn_about_dead_owner(const struct portmap_key *key, const struct slot *owner)
{
	char port[128], who[ATTACHMENT_KEY_SIZE + 64];

	describe_port(key, port, sizeof(port));
	describe_attachment(owner->attachment, who, sizeof(who));
	warning("%s is taken over from %s, whose veth is gone or whose ADD or DEL was not finished",
		port, who);
}

static int take_over_port(const struct objects *objects, struct nl_sock *socket,
			  const struct portmap_key *key, const struct portmap *portmap,
			  struct cni_error *err)
{
	struct portmap old;
	struct slot owner;

	if (portmap_read(objects, key, &old)) {
		if (owner_is_alive(objects, socket, old.owner, &owner))
			return refuse_port(objects, key, &owner, err);
		warn_about_dead_owner(key, &owner);
		if (owner_set_live(objects, old.owner, false, err))
			return -1;
	}
	if (bpf_map_update_elem(objects->maps[MAP_PORTMAPS], key, portmap, BPF_ANY))
		return refusal_set(err, errno, "cannot write to the map portmaps");
	return 0;
}

static int claim_port(const struct objects *objects, struct nl_sock *socket,
		      const struct port_claim *claim, struct owner owner, struct cni_error *err)
{
	struct portmap portmap = {.owner = owner, .container_port = claim->container_port};

	memcpy(portmap.container_address, claim->container_address, CNI_ADDRESS_SIZE);
	if (!bpf_map_update_elem(objects->maps[MAP_PORTMAPS], &claim->key, &portmap, BPF_NOEXIST))
		return 0;
	if (errno == EEXIST)
		return take_over_port(objects, socket, &claim->key, &portmap, err);
	if (errno == E2BIG)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "all %d port mappings that a host can have are in use",
				     MAX_PORTMAPS);
	return refusal_set(err, errno, "cannot write to the map portmaps");
}

static int claim_endpoint(const struct objects *objects, struct nl_sock *socket,
			  const struct endpoint_claim *claim, struct owner owner,
			  struct cni_error *err)
{
	struct endpoint endpoint = {
		.owner = owner,
		.prefix_length = claim->prefix_length,
		.masquerade = claim->masquerade,
	};
	char address[CNI_ADDRESS_TEXT_SIZE], who[ATTACHMENT_KEY_SIZE + 64];
	struct endpoint old;
	struct slot old_owner;

	if (endpoint_read(objects, &claim->key, &old) &&
	    owner_is_alive(objects, socket, old.owner, &old_owner)) {
		describe_attachment(old_owner.attachment, who, sizeof(who));
		warning("address %s belongs to %s too; the newest has it now",
			cni_address_format(claim->key.address, address), who);
	}
	if (bpf_map_update_elem(objects->maps[MAP_ENDPOINTS], &claim->key, &endpoint, BPF_ANY))
		return refusal_set(err, errno, "cannot write to the map endpoints");
	return 0;
}

static int claim_all(const struct objects *objects, struct nl_sock *socket,
		     const struct attachment_claims *claims, struct owner owner,
		     struct cni_error *err)
{
	struct interface interface = claims->interface;

	for (size_t i = 0; i < claims->port_count; i++)
		if (claim_port(objects, socket, &claims->ports[i], owner, err))
			return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (claim_endpoint(objects, socket, &claims->endpoints[i], owner, err))
			return -1;
	interface.owner = owner;
	return interface_write(objects, claims->ifindex, &interface, err);
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
	if (owner_allocate(objects, &record.owner, err) ||
	    write_slot(objects, claims, record.owner, err) ||
	    attachment_write(objects, &claims->key, &record, err) ||
	    claim_all(objects, socket, claims, record.owner, err) ||
	    owner_set_live(objects, record.owner, true, err))
		return -1;
	record.state = ATTACHMENT_READY;
	return attachment_write(objects, &claims->key, &record, err);
}

int attachment_add(const struct datapath *datapath, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct cni_error undoing = {0};
	cleanup_lock int lock = lock_take(err);

	if (lock < 0)
		return -1;
	/* Before it may claim anything: the container may have been deleted meanwhile. */
	if (!link_has_mac(socket, claims->ifindex, claims->host_mac))
		return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
				     "the host's end of the container's veth (interface number %u)"
				     " went away during ADD",
				     claims->ifindex);
	/* What it had before goes first, so that a killed re-ADD leaves one owner to find. */
	if (remove_locked(objects, &claims->key, err))
		return -1;
	if (!add_locked(objects, socket, claims, err))
		return 0;
	if (remove_locked(objects, &claims->key, &undoing)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&undoing));
		cni_error_release(&undoing);
	}
	return -1;
}

/* --- looking ------------------------------------------------------------------------ */

bool attachment_has_veth(struct nl_sock *socket, const struct attachment *attachment)
{
	return link_has_mac(socket, attachment->ifindex, attachment->host_mac);
}

static int verify_port(const struct objects *objects, const struct port_claim *claim,
		       struct owner owner, struct cni_error *err)
{
	struct portmap portmap;
	struct slot other;
	char port[128];

	describe_port(&claim->key, port, sizeof(port));
	if (!portmap_read(objects, &claim->key, &portmap))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "%s is not mapped: its entry in portmaps is missing", port);
	if (!owner_is(portmap.owner, owner)) {
		if (slot_read(objects, portmap.owner.slot, &other) &&
		    other.generation == portmap.owner.generation)
			return refuse_port(objects, &claim->key, &other, err);
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "%s belongs to an attachment that is gone", port);
	}
	if (portmap.container_port != claim->container_port ||
	    memcmp(portmap.container_address, claim->container_address, CNI_ADDRESS_SIZE))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "%s is mapped to another address or port than it should be",
				     port);
	return 0;
}

static int verify_endpoint(const struct objects *objects, const struct endpoint_claim *claim,
			   struct owner owner, struct cni_error *err)
{
	char address[CNI_ADDRESS_TEXT_SIZE];
	struct endpoint endpoint;

	cni_address_format(claim->key.address, address);
	if (!endpoint_read(objects, &claim->key, &endpoint))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "address %s of the container is missing in endpoints",
				     address);
	if (!owner_is(endpoint.owner, owner))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "address %s of the container belongs to another attachment",
				     address);
	if (endpoint.masquerade != claim->masquerade ||
	    endpoint.prefix_length != claim->prefix_length)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "address %s of the container has another prefix length or"
				     " masquerade setting than it should have",
				     address);
	return 0;
}

struct port_count {
	struct owner owner;
	uint32_t count;
};

static bool count_port(const void *key, const void *value, void *context)
{
	const struct portmap *portmap = value;
	struct port_count *ports = context;

	ports->count += owner_is(portmap->owner, ports->owner);
	return true;
}

static int verify_port_count(const struct objects *objects, const struct attachment *record,
			     struct cni_error *err)
{
	struct port_count ports = {.owner = record->owner};

	if (maps_walk(objects->maps[MAP_PORTMAPS], sizeof(struct portmap_key),
		      sizeof(struct portmap), count_port, &ports))
		return refusal_set(err, errno, "cannot read the map portmaps");
	if (ports.count == record->host_ports)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%u of the %u host ports of this container are in portmaps",
			     ports.count, record->host_ports);
}

static int verify_record(const struct objects *objects, const struct attachment_claims *claims,
			 struct attachment *record, struct cni_error *err)
{
	struct interface interface;
	struct slot slot;

	if (!attachment_read(objects, &claims->key, record))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "nothing is known of the attachment %s", claims->key.name);
	if (record->state != ATTACHMENT_READY || !slot_read(objects, record->owner.slot, &slot) ||
	    slot.generation != record->owner.generation || !slot.live)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was left unfinished by an ADD or DEL",
				     claims->key.name);
	if (record->ifindex != claims->ifindex ||
	    memcmp(record->host_mac, claims->host_mac, sizeof(record->host_mac)))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was made with another veth",
				     claims->key.name);
	if (!interface_read(objects, claims->ifindex, &interface) ||
	    !owner_is(interface.owner, record->owner) || interface.role != claims->interface.role)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the veth of the attachment %s is missing in interfaces",
				     claims->key.name);
	return 0;
}

int attachment_verify(const struct datapath *datapath, const struct attachment_claims *claims,
		      bool with_ports, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct attachment record;

	if (verify_record(objects, claims, &record, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (verify_endpoint(objects, &claims->endpoints[i], record.owner, err))
			return -1;
	for (size_t i = 0; with_ports && i < claims->port_count; i++)
		if (verify_port(objects, &claims->ports[i], record.owner, err))
			return -1;
	return verify_port_count(objects, &record, err);
}

struct listing {
	struct attachment_entry *entries;
	size_t count, capacity;
	bool failed;
};

static bool append_entry(const void *key, const void *value, void *context)
{
	struct listing *listing = context;

	if (listing->count == listing->capacity) {
		size_t capacity = listing->capacity ? 2 * listing->capacity : 64;
		void *entries = realloc(listing->entries, capacity * sizeof(*listing->entries));

		if (!entries) {
			listing->failed = true;
			return false;
		}
		listing->entries = entries;
		listing->capacity = capacity;
	}
	memcpy(&listing->entries[listing->count].key, key, sizeof(struct attachment_key));
	memcpy(&listing->entries[listing->count].attachment, value, sizeof(struct attachment));
	listing->entries[listing->count].key.name[ATTACHMENT_KEY_SIZE - 1] = '\0';
	listing->count++;
	return true;
}

int attachment_list(const struct datapath *datapath, struct attachment_entry **entries,
		    size_t *count, struct cni_error *err)
{
	struct listing listing = {0};
	int result =
		maps_walk(datapath->objects.maps[MAP_ATTACHMENTS], sizeof(struct attachment_key),
			  sizeof(struct attachment), append_entry, &listing);

	if (!result && !listing.failed) {
		*entries = listing.entries;
		*count = listing.count;
		return 0;
	}
	free(listing.entries);
	if (listing.failed)
		return cni_error_no_memory(err);
	return refusal_set(err, errno, "cannot read the map attachments");
}

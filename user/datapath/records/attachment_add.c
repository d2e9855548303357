/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_add.c - making what an attachment owns in the maps. */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/containers.h"
#include "datapath/records/networks.h"
#include "lib/address.h"
#include "lib/error.h"
#include "net/link.h"
#include "net/host_settings.h"
#include "datapath/records/attachments.h"
#include "datapath/records/attachment.h"
#include "datapath/records/bitmaps.h"
#include "datapath/records/port_taken.h"

/* What ADD works with while it has the lock. */
struct adding {
	struct release release; /* of what the attachment had before, and of dead owners */
	const struct attachment_claims *claims;
	struct attachment record; /* as they are written */
	struct slot slot;
	struct network_key network_key;
	struct network network; /* as it is in the map; zeros: it is not */
	/* A port that somebody else has. To say whose it is takes a look at every process, and so
	 * waits for the lock's end. */
	const struct portmap_key *taken;
	struct slot taken_by;
};

/* Finds where the container's frames to its gateway go, as slots have it: to the bridge, or to the
 * veth's own end. The first command that sees that a bridge's MAC has changed writes it to all
 * entries, under the lock. */
static void find_gateway(const struct objects *objects, const struct attachment_claims *claims,
			 uint8_t mac[6])
{
	const struct interface *veth = &claims->interface;
	struct interface bridge;

	if (veth->role != ROLE_PORT)
		memcpy(mac, claims->host_mac, sizeof(claims->host_mac));
	else if (interface_read(objects, veth->bridge_ifindex, &bridge) &&
		 bridge.role == ROLE_BRIDGE)
		memcpy(mac, bridge.bridge_mac, sizeof(bridge.bridge_mac));
	else
		memcpy(mac, veth->bridge_mac, sizeof(veth->bridge_mac));
}

/* Engines ask for a container's ports on each of its networks. The second waits. */
static int wait_for_port(struct adding *adding, const struct portmap_key *key,
			 const struct portmap *portmap, struct cni_error *err)
{
	const struct portmap_succession entry = {.now = *portmap};
	struct portmap_key waiting = *key;

	waiting.waiter = (__u16)adding->record.owner.slot;
	if (map_write(adding->release.objects, MAP_PORTMAPS, &waiting, &entry, err))
		return -1;
	adding->record.host_ports++;
	return 0;
}

static int take_over_port(struct adding *adding, const struct portmap_key *key,
			  const struct portmap *portmap, struct cni_error *err)
{
	char port[DESCRIBED_PORT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE];
	const struct objects *objects = adding->release.objects;
	struct attachment_key dead;
	struct attachment record;
	struct portmap old;
	struct slot owner;

	if (portmap_read(objects, key, &old)) {
		if (owner_is_live_with_veth(objects, old.owner, &owner)) {
			if (owner.container == adding->slot.container)
				return wait_for_port(adding, key, portmap, err);
			/* Its port is taken over once this container's slot lives. */
			if (workload_has_slot(objects, &adding->record.workload, old.owner.slot,
					      &owner)) {
				adding->record.replaces = true;
				adding->record.host_ports++;
				return 0;
			}
			adding->taken = key;
			adding->taken_by = owner;
			return -1;
		}
		describe_port(key, port);
		describe_attachment(objects, owner.attachment, who);
		warning("%s is taken over from %s, whose veth is gone, or whose record is"
			" unfinished",
			port, who);
		/* DEL may never be called for it: engines forget what was killed together with its
		 * namespace. So all that it has is removed, not only the port that is claimed. */
		slot_get_key(&owner, &dead);
		if (attachment_read(objects, &dead, &record) && owner_is(record.owner, old.owner) &&
		    attachment_remove_locked(&adding->release, &dead, err))
			return -1;
	}
	/* What the dead one had may have been handed over to the same container's other network. */
	if (portmap_read(objects, key, &old) && owner_is_live_with_veth(objects, old.owner, &owner))
		return take_over_port(adding, key, portmap, err);
	if (map_write(objects, MAP_PORTMAPS, key, &(struct portmap_succession){.now = *portmap},
		      err))
		return -1;
	adding->record.host_ports++;
	return 0;
}

/* Makes the entry of a port that nobody has at this address. Where a container of the same workload
 * has it at any address, that one goes on here until the new one serves the port. */
static struct portmap_succession begin_entry(const struct adding *adding,
					     const struct port_claim *claim)
{
	const struct objects *objects = adding->release.objects;
	struct portmap_succession entry = {.now = claim->portmap};
	struct portmap_key any = claim->key;
	struct slot other;

	entry.now.owner = adding->record.owner;
	memcpy(any.host_address,
	       cni_address_is_ipv4(any.host_address) ? cni_address_any_ipv4 : cni_address_any_ipv6,
	       CNI_ADDRESS_SIZE);
	if (adding->record.workload.kind != WORKLOAD_NONE &&
	    memcmp(&any, &claim->key, sizeof(any)) != 0 &&
	    portmap_read(objects, &any, &entry.before) &&
	    owner_is_live_with_veth(objects, entry.before.owner, &other) &&
	    other.container != adding->slot.container &&
	    workload_has_slot(objects, &adding->record.workload, entry.before.owner.slot, &other))
		entry.before.of_any_address = 1;
	else
		entry.before = (struct portmap){0};
	return entry;
}

static int claim_port(struct adding *adding, const struct port_claim *claim, struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct portmap_succession entry = begin_entry(adding, claim);

	if (bpf_map_update_elem(map_fd(objects, MAP_PORTMAPS), &claim->key, &entry, BPF_NOEXIST)) {
		if (errno == EEXIST)
			return take_over_port(adding, &claim->key, &entry.now, err);
		return map_refuse_write(objects, MAP_PORTMAPS, err);
	}
	adding->record.host_ports++;
	return 0;
}

static int compare_key(const void *key, const void *claim)
{
	return memcmp(key, &((const struct port_claim *)claim)->key, sizeof(struct portmap_key));
}

/* False: at least one is not, or there are more entries to go through than it would save. */
static bool ports_are_all_free(const struct objects *objects,
			       const struct attachment_claims *claims)
{
	cleanup_walk struct map_walk walk = {.objects = objects, .map = MAP_PORTMAPS};
	size_t visited = 0;

	while (map_next(&walk, NULL))
		if (++visited > claims->port_count ||
		    bsearch(walk.key, claims->ports, claims->port_count, sizeof(*claims->ports),
			    compare_key))
			return false;
	return !walk.failed;
}

static int write_batch(struct adding *adding, const struct port_claim *claims, uint32_t count,
		       struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct portmap_key keys[PORT_BATCH];
	struct portmap_succession entries[PORT_BATCH];

	for (uint32_t i = 0; i < count; i++) {
		keys[i] = claims[i].key;
		entries[i] = begin_entry(adding, &claims[i]);
	}
	if (bpf_map_update_batch(map_fd(objects, MAP_PORTMAPS), keys, entries, &count, NULL))
		return map_refuse_write(objects, MAP_PORTMAPS, err);
	adding->record.host_ports += count;
	return 0;
}

/* A batch overwrites what is there, so it is only for ports that were seen to be free; under the
 * lock they stay free. */
static int claim_ports(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;

	if (claims->port_count <= PORT_BATCH ||
	    !ports_are_all_free(adding->release.objects, claims)) {
		/* Backwards, so that a message names the IPv4 port before the IPv6 port. */
		for (size_t i = claims->port_count; i-- > 0;)
			if (claim_port(adding, &claims->ports[i], err))
				return -1;
		return 0;
	}
	for (size_t i = 0; i < claims->port_count; i += PORT_BATCH) {
		size_t left = claims->port_count - i;

		if (write_batch(adding, &claims->ports[i],
				(uint32_t)(left < PORT_BATCH ? left : PORT_BATCH), err))
			return -1;
	}
	return 0;
}

static int claim_endpoint(struct adding *adding, const struct endpoint_claim *claim,
			  struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct endpoint endpoint = claim->endpoint;
	char address[CNI_ADDRESS_TEXT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE];
	struct endpoint old;
	struct slot old_owner;

	endpoint.owner = adding->record.owner;
	/* Nearly always nobody has it. */
	if (!bpf_map_update_elem(map_fd(objects, MAP_ENDPOINTS), &claim->key, &endpoint,
				 BPF_NOEXIST))
		return 0;
	if (endpoint_read(objects, &claim->key, &old) &&
	    owner_is_live_with_veth(objects, old.owner, &old_owner)) {
		describe_attachment(objects, old_owner.attachment, who);
		warning("address %s belongs to %s too; the newest has it now",
			cni_address_format(claim->key.address, address), who);
		endpoint.shared = 1;
	}
	return endpoint_write(objects, &claim->key, &endpoint, err);
}

/* Writes ports, endpoints and the interface for the record's owner. The record then has the number
 * of ports that are its own, or for which it waits: those that the same container has by another
 * interface stay there. A port whose owner is dead is taken over with a warning, and that owner is
 * released; an address is taken over in any case. What was written before a failure stays. Call it
 * with the lock. CNI_ERROR_PORT_TAKEN naming the owner, CNI_ERROR_KERNEL_REFUSED. */
static int claims_write(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->release.objects;
	struct interface interface = claims->interface;

	adding->record.host_ports = 0;
	if (bitmaps_mark(objects, claims, err) || claim_ports(adding, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (claim_endpoint(adding, &claims->endpoints[i], err))
			return -1;
	interface.owner = adding->record.owner;
	if (interface.role == ROLE_PORT)
		memcpy(interface.bridge_mac, adding->slot.gateway_mac, LINK_MAC_SIZE);
	return interface_write(objects, claims->ifindex, &interface, err);
}

/* Makes the slot, which is not live yet. */
static struct slot slot_of(const struct adding *adding)
{
	const struct objects *objects = adding->release.objects;
	const struct attachment_claims *claims = adding->claims;
	struct slot slot = {
		.generation = adding->record.owner.generation,
		.ifindex = claims->ifindex,
		.gateway = claims->interface.role == ROLE_PORT ? claims->interface.bridge_ifindex
							       : claims->ifindex,
		.fast_path = claims->fast_path,
		.has_policy = !policy_says_nothing(claims->policy),
		.network = adding->network.number,
		.container = claims->container,
		.netns_id = claims->netns_id,
	};

	find_gateway(objects, claims, slot.gateway_mac);
	memcpy(slot.host_mac, claims->host_mac, sizeof(slot.host_mac));
	memcpy(slot.container_mac, claims->container_mac, sizeof(slot.container_mac));
	memcpy(slot.attachment, claims->key.name, sizeof(slot.attachment));
	return slot;
}

/* Takes the ports over of those that this container replaces. It is not live earlier, and in
 * between they would lead nowhere. What was taken before a failure is given back by the removal. */
static int replace_others(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->release.objects;
	char who[DESCRIBED_ATTACHMENT_SIZE];
	struct owner lost, told = {0};
	struct portmap portmap;
	struct slot other;

	for (size_t i = 0; i < claims->port_count; i++) {
		if (!portmap_read(objects, &claims->ports[i].key, &portmap) ||
		    owner_is(portmap.owner, adding->record.owner) ||
		    !owner_read(objects, portmap.owner, &other) ||
		    other.container == adding->slot.container)
			continue;
		portmap = claims->ports[i].portmap;
		portmap.owner = adding->record.owner;
		if (replacement_take(objects, &claims->ports[i].key, &portmap, &lost, err))
			return -1;
		if (!lost.slot || owner_is(lost, told) || !owner_read(objects, lost, &other))
			continue;
		told = lost;
		describe_attachment(objects, other.attachment, who);
		warning("connections of %s end, which was replaced three times and has not been"
			" deleted yet",
			who);
	}
	return 0;
}

static struct attachment record_of(const struct attachment_claims *claims)
{
	struct attachment record = {
		.state = ATTACHMENT_ADDING,
		.since = (uint64_t)time(NULL),
		.ifindex = claims->ifindex,
		.host_ports = (uint32_t)claims->port_count,
		.endpoints = (uint32_t)claims->endpoint_count,
		.workload = claims->workload,
	};

	memcpy(record.host_mac, claims->host_mac, sizeof(record.host_mac));
	memcpy(record.container_mac, claims->bridge_entry_mac, sizeof(record.container_mac));
	return record;
}

/* A network that is new has the veth of its first container as its witness, until that has an
 * owner (networks.h). */
static void bear_witness(struct adding *adding)
{
	cleanup_error struct cni_error failure = {0};
	struct network *network = &adding->network;

	if (!network->veth || network->witness.slot)
		return;
	network->witness = adding->record.owner;
	network->veth = adding->claims->ifindex;
	if (network_write(adding->release.objects, &adding->network_key, network, &failure))
		warning("%s", cni_error_message(&failure));
}

static int add_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->release.objects;
	struct attachment *record = &adding->record;
	struct owner *owner = &record->owner;
	struct slot *slot = &adding->slot;
	struct attachment_name name;
	struct meta meta;
	bool had_policy;

	*record = record_of(claims);
	if (!attachment_name_split(claims->key.name, &name) ||
	    !network_read_by_name(objects, name.network, &adding->network_key, &adding->network))
		adding->network = (struct network){0};
	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	port_ranges_follow(&meta);
	if (owner_allocate(objects, &meta, owner, &had_policy, err) ||
	    meta_write(objects, &meta, err))
		return -1;
	*slot = slot_of(adding);
	if (slot_write(objects, owner->slot, slot, err) ||
	    map_write(objects, MAP_VETHS, &owner->slot, &claims->ifindex, err) ||
	    attachment_write(objects, &claims->key, record, err) ||
	    ((slot->has_policy || had_policy) &&
	     policy_write(objects, *owner, claims->policy, err)) ||
	    claims_write(adding, err) ||
	    container_add_homes(objects, claims, slot, owner->slot, err))
		return -1;
	slot->live = true;
	if (slot_write(objects, owner->slot, slot, err))
		return -1;
	/* The record says so first: a removal gives back what a killed ADD has taken over. */
	if (record->replaces &&
	    (attachment_write(objects, &claims->key, record, err) || replace_others(adding, err)))
		return -1;
	record->state = ATTACHMENT_READY;
	if (attachment_write(objects, &claims->key, record, err))
		return -1;
	bear_witness(adding);
	return 0;
}

static int replace_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	struct cni_error undoing = {0};

	/* What it had before goes first, so that a killed re-ADD leaves one owner to find. */
	if (attachment_remove_locked(&adding->release, &claims->key, err))
		return -1;
	if (!add_locked(adding, err))
		return 0;
	if (attachment_remove_locked(&adding->release, &claims->key, &undoing)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&undoing));
		cni_error_release(&undoing);
	}
	return -1;
}

/* The container may have been deleted meanwhile, which is then also why the kernel refuses what is
 * about the veth. */
static int refuse_if_gone(const struct attachment_claims *claims, struct cni_error *err)
{
	char name[IF_NAMESIZE];

	if (link_name(claims->ifindex, name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the host's end of the container's veth (interface number %u)"
			     " went away during ADD",
			     claims->ifindex);
}

int attachment_open_maps(const struct objects *objects, struct cni_error *err)
{
	static const enum map_number written[] = {
		MAP_SLOTS,      MAP_VETHS,           MAP_ATTACHMENTS, MAP_POLICIES,
		MAP_PORTMAPS,   MAP_PUBLISHED_PORTS, MAP_ENDPOINTS,   MAP_ENDPOINT_ADDRESSES,
		MAP_CONTAINERS, MAP_INTERFACES,      MAP_NETWORKS,    MAP_NAT_PORTS,
	};

	for (size_t i = 0; i < sizeof(written) / sizeof(*written); i++)
		if (map_fd(objects, written[i]) < 0)
			return map_refuse_read(written[i], err);
	return 0;
}

int attachment_add(const struct objects *objects, const struct attachment_claims *claims,
		   struct cni_error *err)
{
	struct adding adding = {
		.release = {.objects = objects, .likely = claims},
		.claims = claims,
	};
	cleanup_lock int lock = lock_take_claims(err);
	int result;

	/* Before it may claim anything. */
	if (lock < 0 || refuse_if_gone(claims, err))
		return -1;
	result = replace_locked(&adding, err);
	cleanup_close_pointer(&lock);
	if (adding.taken)
		return refuse_taken_port(objects, adding.taken, &adding.taken_by, err);
	if (result)
		refuse_if_gone(claims, err);
	return result;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* claims_write.c - getting what an attachment asks for. */
#include "datapath/records/claims_write.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datapath/records/attachment_name.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/describe.h"
#include "datapath/records/stale_slots.h"
#include "datapath/records/owners.h"
#include "lib/warning.h"

static void warn_about_dead_owner(const struct objects *objects, const struct portmap_key *key,
				  const struct slot *owner)
{
	char port[DESCRIBED_PORT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE];

	describe_port(key, port);
	describe_attachment(objects, owner->attachment, who);
	warning_passing(
		"%s is taken over from %s, whose veth is gone, or whose record is unfinished or"
		" damaged",
		port, who);
}

static int write_port(struct adding *adding, const struct portmap_key *key,
		      const struct portmap *portmap, struct cni_error *err)
{
	if (map_write(adding->release.objects, MAP_PORTMAPS, key, portmap, err))
		return -1;
	adding->record.host_ports++;
	return 0;
}

/* DEL may never be called for it: engines forget what was killed together with its namespace. So
 * all that it has is removed, not only the port that is claimed. */
static int remove_dead_owner(struct adding *adding, const struct portmap *portmap,
			     const struct slot *owner, struct cni_error *err)
{
	struct attachment_key key;
	struct attachment record;

	slot_get_key(owner, &key);
	if (attachment_read(adding->release.objects, &key, &record) &&
	    owner_is(record.owner, portmap->owner))
		return attachment_remove_locked(&adding->release, &key, err);
	return stale_slots_sweep(adding->release.objects, err);
}

static int take_over_port(struct adding *adding, const struct portmap_key *key,
			  const struct portmap *portmap, struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct portmap old;
	struct slot owner;

	if (!portmap_read(objects, key, &old))
		return write_port(adding, key, portmap, err);
	if (owner_is_live_with_veth(objects, adding->socket, old.owner, &owner)) {
		/* Engines ask for a container's ports on each of its networks. */
		if (attachments_are_of_one_container(owner.attachment, adding->claims->key.name))
			return 0;
		return refuse_taken_port(objects, key, &owner, err);
	}
	warn_about_dead_owner(objects, key, &owner);
	if (remove_dead_owner(adding, &old, &owner, err))
		return -1;
	return write_port(adding, key, portmap, err);
}

static void fill_portmap(struct portmap *portmap, const struct port_claim *claim,
			 struct owner owner)
{
	*portmap = (struct portmap){
		.owner = owner,
		.container_port = claim->container_port,
		.localhost = claim->localhost,
		.reserved_on_host = claim->reserved_on_host,
	};
	memcpy(portmap->container_address, claim->container_address, CNI_ADDRESS_SIZE);
}

static int claim_port(struct adding *adding, const struct port_claim *claim, struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct portmap portmap;

	fill_portmap(&portmap, claim, adding->record.owner);
	if (bpf_map_update_elem(objects->maps[MAP_PORTMAPS], &claim->key, &portmap, BPF_NOEXIST)) {
		if (errno == EEXIST)
			return take_over_port(adding, &claim->key, &portmap, err);
		return map_refuse_write(objects, MAP_PORTMAPS, err);
	}
	adding->record.host_ports++;
	return 0;
}

struct search {
	const struct attachment_claims *claims;
	size_t visited;
	bool given_up;
};

static int compare_key(const void *key, const void *claim)
{
	return memcmp(key, &((const struct port_claim *)claim)->key, sizeof(struct portmap_key));
}

static enum walk search_entry(const void *key, const void *value, void *context,
			      struct cni_error *err)
{
	struct search *search = context;
	const struct attachment_claims *claims = search->claims;

	/* To walk through more entries costs more than it saves. */
	search->given_up = ++search->visited > claims->port_count ||
			   bsearch(key, claims->ports, claims->port_count, sizeof(*claims->ports),
				   compare_key);
	return search->given_up ? WALK_ENOUGH : WALK_ON;
}

/* False: at least one is not, or it takes too long to find out. */
static bool ports_are_all_free(const struct objects *objects,
			       const struct attachment_claims *claims)
{
	struct search search = {.claims = claims};
	struct cni_error ignored = {0};
	int result = map_walk(objects, MAP_PORTMAPS, search_entry, &search, &ignored);

	cni_error_release(&ignored);
	return !result && !search.given_up;
}

static int write_batch(struct adding *adding, const struct port_claim *claims, uint32_t count,
		       struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct portmap_key keys[PORT_BATCH];
	struct portmap portmaps[PORT_BATCH];

	for (uint32_t i = 0; i < count; i++) {
		keys[i] = claims[i].key;
		fill_portmap(&portmaps[i], &claims[i], adding->record.owner);
	}
	if (bpf_map_update_batch(objects->maps[MAP_PORTMAPS], keys, portmaps, &count, NULL))
		return map_refuse_write(objects, MAP_PORTMAPS, err);
	adding->record.host_ports += count;
	return 0;
}

static int claim_each(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;

	/* Backwards, so that a message names the IPv4 port before the IPv6 port. */
	for (size_t i = claims->port_count; i-- > 0;)
		if (claim_port(adding, &claims->ports[i], err))
			return -1;
	return 0;
}

/* A batch overwrites what is there, so it is only for ports that were seen to be free; under the
 * lock they stay free. */
static int claim_ports(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;

	if (claims->port_count <= PORT_BATCH ||
	    !ports_are_all_free(adding->release.objects, claims))
		return claim_each(adding, err);
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
	struct endpoint endpoint = {
		.owner = adding->record.owner,
		.prefix_length = claim->prefix_length,
		.masquerade = claim->masquerade,
		.strict = claim->strict,
	};
	char address[CNI_ADDRESS_TEXT_SIZE], who[DESCRIBED_ATTACHMENT_SIZE];
	struct endpoint old;
	struct slot old_owner;

	if (endpoint_read(objects, &claim->key, &old) &&
	    owner_is_live_with_veth(objects, adding->socket, old.owner, &old_owner)) {
		describe_attachment(objects, old_owner.attachment, who);
		warning("address %s belongs to %s too; the newest has it now",
			cni_address_format(claim->key.address, address), who);
		endpoint.shared = 1;
	}
	return endpoint_write(objects, &claim->key, &endpoint, err);
}

int claims_write(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->release.objects;
	struct interface interface = claims->interface;

	adding->record.host_ports = 0;
	if (claims_mark(objects, claims, err) || claim_ports(adding, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (claim_endpoint(adding, &claims->endpoints[i], err))
			return -1;
	interface.owner = adding->record.owner;
	if (interface.role == ROLE_PORT)
		claims_find_gateway(objects, claims, interface.bridge_mac);
	return interface_write(objects, claims->ifindex, &interface, err);
}

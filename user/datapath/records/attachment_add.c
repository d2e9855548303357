/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_add.c - making what an attachment owns in the maps. */
#include "datapath/records/attachment_add.h"

#include <string.h>
#include <time.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"
#include "lib/digest.h"
#include "lib/warning.h"
#include "net/link.h"
#include "datapath/records/attachment_name.h"
#include "datapath/records/attachment_remove.h"
#include "datapath/records/claims_write.h"

static int write_slot(const struct objects *objects, const struct attachment_claims *claims,
		      struct owner owner, struct cni_error *err)
{
	struct slot slot = {
		.generation = owner.generation,
		.ifindex = claims->ifindex,
		.fast_path = claims->fast_path,
		.has_policy = !policy_says_nothing(claims->policy),
	};
	struct attachment_name name;

	if (attachment_name_split(claims->key.name, &name))
		slot.container =
			digest_add(DIGEST_OF_NOTHING, name.container_id, strlen(name.container_id));
	memcpy(slot.host_mac, claims->host_mac, sizeof(slot.host_mac));
	claims_find_gateway(objects, claims, slot.gateway_mac);
	memcpy(slot.attachment, claims->key.name, sizeof(slot.attachment));
	if (slot_write(objects, owner.slot, &slot, err))
		return -1;
	return map_write(objects, MAP_VETHS, &owner.slot, &claims->ifindex, err);
}

static int begin_owner(struct adding *adding, struct cni_error *err)
{
	const struct objects *objects = adding->release.objects;
	struct owner *owner = &adding->record.owner;
	struct meta meta;

	if (!meta_read(objects, &meta))
		return map_refuse_read(MAP_META, err);
	masquerade_ports_follow(&meta, &adding->masquerade_ports);
	if (owner_allocate(objects, &meta, owner, err) || meta_write(objects, &meta, err))
		return -1;
	return write_slot(objects, adding->claims, *owner, err);
}

static int add_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->release.objects;
	struct attachment *record = &adding->record;

	*record = (struct attachment){
		.since = (uint64_t)time(NULL),
		.ifindex = claims->ifindex,
		.state = ATTACHMENT_ADDING,
		.host_ports = (uint32_t)claims->port_count,
		.endpoints = (uint32_t)claims->endpoint_count,
		.workload = *claims->workload,
	};
	memcpy(record->host_mac, claims->host_mac, sizeof(record->host_mac));
	if (begin_owner(adding, err) || attachment_write(objects, &claims->key, record, err) ||
	    policy_write(objects, record->owner, claims->policy, err) ||
	    claims_write(adding, err) || owner_set_live(objects, record->owner, true, err))
		return -1;
	record->state = ATTACHMENT_READY;
	return attachment_write(objects, &claims->key, record, err);
}

static int require_veth(struct nl_sock *socket, uint32_t ifindex, struct cni_error *err)
{
	char name[IF_NAMESIZE];

	if (link_name(socket, ifindex, name))
		return 0;
	return cni_error_set(err, CNI_ERROR_INVALID_CONFIGURATION,
			     "the host's end of the container's veth (interface number %u)"
			     " went away during ADD",
			     ifindex);
}

static int replace_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	struct cni_error undoing = {0};

	/* What it had before goes first, so that a killed re-ADD leaves one owner to find. */
	if (attachment_remove_locked(&adding->release, &claims->key, err))
		return -1;
	if (!add_locked(adding, err)) {
		for (size_t i = 0; i < claims->port_count; i++)
			if (claims->ports[i].localhost)
				udp_ports_add(&adding->release.udp_ports, &claims->ports[i].key);
		return 0;
	}
	if (attachment_remove_locked(&adding->release, &claims->key, &undoing)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&undoing));
		cni_error_release(&undoing);
	}
	return -1;
}

int attachment_add(const struct objects *objects, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err)
{
	struct adding adding = {
		.release = {.objects = objects, .likely = claims},
		.socket = socket,
		.claims = claims,
	};
	cleanup_lock int lock = -1;
	int result;

	masquerade_ports_read(&adding.masquerade_ports);
	lock = lock_take(err);
	/* Before it may claim anything: the container may have been deleted meanwhile. */
	if (lock < 0 || require_veth(socket, claims->ifindex, err))
		return -1;
	result = replace_locked(&adding, err);
	release_finish(&adding.release, &lock);
	return result;
}

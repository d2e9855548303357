/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachments.c - making what an attachment owns in the maps. */
#include "datapath/records/attachments.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "datapath/load/lock.h"
#include "datapath/load/maps.h"
#include "datapath/records/masquerade_ports.h"
#include "datapath/records/stale_slots.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"
#include "datapath/load/bpf_error.h"
#include "datapath/records/removal.h"
#include "lib/warning.h"
#include "net/link_names.h"

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

/* FNV-1a, 64 bits. */
static uint64_t digest_of(const char *text)
{
	uint64_t digest = 0xcbf29ce484222325;

	for (; *text; text++)
		digest = (digest ^ (unsigned char)*text) * 0x100000001b3;
	return digest;
}

static int write_veth(const struct objects *objects, uint32_t slot, uint32_t ifindex,
		      struct cni_error *err)
{
	if (!bpf_map_update_elem(objects->maps[MAP_VETHS], &slot, &ifindex, BPF_ANY))
		return 0;
	return refusal_set(err, errno, "cannot write to the map veths");
}

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
		slot.container = digest_of(name.container_id);
	memcpy(slot.host_mac, claims->host_mac, sizeof(slot.host_mac));
	claims_find_gateway(objects, claims, slot.gateway_mac);
	memcpy(slot.attachment, claims->key.name, sizeof(slot.attachment));
	return slot_write(objects, owner.slot, &slot, err) ||
			       write_veth(objects, owner.slot, claims->ifindex, err)
		       ? -1
		       : 0;
}

/* What an ADD does under the lock, and what was made ready for it before. */
struct adding {
	const struct objects *objects;
	struct nl_sock *socket;
	const struct attachment_claims *claims;
	struct masquerade_ports masquerade_ports;
	struct removed removed;
};

static int begin_owner(const struct adding *adding, struct owner *owner, struct cni_error *err)
{
	struct meta meta;

	if (!meta_read(adding->objects, &meta))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED, "cannot read the map meta");
	masquerade_ports_follow(&meta, &adding->masquerade_ports);
	if (owner_allocate(adding->objects, &meta, owner, err) ||
	    meta_write(adding->objects, &meta, err))
		return -1;
	return write_slot(adding->objects, adding->claims, *owner, err);
}

static int add_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->objects;
	struct attachment record = {
		.since = (uint64_t)time(NULL),
		.ifindex = claims->ifindex,
		.state = ATTACHMENT_ADDING,
		.host_ports = (uint32_t)claims->port_count,
		.endpoints = (uint32_t)claims->endpoint_count,
		.workload = *claims->workload,
	};

	memcpy(record.host_mac, claims->host_mac, sizeof(record.host_mac));
	if (begin_owner(adding, &record.owner, err) ||
	    attachment_write(objects, &claims->key, &record, err) ||
	    policy_write(objects, record.owner, claims->policy, err) ||
	    claims_write(objects, adding->socket, claims, &record, &adding->removed, err) ||
	    owner_set_live(objects, record.owner, true, err))
		return -1;
	record.state = ATTACHMENT_READY;
	return attachment_write(objects, &claims->key, &record, err);
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

static void note_udp_ports(const struct attachment_claims *claims, struct removed *removed)
{
	for (size_t i = 0; i < claims->port_count; i++)
		if (claims->ports[i].localhost)
			udp_ports_add(&removed->udp_ports, &claims->ports[i].key);
}

/* What it had before, also where the record of that is lost. */
static int remove_before_add(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	const struct objects *objects = adding->objects;
	struct removed *removed = &adding->removed;
	struct endpoint endpoint;

	if (removal_of_attachment(objects, &claims->key, removed, err))
		return -1;
	for (size_t i = 0; !removed->found && i < claims->endpoint_count; i++)
		if (endpoint_read(objects, &claims->endpoints[i].key, &endpoint) &&
		    owner_is_of(objects, endpoint.owner, &claims->key))
			return orphans_remove(objects, &claims->key, removed, err);
	return 0;
}

static int replace_locked(struct adding *adding, struct cni_error *err)
{
	const struct attachment_claims *claims = adding->claims;
	struct cni_error undoing = {0};

	/* What it had before goes first, so that a killed re-ADD leaves one owner to find. */
	if (remove_before_add(adding, err))
		return -1;
	if (!add_locked(adding, err)) {
		note_udp_ports(claims, &adding->removed);
		return 0;
	}
	if (removal_of_attachment(adding->objects, &claims->key, &adding->removed, &undoing)) {
		warning("cannot undo a failed ADD: %s", cni_error_message(&undoing));
		cni_error_release(&undoing);
	}
	return -1;
}

int attachment_add(const struct datapath *datapath, struct nl_sock *socket,
		   const struct attachment_claims *claims, struct cni_error *err)
{
	struct adding adding = {
		.objects = &datapath->objects,
		.socket = socket,
		.claims = claims,
		.removed = {.likely = claims},
	};
	cleanup_lock int lock = -1;
	int result;

	masquerade_ports_read(&adding.masquerade_ports);
	lock = lock_take(err);
	/* Before it may claim anything: the container may have been deleted meanwhile. */
	if (lock < 0 || require_veth(socket, claims->ifindex, err))
		return -1;
	result = replace_locked(&adding, err);
	removal_finish(datapath, &adding.removed, &lock);
	return result;
}

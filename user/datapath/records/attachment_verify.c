/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_verify.c - comparing what an attachment owns with what it should. */
#include <string.h>

#include "datapath/records/attachment_verify.h"
#include "datapath/records/describe.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"

/* Of an entry that is missing, belongs to somebody else, or says something else. */
static int set_difference(const char *what, bool found, const char *map, struct cni_error *err)
{
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%s is %s in the map %s: the container must be added again", what,
			     found ? "not as it should be" : "missing", map);
}

/* A port may be that of the same container on another network, which this attachment waits for. */
static int verify_port(const struct objects *objects, const struct port_claim *claim,
		       struct owner owner, uint64_t container, struct cni_error *err)
{
	struct portmap wanted = claimed_portmap(claim, owner), found = {0};
	bool is_there = portmap_read(objects, &claim->key, &found);
	char port[DESCRIBED_PORT_SIZE];
	struct slot other;

	if (is_there && !owner_is(found.owner, owner) && owner_read(objects, found.owner, &other))
		return other.container == container
			       ? 0
			       : refuse_taken_port(objects, &claim->key, &other, err);
	wanted.flows = found.flows;
	if (is_there && !memcmp(&wanted, &found, sizeof(found)))
		return 0;
	describe_port(&claim->key, port);
	return set_difference(port, is_there, "portmaps", err);
}

static int verify_endpoint(const struct objects *objects, const struct endpoint_claim *claim,
			   struct owner owner, struct cni_error *err)
{
	struct endpoint wanted = claimed_endpoint(claim, owner), found = {0};
	bool is_there = endpoint_read(objects, &claim->key, &found);
	char address[CNI_ADDRESS_TEXT_SIZE];

	wanted.shared = found.shared;
	cni_address_format(claim->key.address, address);
	if (!is_there || !owner_is(found.owner, owner))
		return set_difference(address, is_there, "endpoints", err);
	if (!memcmp(&wanted, &found, sizeof(found)))
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "address %s of the container has another prefix length, masquerade or"
			     " \"strict\" setting than it should have: it must be added again",
			     address);
}

struct port_count {
	struct owner owner;
	uint32_t count;
};

static enum walk count_port(const void *key, const void *value, void *context,
			    struct cni_error *err)
{
	const struct portmap *portmap = value;
	struct port_count *ports = context;

	ports->count += owner_is(portmap->owner, ports->owner);
	return WALK_ON;
}

static int verify_record(const struct objects *objects, const struct attachment_claims *claims,
			 struct attachment *record, struct slot *slot, struct cni_error *err)
{
	struct interface interface;

	if (!attachment_read(objects, &claims->key, record))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "there is no record of the attachment %s: the container must "
				     "be added again",
				     claims->key.name);
	if (record->state != ATTACHMENT_READY || !owner_read(objects, record->owner, slot) ||
	    !slot->live)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was left unfinished by an ADD or DEL: the "
				     "container must be added again",
				     claims->key.name);
	/* Limits that ADD was told of turn it off; a runtime need not repeat them at CHECK. */
	if (slot->fast_path != claims->fast_path && slot->fast_path != FAST_PATH_OFF)
		return set_difference("\"fastPath\"", true, "slots", err);
	/* Not its MAC, which may change. */
	if (record->ifindex != claims->ifindex)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was made with another veth: the container "
				     "must be added again",
				     claims->key.name);
	if (interface_read(objects, claims->ifindex, &interface) &&
	    owner_is(interface.owner, record->owner) && interface.role == claims->interface.role)
		return 0;
	return set_difference("the container's veth", false, "interfaces", err);
}

int attachment_verify(const struct datapath *datapath, const struct attachment_claims *claims,
		      bool with_ports, struct cni_error *err)
{
	const struct objects *objects = &datapath->objects;
	struct port_count ports = {.count = 0};
	struct attachment record;
	struct slot slot;

	if (verify_record(objects, claims, &record, &slot, err) ||
	    policy_verify(objects, record.owner, claims->policy, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (verify_endpoint(objects, &claims->endpoints[i], record.owner, err))
			return -1;
	for (size_t i = 0; with_ports && i < claims->port_count; i++)
		if (verify_port(objects, &claims->ports[i], record.owner, slot.container, err))
			return -1;
	ports.owner = record.owner;
	if (map_walk(objects, MAP_PORTMAPS, count_port, &ports, err))
		return -1;
	if (ports.count == record.host_ports)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "the map portmaps has %u of the %u host ports of this container: it "
			     "must be added again",
			     ports.count, record.host_ports);
}

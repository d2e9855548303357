/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* attachment_verify.c - comparing what an attachment owns with what it should. */
#include <string.h>

#include "datapath/records/attachments.h"
#include "datapath/records/attachment_verify.h"
#include "datapath/records/describe.h"
#include "datapath/load/maps.h"
#include "datapath/records/owners.h"
#include "datapath/records/policies.h"

static int verify_port(const struct objects *objects, const struct attachment_claims *claims,
		       const struct port_claim *claim, struct owner owner, struct cni_error *err)
{
	char port[DESCRIBED_PORT_SIZE];
	struct portmap portmap;
	struct slot other;

	describe_port(&claim->key, port);
	if (!portmap_read(objects, &claim->key, &portmap))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "%s is not mapped: its entry in portmaps is missing", port);
	if (!owner_is(portmap.owner, owner)) {
		if (!owner_read(objects, portmap.owner, &other))
			return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
					     "%s belongs to an attachment that is gone", port);
		return attachments_are_of_one_container(other.attachment, claims->key.name)
			       ? 0
			       : refuse_taken_port(objects, &claim->key, &other, err);
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
	    endpoint.prefix_length != claim->prefix_length || endpoint.strict != claim->strict)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "address %s of the container has another prefix length,"
				     " masquerade or \"strict\" setting than it should have",
				     address);
	return 0;
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
			 struct attachment *record, struct cni_error *err)
{
	struct interface interface;
	struct slot slot;

	if (!attachment_read(objects, &claims->key, record))
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "nothing is known of the attachment %s", claims->key.name);
	if (record->state != ATTACHMENT_READY || !owner_read(objects, record->owner, &slot) ||
	    !slot.live)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "the attachment %s was left unfinished by an ADD or DEL",
				     claims->key.name);
	/* Limits that ADD was told of turn it off; a runtime need not repeat them at CHECK. */
	if (slot.fast_path != claims->fast_path && slot.fast_path != FAST_PATH_OFF)
		return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
				     "\"fastPath\" is not what the map slots says of this"
				     " container: it must be added again");
	/* Not its MAC, which may change. */
	if (record->ifindex != claims->ifindex)
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
	struct port_count ports = {.count = 0};
	struct attachment record;

	if (verify_record(objects, claims, &record, err) ||
	    policy_verify(objects, record.owner, claims->policy, err))
		return -1;
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (verify_endpoint(objects, &claims->endpoints[i], record.owner, err))
			return -1;
	for (size_t i = 0; with_ports && i < claims->port_count; i++)
		if (verify_port(objects, claims, &claims->ports[i], record.owner, err))
			return -1;
	ports.owner = record.owner;
	if (map_walk(objects, MAP_PORTMAPS, count_port, &ports, err))
		return -1;
	if (ports.count == record.host_ports)
		return 0;
	return cni_error_set(err, CNI_ERROR_KERNEL_REFUSED,
			     "%u of the %u host ports of this container are in portmaps",
			     ports.count, record.host_ports);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* claims.c - the entries of the maps that come of an attachment's claims. */
#include "datapath/records/claims.h"

#include <string.h>
#include <time.h>

#include "datapath/records/attachments.h"
#include "datapath/records/policies.h"
#include "lib/digest.h"

struct portmap claimed_portmap(const struct port_claim *claim, struct owner owner)
{
	struct portmap portmap = {
		.owner = owner,
		.container_port = claim->container_port,
		.localhost = claim->localhost,
		.reserved_on_host = claim->reserved_on_host,
	};

	memcpy(portmap.container_address, claim->container_address, CNI_ADDRESS_SIZE);
	return portmap;
}

struct endpoint claimed_endpoint(const struct endpoint_claim *claim, struct owner owner)
{
	return (struct endpoint){
		.owner = owner,
		.prefix_length = claim->prefix_length,
		.masquerade = claim->masquerade,
		.strict = claim->strict,
	};
}

struct slot claimed_slot(const struct attachment_claims *claims, struct owner owner)
{
	struct slot slot = {
		.generation = owner.generation,
		.ifindex = claims->ifindex,
		.gateway = claims->interface.role == ROLE_PORT ? claims->interface.bridge_ifindex
							       : claims->ifindex,
		.fast_path = claims->fast_path,
		.has_policy = !policy_says_nothing(claims->policy),
	};
	struct attachment_name name;

	if (attachment_name_split(claims->key.name, &name))
		slot.container =
			digest_add(DIGEST_OF_NOTHING, name.container_id, strlen(name.container_id));
	memcpy(slot.host_mac, claims->host_mac, sizeof(slot.host_mac));
	memcpy(slot.attachment, claims->key.name, sizeof(slot.attachment));
	return slot;
}

struct attachment claimed_record(const struct attachment_claims *claims)
{
	struct attachment record = {
		.since = (uint64_t)time(NULL),
		.ifindex = claims->ifindex,
		.state = ATTACHMENT_ADDING,
		.host_ports = (uint32_t)claims->port_count,
		.endpoints = (uint32_t)claims->endpoint_count,
		.workload = *claims->workload,
	};

	memcpy(record.host_mac, claims->host_mac, sizeof(record.host_mac));
	memcpy(record.container_mac, claims->container_mac, sizeof(record.container_mac));
	return record;
}

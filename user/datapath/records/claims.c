/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* claims.c - what an attachment asks for. */
#include "datapath/records/claims.h"

#include <bpf/bpf.h>
#include <string.h>

#include "datapath/load/maps.h"

void claims_find_gateway(const struct objects *objects, const struct attachment_claims *claims,
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

static int mark_word(const struct objects *objects, enum map_number map, uint32_t number,
		     uint64_t wanted, struct cni_error *err)
{
	uint64_t bits;

	if (bpf_map_lookup_elem(objects->maps[map], &number, &bits))
		return map_refuse_read(map, err);
	if ((bits & wanted) == wanted)
		return 0;
	bits |= wanted;
	return map_write(objects, map, &number, &bits, err);
}

static int mark_ports(const struct objects *objects, const struct attachment_claims *claims,
		      struct cni_error *err)
{
	uint64_t wanted[PORT_WORDS] = {0};

	for (size_t i = 0; i < claims->port_count; i++) {
		uint16_t port = claims->ports[i].key.host_port;

		wanted[port / 64] |= 1ULL << (port % 64);
	}
	for (uint32_t number = 0; claims->port_count && number < PORT_WORDS; number++)
		if (wanted[number] &&
		    mark_word(objects, MAP_PUBLISHED_PORTS, number, wanted[number], err))
			return -1;
	return 0;
}

static int mark_address(const struct objects *objects, const struct endpoint_key *key,
			struct cni_error *err)
{
	uint64_t halves[2];
	uint16_t bit;

	memcpy(halves, key->address, sizeof(halves));
	bit = address_hash(halves[0], halves[1]);
	return mark_word(objects, MAP_ENDPOINT_ADDRESSES, bit / 64, 1ULL << (bit % 64), err);
}

int claims_mark(const struct objects *objects, const struct attachment_claims *claims,
		struct cni_error *err)
{
	for (size_t i = 0; i < claims->endpoint_count; i++)
		if (mark_address(objects, &claims->endpoints[i].key, err))
			return -1;
	return mark_ports(objects, claims, err);
}

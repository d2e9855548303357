/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* claims.c - what an attachment asks for. */
#include "datapath/records/claims.h"

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

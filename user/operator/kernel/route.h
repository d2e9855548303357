/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * route.h - where packets go from here: routing and neighbours.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"
#include "net/link.h"

struct netlink;

struct route {
	bool exists;
	bool is_local;
	bool has_gateway;
	uint32_t ifindex;
	uint32_t locked_mtu; /* bytes (`ip route ... mtu lock`); 0: none */
};

/* Asks routing in the namespace of the socket. Where there is no route, or the kernel cannot say,
 * `exists` is false. */
struct route route_to(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE]);

struct neighbour {
	bool exists;
	uint16_t state; /* NUD_ */
	uint8_t mac[LINK_MAC_SIZE];
};

struct neighbour neighbour_of(struct netlink *socket, uint32_t ifindex,
			      const uint8_t address[CNI_ADDRESS_SIZE]);

/* Finds a neighbour that has been reached and whose address has the prefix, and writes that
 * address; false: none is known. */
bool neighbour_first(struct netlink *socket, uint32_t ifindex,
		     const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int prefix_length,
		     uint8_t address[CNI_ADDRESS_SIZE]);

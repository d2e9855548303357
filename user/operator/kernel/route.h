/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * route.h - where packets go from here: routing and neighbours.
 */
#ifndef OPERATOR_KERNEL_ROUTE_H
#define OPERATOR_KERNEL_ROUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/address.h"
#include "net/link.h"

struct nl_sock;

struct route {
	bool exists;
	bool is_local;
	uint32_t ifindex;
	uint32_t locked_mtu; /* bytes (`ip route ... mtu lock`); 0: none */
	bool has_source;
	uint8_t source[CNI_ADDRESS_SIZE];
};

/* Asks in the namespace of the socket. Where there is none, or the kernel cannot say, `exists` is
 * false. */
struct route route_to(struct nl_sock *socket, const uint8_t address[CNI_ADDRESS_SIZE]);

struct neighbour {
	bool exists;
	uint16_t state; /* NUD_ */
	uint8_t mac[LINK_MAC_SIZE];
};

struct neighbour neighbour_of(struct nl_sock *socket, uint32_t ifindex,
			      const uint8_t address[CNI_ADDRESS_SIZE]);

#endif

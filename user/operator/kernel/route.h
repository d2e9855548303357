/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* route.h - where packets go from here: routing and neighbours. */
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
	uint8_t gateway[CNI_ADDRESS_SIZE]; /* all zero: one of the other family */
	uint32_t ifindex;
	uint32_t locked_mtu; /* bytes (`ip route ... mtu lock`); 0: none */
};

/* Asks routing in the namespace of the socket. Where there is no route, or the kernel cannot say,
 * `exists` is false. */
struct route route_to(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE]);

/* A packet that this namespace forwards. */
struct forwarded {
	const uint8_t *from, *to;
	uint32_t ifindex; /* where it comes in */
	const char *interface;
	bool has_mark; /* one that is not known */
};

/* Asks for the route of such a packet without a mark. Neither is there one where its sender is
 * reached by another interface, and a reverse path filter minds that. */
struct route route_of_forwarded(struct netlink *socket, const struct forwarded *packet);

/* Returns the first rule of policy routing that applies to such a packet, or may by its mark, as
 * ip(8) prints it, malloc'ed: "100: from 10.88.0.2 blackhole", one that refuses, or that has it
 * looked up in a table of its own. NULL: there is none. */
char *rule_of_forwarded(struct netlink *socket, const struct forwarded *packet);

/* Returns the route, malloc'ed, by which an address is refused: "blackhole 192.0.2.0/24". NULL:
 * there is none in the usual tables. *is_single: it is for this address alone. Reads all routes. */
char *route_refusing(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE],
		     bool *is_single);

/* Returns the length of the prefix of the route by which the address is reached; 0: none. */
unsigned int route_prefix_length(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE]);

struct neighbour {
	bool exists;
	uint16_t state; /* NUD_ */
	uint8_t mac[LINK_MAC_SIZE];
};

struct neighbour neighbour_of(struct netlink *socket, uint32_t ifindex,
			      const uint8_t address[CNI_ADDRESS_SIZE]);

/* Returns the bridge's port behind which this MAC was seen last; 0: none is known. */
uint32_t bridge_port_of(struct netlink *socket, uint32_t bridge, const uint8_t mac[LINK_MAC_SIZE]);

/* Finds a neighbour that has been reached and whose address has the prefix, and writes that
 * address; false: none is known. */
bool neighbour_first(struct netlink *socket, uint32_t ifindex,
		     const uint8_t prefix[CNI_ADDRESS_SIZE], unsigned int prefix_length,
		     uint8_t address[CNI_ADDRESS_SIZE]);

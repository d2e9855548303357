/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* address_list.h - the addresses of the host, and the interfaces that have them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/address.h"
#include "lib/error.h"

struct netlink;

/* An interface that has addresses. Those here are to masquerade with where the kernel can't
 * say better, zero if it has none of the family: the first that is not link-local, if
 * possible neither secondary, temporary nor deprecated. */
struct addressed_interface {
	uint32_t ifindex;
	bool is_reachable;     /* one of them is not link-local */
	bool second4, second6; /* the address is one of those: there is no better one */
	uint8_t address4[CNI_ADDRESS_SIZE];
	uint8_t address6[CNI_ADDRESS_SIZE];
};

/* Any address but loopback and IPv6 link-local ones. */
struct local_address {
	size_t interface;  /* where in the list of interfaces */
	bool is_broadcast; /* not the interface's own, but its subnet's */
	uint8_t address[CNI_ADDRESS_SIZE];
};

/* Begins as {0}. */
struct address_list {
	struct addressed_interface *interfaces;
	size_t count;
	struct local_address *addresses;
	size_t address_count;
};

/* Reads what the host has now, in place of what the list has. Release the list also after a
 * failure. CNI_ERROR_IO. */
int address_list_read(struct address_list *list, struct cni_error *err);
void address_list_release(struct address_list *list);

/* Returns whether routing takes the address for one of this host's: of an interface, or of a local
 * route ("ip route add local"). False also where rtnetlink can't say. */
bool local_address_exists(struct netlink *socket, const uint8_t address[CNI_ADDRESS_SIZE]);
